"use strict";
// What a page can do beside being read: order and filter tables, draw its charts, give
// their files, and be light or dark. Without scripts everything but the charts is there,
// and of those the data. Texts enter the page as texts only.
(() => {
const root = document.documentElement;
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const make = (name, properties, ...inside) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...inside);
  return element;
};
const button = (text, act) => {
  const b = make("button", {type: "button"}, text);
  b.addEventListener("click", act);
  return b;
};

// Light and dark.
const themes = ["", "light", "dark"], named = {"": "as the system", light: "light", dark: "dark"};
const toggle = button("", () => {
  const next = themes[(themes.indexOf(root.dataset.theme || "") + 1) % themes.length];
  root.dataset.theme = next;
  try { localStorage.setItem("tare-theme", next); } catch { /* it lasts as long as the page */ }
  name();
});
const name = () => { toggle.textContent = "Colours: " + named[root.dataset.theme || ""]; };
toggle.className = "theme";
name();
const contents = document.querySelector(".contents");
contents.append(toggle);
if (matchMedia("(max-width: 77.99rem)").matches) contents.firstElementChild.open = false;

// Tables.
const shortest = 6, atOnce = 100; // rows that a filter is worth, and that are shown at first
const compare = (a, b) => typeof a === typeof b
  ? (typeof a === "number" ? a - b : a.localeCompare(b, undefined, {numeric: true}))
  : (typeof a === "number" ? -1 : 1);
const key = cell => {
  if (!cell) return "";
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  return (cell.querySelector(".whole") || cell).textContent.trim();
};
const nothing = k => k === "" || k === "–" || k === "·";
const byKey = (at, sign) => (a, b) => {
  const x = key(a.cells[at]), y = key(b.cells[at]);
  if (nothing(x) || nothing(y)) return nothing(x) - nothing(y); // what is not known comes last, either way
  return sign * compare(x, y);
};
const equip = table => {
  const body = table.tBodies[0], rows = [...body.rows], heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  let wanted = "", most = atOnce, order = rows;
  const tools = make("div", {className: "tools"}), count = make("span", {role: "status"});
  const more = button("", () => { most = Infinity; show(); });
  const show = () => {
    const found = wanted ? order.filter(row => row.textContent.toLowerCase().includes(wanted)) : order;
    for (const row of rows) row.hidden = true;
    for (const row of found.slice(0, most)) row.hidden = false;
    count.textContent = wanted ? found.length + " of " + rows.length + " rows" : "";
    more.hidden = found.length <= most;
    more.textContent = "Show all " + found.length + " rows";
  };
  if (rows.length > 1 && !body.querySelector(".across")) heads.forEach((head, at) => {
    if (!head.textContent) return;
    head.replaceChildren(button(head.textContent, () => {
      const next = {none: "ascending", ascending: "descending", descending: "none"}[head.getAttribute("aria-sort")];
      for (const h of heads) if (h.hasAttribute("aria-sort")) h.setAttribute("aria-sort", h === head ? next : "none");
      order = next === "none" ? rows : rows.toSorted(byKey(at, next === "ascending" ? 1 : -1));
      body.append(...order);
      table.classList.toggle("sorted", next !== "none");
      show();
    }));
    head.setAttribute("aria-sort", "none");
  });
  if (rows.length > shortest) {
    const field = make("input", {type: "search", placeholder: "Filter rows"});
    field.setAttribute("aria-label", "Filter the rows of: " + table.caption.textContent);
    field.addEventListener("input", () => { wanted = field.value.trim().toLowerCase(); show(); });
    tools.append(field, count);
    table.parentElement.before(tools);
    table.parentElement.after(make("div", {className: "tools"}, more));
    show();
  }
};
for (const table of all("table")) { // data of a chart are long, and looked at by few
  const closed = table.closest("details.data");
  if (closed) closed.addEventListener("toggle", () => equip(table), {once: true});
  else equip(table);
}

