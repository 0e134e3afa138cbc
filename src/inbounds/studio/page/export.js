// What a person takes along: masks, volumes, labels and sizes as tables, the store, and the commands that repeat it all.

import * as api from "./api.js";
import { attempt, count, el } from "./dom.js";
import { state } from "./state.js";

/** Files by name, and folders by how many files they have. */
function listed(files) {
  const folders = new Map();
  for (const file of files) {
    const name = file.includes("/") ? `${file.split("/")[0]}/` : file;
    folders.set(name, (folders.get(name) ?? 0) + 1);
  }
  return [...folders].map(([name, number]) => (name.endsWith("/") ? `${name}  ${count(number, "file")}` : name));
}

export class ExportPage {
  constructor() {
    this.done = null;
    this.element = el("div", { class: "page" });
    this.draw();
  }

  draw() {
    const masks = state.project.scans.filter((row) => row.predicted);
    const accepted = masks.filter((row) => row.accepted).length;
    this.element.replaceChildren(...[
      el("div", { class: "row apart" },
        el("div", {}, el("h2", {}, "Export"), el("p", { class: "note" }, `${count(masks.length, "mask")}, ${accepted} accepted. Masks lie exactly over their scans, in the scans' own geometry.`)),
        el("button", { class: "main", "data-do": "export", onclick: () => this.#export() }, this.done ? "Export again" : "Export")),
      this.done && el("section", { class: "card" }, el("h3", {}, "Written to"), el("pre", {}, this.done.folder), el("ul", {}, listed(this.done.files).map((words) => el("li", {}, el("code", {}, words))))),
      this.done?.commands.length > 0 && el("section", { class: "card" }, el("h3", {}, "The commands that repeat it"),
        el("p", { class: "note" }, "Called in that folder (sh commands.txt), they do every training anew, each on what was known then."),
        el("pre", {}, this.done.commands.join("\n"))),
    ].filter(Boolean));
  }

  async #export() {
    this.done = (await attempt(() => api.post("/api/export", { who: state.who }))) ?? this.done;
    this.draw();
  }
}
