// Labels and sizes made elsewhere: Slicer's points, painted masks, tables.

import { upload } from "./api.js";
import { ask, attempt, el, toast } from "./dom.js";
import { classes, state } from "./state.js";

export async function imports() {
  const answer = await ask("Import labels or sizes", el("div", {},
    el("p", {}, "Points of 3D Slicer (.mrk.json, .fcsv), painted masks (any scan format), or tables of clicks or sizes (.csv)."),
    el("p", {}, el("input", { type: "file", name: "file", required: true, multiple: true, accept: ".json,.fcsv,.csv,.tsv,.txt,.nii,.gz,.mha,.mhd,.nrrd,.png,.tif,.tiff" })),
    el("label", { class: "row" }, "Points and masks belong to ", el("select", { name: "scan" }, el("option", { value: "" }, "the scan that the file is named after"),
      state.project.scans.filter((row) => !row.error).map((row) => el("option", { value: row.id }, row.name)))),
    el("label", { class: "row" }, "Points called after no class are ", el("select", { name: "class" }, el("option", { value: "" }, "refused"),
      classes().map((each) => el("option", { value: each.value }, each.name)))),
    el("p", { class: "note" }, "In painted masks, which grey value is which class? Values that are not named stay unlabelled."),
    el("div", { class: "row" }, classes().map((each) => el("label", { class: "row" }, el("span", { class: "dot", colour: each.colour }), each.name,
      el("input", { name: `value-${each.value}`, size: 3, inputmode: "numeric", value: each.value === 0 ? "" : each.value })))),
  ), { ok: "Import" });
  if (!answer) return;
  const values = {};
  for (const each of classes()) {
    const grey = String(answer[`value-${each.value}`] ?? "").trim();
    if (grey !== "") values[grey] = each.value;
  }
  const also = Object.fromEntries(["scan", "class"].filter((name) => answer[name]).map((name) => [name, answer[name]]));
  const chosen = [answer.file].flat().filter((file) => file?.name);
  for (const file of chosen) {
    const said = await attempt(() => upload("/api/import", { file, who: state.who, values: JSON.stringify(values), ...also }));
    if (said) toast(`${file.name}: ${said.sentence}`);
  }
}
