// All scans with a small picture, and what is known of each; classes are named and coloured here.

import { ask, count, el, toast } from "./dom.js";
import { deleteClass } from "./panels.js";
import { actOnAll, classes, state, tell } from "./state.js";
import { imports } from "./imports.js";

export function scansPage() {
  const { scans, folder, missing } = state.project;
  const broken = scans.filter((row) => row.error).length;
  return el("div", { class: "page" },
    el("div", { class: "row apart" },
      el("div", {}, el("h2", {}, count(scans.length, "scan")), el("small", {}, folder, broken ? ` · ${broken} cannot be read` : "")),
      el("div", { class: "row" },
        el("button", { onclick: rescan, title: "Look for scans that were added to the folder" }, "Look for new scans"),
        el("button", { onclick: imports }, "Import labels or sizes…"))),
    el("section", { class: "card" }, el("h3", {}, "Classes"), classEditor()),
    missing.length > 0 && el("section", { class: "card" }, el("h3", {}, "Still missing to train"), el("ul", {}, missing.map((what) => el("li", {}, what)))),
    el("div", { class: "scans" }, scans.map(card)));
}

function card(row) {
  if (row.error) {
    return el("div", { class: "scan broken card", title: row.error }, el("div", { class: "thumb" }, "⚠"),
      el("div", { class: "about" }, el("div", { class: "name" }, row.name), el("small", {}, row.error)));
  }
  const tags = [
    row.slices_labelled ? el("span", { class: "tag told" }, `labels in ${count(row.slices_labelled, "slice")}`) : null,
    row.facts ? el("span", { class: "tag told" }, count(row.facts, "size")) : null,
    row.accepted ? el("span", { class: "tag good" }, "accepted") : row.predicted ? el("span", { class: row.flags.length ? "tag warn" : "tag" }, row.flags.length ? "look at this" : "mask") : null,
  ];
  return el("button", { class: "scan", "data-scan": row.id, onclick: () => tell({ open: row.id }) },
    el("div", { class: "thumb" }, el("img", { src: `/api/scans/${row.id}/thumbnail`, alt: "", loading: "lazy", decoding: "async" })),
    el("div", { class: "about" }, el("div", { class: "name" }, row.name),
      el("small", {}, row.shape ? `${row.shape[2]} × ${row.shape[1]}, ${count(row.shape[0], "slice")}` : "its header is being read"), el("div", { class: "marks" }, tags)));
}

function classEditor() {
  return el("div", { class: "row" }, classes().map((each) => el("form", { class: "row", onsubmit: (event) => event.preventDefault() },
    el("input", { type: "color", value: each.colour, "aria-label": `colour of ${each.name}`, onchange: (event) => actOnAll("class", { value: each.value, name: each.name, colour: event.target.value }) }),
    el("input", { value: each.name, size: Math.max(6, each.name.length), "aria-label": `name of class ${each.value}`, maxlength: 60,
      onchange: (event) => actOnAll("class", { value: each.value, name: event.target.value.trim(), colour: each.colour }) }),
    each.value !== 0 && el("button", { class: "quiet", type: "button", title: `Delete ${each.name}`, "aria-label": `delete ${each.name}`, onclick: () => deleteClass(each.value) }, "×"))),
    el("button", { onclick: addClass }, "Add a class"));
}

async function addClass() {
  const answer = await ask("A new class", el("label", { class: "row" }, "Name ", el("input", { name: "name", required: true, maxlength: 60, autofocus: true })));
  if (!answer?.name.trim()) return;
  const value = Math.max(0, ...classes().map((each) => each.value)) + 1;
  if (value > 9) return toast("nine classes are the most", true);
  await actOnAll("class", { value, name: answer.name.trim(), colour: PALETTE[(value - 1) % PALETTE.length] });
}

// Told apart by people who do not see all colours, on black.
const PALETTE = ["#ffb000", "#5db4e8", "#dc267f", "#3fd0a8", "#f0e442", "#fe6100", "#e8e8e8", "#8dd35f", "#c9a06b"];

async function rescan() {
  const before = state.project.scans.length;
  if (await actOnAll("rescan")) {
    tell({ reload: true });
    setTimeout(() => toast(state.project.scans.length > before ? `${count(state.project.scans.length - before, "new scan")}` : "no new scans"), 700);
  }
}
