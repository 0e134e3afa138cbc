// The bar below the picture: all slices of the plane, which have labels or sizes, which is shown and which are chosen.

import { el } from "./dom.js";

export class Strip {
  /** `go` and `choose` are about slices; `step` goes to the scan before or after, where there is no list of them. */
  constructor(go, choose, step) {
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.words = el("output");
    const steps = [[-1, "‹", "scan before"], [1, "›", "next scan"]].map(([way, sign, words]) =>
      el("button", { title: words, "aria-label": words, onclick: () => step(way) }, sign));
    this.element = el("div", { class: "strip" }, el("span", { class: "steps" }, steps), this.words, this.canvas);
    this.state = { count: 1, n: 0, from: 0, labelled: new Set(), known: new Set(), masked: false };
    const at = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      return Math.min(this.state.count - 1, Math.max(0, Math.floor(share * this.state.count)));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      if (event.shiftKey) choose(at(event));
      else go(at(event));
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) (event.shiftKey ? choose : go)(at(event));
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  show(change) {
    Object.assign(this.state, change);
    this.draw();
  }

  draw() {
    const { count, n, from, labelled, known } = this.state;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth * ratio, this.canvas.clientHeight * ratio];
    if (!width) return;
    this.canvas.width = width;
    this.canvas.height = height;
    const context = this.canvas.getContext("2d");
    const step = width / count;
    const bar = (at, colour, top, tall) => {
      context.fillStyle = colour;
      context.fillRect(at * step + (step > 4 ? 1 : 0), top * height, Math.max(1, step - (step > 4 ? 2 : 0)), tall * height);
    };
    for (let at = 0; at < count; at += 1) {
      bar(at, at >= Math.min(from, n) && at <= Math.max(from, n) ? "#2f6f93" : "#262f38", 0.1, 0.8);
      if (labelled.has(at)) bar(at, "#ffb000", 0.62, 0.28);
      if (known.has(at)) bar(at, "#6fd3a4", 0.1, 0.22);
    }
    context.strokeStyle = "#e6eaee";
    context.lineWidth = 2 * ratio;
    context.strokeRect(n * step, context.lineWidth / 2, Math.max(step, 3), height - context.lineWidth);
    this.words.value = from === n ? `slice ${n + 1} of ${count}` : `slices ${Math.min(from, n) + 1} to ${Math.max(from, n) + 1}`;
    this.canvas.title = "Slices: orange has labels, green a size. Shift and drag to choose several.";
  }
}
