// What each key does, on `?`.

import { el } from "./dom.js";

const KEYS = [
  ["Wheel  ↑ ↓", "next slice; Page up and down: five"], ["Shift ↑ ↓", "choose several slices"], ["Ctrl wheel  + −", "zoom; Space and drag: move"],
  ["Right drag", "brightness and contrast"], ["0 … 9", "class; 0 is background"], ["P B E", "point, brush, eraser"], ["[ ]", "smaller, larger brush"],
  ["X", "box: the region lies inside"], ["O R", "size by an ellipse, by a ruler"], ["Y N", "class is present, absent here"], ["S V", "type an area, a volume"],
  ["C", "copy the size to the neighbours, or to the chosen slices"], ["Ctrl Z  Ctrl Y", "undo and redo what you did"], ["Alt click  Alt ←→↑↓", "move the cross; with Shift by ten"],
  ["Enter", "use the tool at the cross; in review: accept"], [", .", "scan before, next scan"], ["M L", "mask, labels on and off"], ["Tab", "another plane large (or double click it)"],
  ["F", "whole slice, brightness as at first"], ["F1 … F5", "scans, label, train, review, export"],
];

export function help() {
  const close = el("button", { class: "main", onclick: () => box.close() }, "Close");
  const box = el("dialog", { onclose: () => box.remove() }, el("h2", {}, "Keys and tools"),
    el("div", { class: "keys" }, KEYS.map(([keys, what]) => el("div", {}, el("span", {}, keys.split("  ").map((key) => [el("kbd", {}, key), " "])), el("span", {}, what)))),
    el("p", { class: "note" }, "Everything you do is kept at once; there is no Save. Background labels matter: a few strokes around the region are worth many inside it. Research software, not a medical device."), close);
  document.body.append(box);
  box.showModal();
}
