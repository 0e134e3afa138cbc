// What the page knows: the project as the server has it, the open scan, and what a person has in hand.

import * as api from "./api.js";
import { attempt, toast } from "./dom.js";

export const state = {
  project: null,
  scan: null, // the number of the open one
  klass: 1,
  tool: "brush",
  radius: 3, // mm
  who: localStorage.getItem("who") ?? "",
  look: { labels: 1, mask: Number(localStorage.getItem("mask") ?? 0.4) },
};

const listeners = new Set();

/** Hear of every change: `{sequence, scan, kind}`, `{training}` or `{project: true}`. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function tell(news) {
  for (const listener of [...listeners]) listener(news);
}

export async function refresh() {
  state.project = await api.get("/api/project");
  tell({ project: true });
  if (state.project.scans.some((row) => !row.shape && !row.error)) refreshSoon(1000); // headers are being read
}

let waiting = null;
/** Ask for the project again soon, once for many changes. */
export function refreshSoon(after = 250) {
  waiting ??= setTimeout(() => { waiting = null; attempt(refresh); }, after);
}

/** Something a person did to the open scan; the answer comes when it is on the disk. What looks odd is said, and kept. */
export async function act(kind, what) {
  const done = await attempt(() => api.post("/api/actions", { who: state.who, scan: state.scan, kind, ...what }));
  if (done?.warning) toast(done.warning, true);
  return done;
}

/** Something that is about no scan: classes, or a look for new scans. */
export const actOnAll = (kind, what = {}) => attempt(() => api.post("/api/actions", { who: state.who, kind, ...what }));

export const step = (way) => attempt(() => api.post(`/api/${way}`, { who: state.who }));

export const classes = () => [state.project.background, ...state.project.classes];
export const classOf = (value) => classes().find((each) => each.value === value);
export const colours = () => new Map(classes().map((each) => [each.value, each.colour]));
export const scanRow = (id = state.scan) => state.project.scans.find((row) => row.id === id);
