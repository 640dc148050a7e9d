// Shows what /live.json tells of a run under way, until it has ended.
"use strict";
const shown = document.querySelector("dl[data-from]");

async function look() {
  let state;
  try {
    const answer = await fetch(shown.dataset.from, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const now = await answer.json();
    for (const [id, text] of Object.entries(now)) {
      const at = document.getElementById(id);
      if (at && at.textContent !== text) at.textContent = text;
    }
    if (!now.live) return;
  } catch {
    document.getElementById("state").textContent = "tare serve does not answer";
  }
  setTimeout(look, 2000);
}

setTimeout(look, 2000);
