'use strict';
// What Vega needs and an engine without a browser has not, and the one function that is
// called from Go.
const structuredClone = (x) => x === undefined ? x : JSON.parse(JSON.stringify(x));

// Nothing of interest is told but by what is drawn.
const console = { log() {}, warn() {}, error() {}, debug() {} };

// A canvas on which texts are measured and nothing is drawn: letters of a usual
// sans-serif font are about so wide, as parts of its size.
const document = {
  createElement: () => ({
    getContext: () => ({
      font: '',
      measureText(text) {
        const size = parseFloat(/([\d.]+)px/.exec(this.font)?.[1] ?? '11');
        let width = 0;
        for (const c of String(text)) width += /[ijlI.,:;'|! ]/.test(c) ? 0.3 : /[mwMW@%–…]/.test(c) ? 0.9 : c < '\u0080' ? 0.56 : c < '\u2e80' ? 0.62 : 1;
        return { width: width * size };
      },
    }),
  }),
};

function draw(text) {
  return new vega.View(vega.parse(vegaLite.compile(JSON.parse(text)).spec), { renderer: 'none' }).toSVG();
}
