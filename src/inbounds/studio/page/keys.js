// The keyboard: everything a hand with a mouse can do.

import { copyOn, setPresent } from "./facts.js";
import { look } from "./panels.js";
import { state } from "./state.js";
import { TOOLS } from "./tools.js";

const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
const byKey = new Map(Object.entries(TOOLS).map(([name, tool]) => [tool.key, name]));

/** Do what a key says over a workspace; whether it was one of ours. */
export function key(event, work) {
  if (event.altKey && ARROWS[event.key]) {
    const far = event.shiftKey ? 10 : 1;
    work.nudge(...ARROWS[event.key].map((way) => way * far));
    return true;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !work.open_) return false;
  const n = work.at(work.order[0]);
  const named = {
    ArrowUp: () => work.go(n - 1, event.shiftKey), ArrowLeft: () => work.go(n - 1, event.shiftKey),
    ArrowDown: () => work.go(n + 1, event.shiftKey), ArrowRight: () => work.go(n + 1, event.shiftKey),
    PageUp: () => work.go(n - 5, event.shiftKey), PageDown: () => work.go(n + 5, event.shiftKey),
    Home: () => work.go(0), End: () => work.go(work.plane(work.order[0]).count - 1),
    Enter: () => (work.review ? work.accept() : work.stamp()), Escape: () => { work.gesture = null; work.from = null; work.refresh(); },
    Tab: () => work.swap(event.shiftKey ? 2 : 1),
  };
  const letters = {
    y: () => setPresent(work.open_.facts, work.chosen, true), n: () => setPresent(work.open_.facts, work.chosen, false),
    c: () => copyOn(work.open_.facts, work.chosen, work.open_.row.shape[0]),
    s: () => work.right.querySelectorAll(".measure input")[0]?.focus(), v: () => work.right.querySelectorAll(".measure input")[2]?.focus(),
    f: () => work.reset(), m: () => toggle(work, "mask", 0.4), l: () => toggle(work, "labels", 1),
    "[": () => brush(work, -0.5), "]": () => brush(work, 0.5), "+": () => zoom(work, 1.25), "=": () => zoom(work, 1.25), "-": () => zoom(work, 0.8),
    ",": () => work.neighbour(-1), ".": () => work.neighbour(1),
  };
  const done = named[event.key] ?? letters[event.key.toLowerCase()];
  if (done) done();
  else if (byKey.has(event.key.toLowerCase())) choose(work, { tool: byKey.get(event.key.toLowerCase()) });
  else if (/^\d$/.test(event.key) && [state.project.background, ...state.project.classes].some((each) => each.value === Number(event.key))) choose(work, { klass: Number(event.key) });
  else return false;
  return true;
}

function choose(work, change) {
  Object.assign(state, change);
  work.gesture = null;
  work.panels();
  work.views[0].viewport.draw();
}

function brush(work, more) {
  state.radius = Math.min(30, Math.max(0.5, state.radius + more));
  choose(work, {});
}

function toggle(work, kind, usual) {
  look(work, kind, state.look[kind] > 0 ? 0 : usual);
  work.panels();
}

function zoom(work, factor) {
  const canvas = work.views[0].viewport.canvas.getBoundingClientRect();
  work.views[0].viewport.zoomAt({ clientX: canvas.left + canvas.width / 2, clientY: canvas.top + canvas.height / 2 }, factor);
}