// Files.
const save = (name, blob) => {
  const link = make("a", {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
const text = id => document.getElementById(id).textContent;
for (const file of all("[data-save]"))
  file.prepend(button("Save " + file.dataset.name, () => save(file.dataset.name, new Blob([text(file.dataset.save)], {type: "application/json"}))), " ");

// Charts.
const plots = all(".plot"), tip = document.querySelector(".tip");
const point = (handler, event, item, value) => {
  tip.hidden = !value;
  if (!value) return;
  tip.textContent = value;
  const {clientX: x, clientY: y} = event, {offsetWidth: w, offsetHeight: h} = tip;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + "px";
  tip.style.top = (y + 18 + h > innerHeight ? y - h - 10 : y + 18) + "px";
};
const offline = () => Object.assign(vega.loader(), {load: () => Promise.reject(new Error("nothing is loaded"))});
const viewOf = (spec, options) => new vega.View(
  vega.parse(vegaLite.compile(spec, {logger: vega.logger(vega.Error)}).spec, null, {ast: true}),
  {expr: vega.expressionInterpreter, loader: offline(), logger: vega.logger(vega.Error), ...options});

// fit makes a specification as wide as there is room; what stands above the chart on the
// page is not in it twice.
const fit = (spec, width, domain) => {
  const gutter = Math.min(spec.usermeta.gutter, Math.floor(width * 0.42));
  spec.title = null;
  spec.background = null;
  const longest = Math.max(...spec.data.values.map(v => (v.series || "").length));
  spec.config.legend.columns = Math.max(1, Math.floor(width / Math.min(6.4 * longest + 34, 270)));
  if (spec.facet) {
    const panels = new Set(spec.data.values.map(v => v.panel)).size;
    spec.columns = Math.min(panels, Math.max(1, Math.floor(width / (gutter + 240))));
    spec.spec.width = Math.floor(width / spec.columns) - gutter - 40;
  } else {
    spec.width = width;
    spec.autosize = {type: "fit-x", contains: "padding"};
  }
  for (const layer of (spec.spec || spec).layer) {
    const axis = layer.encoding.y && layer.encoding.y.axis;
    if (domain && layer.params) layer.encoding.x.scale = {domain, nice: false};
    if (axis && axis.labelLimit) axis.labelLimit = gutter;
    if (axis && axis.labelAlign) axis.labelPadding = gutter;
  }
  return spec;
};
const draw = (plot, domain) => {
  if (plot.view) plot.view.finalize();
  plot.replaceChildren();
  plot.wide = plot.clientWidth;
  const view = plot.view = viewOf(fit(JSON.parse(text(plot.dataset.spec)), plot.wide, domain), {renderer: "svg", container: plot, hover: true});
  view.tooltip(point).run();
  plot.firstElementChild.setAttribute("aria-hidden", "true"); // the whole is one picture, with a name
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", plot.dataset.label);
  plot.removeAttribute("aria-roledescription");
  plot.querySelector("svg").setAttribute("aria-hidden", "true"); // its label and its table say it
};
const tools = plot => {
  const name = plot.dataset.spec.replace(/-spec$/, ""), whole = () => viewOf(JSON.parse(text(plot.dataset.spec)), {renderer: "none"});
  const bar = make("div", {className: "tools", role: "group"},
    button("SVG", async () => save(name + ".svg", new Blob([await whole().toSVG()], {type: "image/svg+xml"}))),
    button("PNG", async () => (await whole().toCanvas(2)).toBlob(blob => save(name + ".png", blob))),
    button("Vega-Lite", () => save(name + ".vl.json", new Blob([text(plot.dataset.spec)], {type: "application/json"}))));
  bar.setAttribute("aria-label", "Files of: " + plot.dataset.label.split(". ")[0]);
  if (plot.dataset.zoom !== undefined) {
    const zoom = by => () => {
      const [from, to] = plot.view.scale("x").domain(), middle = (from + to) / 2, half = (to - from) / 2 * by;
      draw(plot, by ? [middle - half, middle + half] : null);
    };
    bar.append(button("Zoom in", zoom(0.5)), button("Zoom out", zoom(2)), button("Whole", zoom(0)), "Ctrl and the wheel zoom, dragging moves.");
  }
  plot.after(bar);
};
plots.forEach(tools);
const waiting = [...plots];
const next = () => {
  const plot = waiting.shift();
  if (!plot) return root.setAttribute("data-drawn", "");
  draw(plot);
  setTimeout(next);
};
// Vega comes compressed, and runs once it is unpacked: the page's policy has its sum.
const unpack = async () => {
  const packed = Uint8Array.from(atob(text("vega")), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  document.head.append(make("script", {textContent: await new Response(stream).text()}));
  next();
};
if (plots.length) unpack(); else root.setAttribute("data-drawn", "");
addEventListener("beforeprint", () => window.vega && waiting.splice(0).forEach(plot => draw(plot)));
let later;
addEventListener("resize", () => {
  clearTimeout(later);
  later = setTimeout(() => plots.filter(p => p.view && Math.abs(p.clientWidth - p.wide) > 4).forEach(plot => draw(plot)), 150);
});
})();
