// Beside the picture: the scans on the left; tools, classes, overlay and what is known on the right.

import { count, el } from "./dom.js";
import { actOnAll, classes, scanRow, state, tell } from "./state.js";
import { TOOLS } from "./tools.js";

/** Fill both sides of a workspace. */
export function panels(work) {
  if (!work.list) {
    work.list = el("div", { class: "list" });
    work.left.replaceChildren(section(work.review ? "Worst first" : "Scans", work.list));
  }
  list(work);
  if (work.right.contains(document.activeElement) && document.activeElement.matches("input:not([type=range])")) return; // somebody types
  work.right.replaceChildren(...[
    work.review && verdict(work),
    section("Tools", tools(work), radius(work)),
    section("Classes", classList(work)),
    el("div", { "data-facts": "" }),
    section("Overlay", slider(work, "mask", "Mask", "M"), slider(work, "labels", "Labels", "L")),
  ].filter(Boolean));
}

const section = (title, ...children) => el("section", {}, el("h3", {}, title), ...children);

/** In review those with most doubt first, what is accepted last; else as they are named. */
export function rows(review) {
  const all = state.project.scans;
  if (!review) return all;
  const rank = (row) => (row.error || !row.predicted ? -2 : row.accepted ? -1 : row.flags.length + (row.doubt ?? 0));
  return [...all].sort((a, b) => rank(b) - rank(a));
}

/** The scans; of a thousand, only those are drawn anew that are others now. */
function list(work) {
  const before = work.entries ?? new Map();
  work.entries = new Map(rows(work.review).map((row) => {
    const says = JSON.stringify([row, row.id === state.scan]);
    return [row.id, before.get(row.id)?.says === says ? before.get(row.id) : { says, shown: entry(row, work) }];
  }));
  const now = [...work.entries.values()].map(({ shown }) => shown);
  if (now.length === work.list.children.length && now.every((each, place) => each === work.list.children[place])) return;
  const top = work.left.scrollTop;
  work.list.replaceChildren(...now);
  work.left.scrollTop = top;
}

function entry(row, work) {
  const more = row.error ? "cannot be read" : work.review
    ? row.predicted ? `${row.accepted ? "accepted" : `doubt ${(row.doubt ?? 0).toFixed(2)}`}${row.flags.length ? ` · ${count(row.flags.length, "warning")}` : ""}` : "no mask yet"
    : [row.slices_labelled && `labels in ${count(row.slices_labelled, "slice")}`, row.facts && count(row.facts, "size")].filter(Boolean).join(" · ") || "nothing yet";
  return el("button", { "aria-current": String(row.id === state.scan), title: row.error ?? row.name, onclick: () => work.open(row.id) },
    el("span", { class: "name" }, row.name), row.accepted && el("span", { class: "tag good" }, "✓"), el("span", { class: "more" }, more));
}

function verdict(work) {
  const row = scanRow();
  if (!row?.predicted) return section("Review", el("p", { class: "note" }, "No mask yet: train first. All scans are segmented when training ends."));
  return section("Review",
    ...row.flags.map((flag) => el("p", { class: "note warn" }, flag)),
    el("table", { class: "volumes" },
      el("tr", {}, el("th", {}, "volume in ml"), el("th", {}, "mask"), el("th", {}, "known")),
      Object.entries(row.volumes ?? {}).map(([name, { predicted, known }]) => el("tr", {}, el("td", {}, name), el("td", {}, number(predicted)),
        el("td", {}, known ? `${number(known[0])} to ${number(known[1])}` : "–")))),
    el("div", { class: "row" },
      el("button", { class: "main", onclick: () => work.accept() }, row.accepted ? "Accepted ✓" : "Accept"),
      el("small", {}, el("kbd", {}, "Enter"))),
    el("p", { class: "note" }, "Or correct it: click where the mask is wrong, and once more beside it, in the same slice. The next training begins with these weights."));
}

const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(value < 10 ? 1 : 0));

function tools(work) {
  return el("div", { class: "tools", role: "group", "aria-label": "Tools" }, Object.entries(TOOLS).map(([name, tool]) =>
    el("button", { "aria-pressed": String(state.tool === name), "data-tool": name, title: `${tool.name}: ${tool.help} (${tool.key.toUpperCase()})`, onclick: () => { state.tool = name; work.panels(); } },
      tool.icon.cloneNode(true), tool.name)));
}

function radius(work) {
  if (state.tool !== "brush" && state.tool !== "eraser") return el("p", { class: "note" }, TOOLS[state.tool].help);
  const shown = el("output", {}, `${state.radius} mm`);
  return el("label", { class: "over" }, el("small", {}, "Radius ", shown),
    el("input", { type: "range", min: 0.5, max: 30, step: 0.5, value: state.radius, "aria-label": "radius of the brush in mm",
      oninput: (event) => { state.radius = Number(event.target.value); shown.textContent = `${state.radius} mm`; work.views[0].viewport.draw(); } }));
}

function classList(work) {
  return [el("div", { class: "classes", role: "group", "aria-label": "Classes" }, classes().map((each) =>
    el("button", { "aria-pressed": String(state.klass === each.value), "data-class": each.value, onclick: () => { state.klass = each.value; work.panels(); } },
      el("kbd", {}, String(each.value)), el("span", { class: "dot", colour: each.colour }), el("span", { class: "name" }, each.name), el("small", {}, each.labelled ? each.labelled.toLocaleString("en") : "")))),
    el("div", { class: "row" },
      el("button", { class: "quiet", title: "Take back what you did last (Ctrl Z)", onclick: () => tell({ undo: true }) }, "↶ Undo"),
      el("button", { class: "quiet", title: "Do it again (Ctrl Shift Z)", onclick: () => tell({ redo: true }) }, "↷ Redo"))];
}

function slider(work, kind, name, key) {
  return el("label", { class: "over" }, el("small", {}, `${name} `, el("kbd", {}, key)),
    el("input", { type: "range", min: 0, max: 1, step: 0.05, value: state.look[kind], "aria-label": `opacity of the ${kind}`,
      oninput: (event) => look(work, kind, Number(event.target.value)) }));
}

/** Change how strongly mask or labels are drawn over the image. */
export function look(work, kind, value) {
  state.look[kind] = value;
  localStorage.setItem(kind, String(value));
  work.refresh();
}

/** Delete a class, or say why not. */
export const deleteClass = (value) => actOnAll("class_delete", { value });
