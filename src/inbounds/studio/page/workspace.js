// Label and review: one slice large, the other planes small, and what is known of the scan beside it.

import * as api from "./api.js";
import { attempt, el, toast } from "./dom.js";
import { factsPanel } from "./facts.js";
import { fileSlice, middle, toPlane, toVoxel } from "./geometry.js";
import { around, over, scaleBar, under } from "./overlay.js";
import { panels, rows } from "./panels.js";
import { wire } from "./pointer.js";
import { Slices } from "./slices.js";
import { act, colours, scanRow, state } from "./state.js";
import { Strip } from "./strip.js";
import { Gesture } from "./tools.js";
import { Viewport } from "./viewport.js";

export class Workspace {
  constructor(review) {
    this.review = review;
    this.order = [0, 1, 2]; // planes: the first is large
    this.level = [0, 255];
    this.open_ = null;
    this.gesture = null;
    this.hovered = null;
    this.views = [0, 1, 2].map((place) => this.#view(place));
    this.strip = new Strip((n) => this.go(n), (n) => this.go(n, true), (way) => this.neighbour(way));
    this.left = el("aside", { class: "side", "aria-label": "Scans" });
    this.right = el("aside", { class: "side", "aria-label": "Tools and facts" });
    this.wait = el("div", { class: "wait", hidden: true });
    this.views[0].box.append(this.wait);
    this.element = el("div", { class: "work" }, this.left,
      el("div", { class: "stage", tabindex: 0 }, el("div", { class: "views" }, this.views.map((view) => view.box)), this.strip.element),
      this.right);
    this.panels();
  }

  #view(place) {
    const canvas = el("canvas", { "data-view": place });
    const words = Object.fromEntries(["left", "right", "top", "bottom", "what", "where", "scale"].map((name) => [name, el("span", { class: `word ${name}` })]));
    const box = el("div", { class: place ? "view" : "view large" }, canvas, Object.values(words));
    const viewport = new Viewport(canvas);
    const view = { place, box, words, viewport, asked: 0 };
    viewport.overlay = (context) => over(this, view, context);
    wire(viewport, {
      panning: () => state.tool === "pan" || this.spaceHeld,
      begin: (event) => this.#begin(view, event),
      move: (event) => { this.gesture?.move(viewport.under(event)); viewport.draw(); },
      end: (event) => this.#end(view, event),
      cancel: () => { this.gesture = null; viewport.draw(); },
      level: (across, down) => this.brightness(across, down),
      hover: (event) => this.#hover(view, event),
      wheel: (notches) => this.go(this.at(this.order[place]) + notches, false, this.order[place]),
    });
    if (place) canvas.addEventListener("dblclick", () => this.swap(place));
    return view;
  }

  plane(number) { return this.open_.planes[number]; }
  at(number) { return toPlane(this.plane(number), this.voxel).n; }

  /** The file's numbers of the slices that are chosen, the one shown first. */
  get chosen() {
    const plane = this.plane(0);
    const n = this.at(0);
    const from = this.order[0] === 0 ? (this.from ?? n) : n;
    const slices = [];
    for (let each = n; ; each += Math.sign(from - n)) {
      slices.push(fileSlice(plane, each));
      if (each === from) return slices;
    }
  }

  /** Open a scan; what was open stays on the screen until its voxels are there. */
  async open(id) {
    if (id === null || id === undefined) return this.panels();
    state.scan = id;
    const words = `reading ${scanRow(id)?.name ?? ""}`;
    this.#saying(words);
    const said = await attempt(() => api.opened(id, (share) => { if (state.scan === id) this.#saying(words, share); }));
    if (state.scan !== id) return undefined;
    this.wait.hidden = Boolean(said);
    if (!said) return this.#saying(scanRow(id)?.error ?? "this scan cannot be shown");
    this.open_ = said;
    this.slices = new Slices(id);
    this.voxel = middle(said.row.shape);
    this.from = null;
    this.order = [0, 1, 2];
    this.level = [0, 255];
    this.views.forEach((view) => view.viewport.open(this.plane(this.order[view.place])));
    this.#firstMarked();
    this.panels();
    return this.refresh();
  }

  #firstMarked() {
    const marked = this.open_.marks[0];
    if (marked.length && !this.review) this.voxel = toVoxel(this.plane(0), marked[Math.floor(marked.length / 2)], ...this.#inPlane(0));
  }

  #inPlane(number) {
    const { x, y } = toPlane(this.plane(number), this.voxel);
    return [x, y];
  }

  #saying(words, share) {
    this.wait.hidden = false;
    this.wait.replaceChildren(el("div", {}, el("p", {}, words), share === undefined ? null : el("progress", { value: share, max: 1 })));
  }

  /** Go to a slice of a plane; `choosing` keeps the other end of what is chosen. */
  go(n, choosing = false, number = this.order[0]) {
    if (!this.open_) return;
    const plane = this.plane(number);
    const before = this.at(number);
    const next = Math.min(plane.count - 1, Math.max(0, n));
    if (choosing) this.from ??= before;
    else if (number === this.order[0]) this.from = null;
    this.voxel = toVoxel(plane, next, ...this.#inPlane(number));
    this.way = next - before;
    this.refresh();
    this.#facts();
  }

  /** Make another plane the large one. */
  swap(place) {
    [this.order[0], this.order[place]] = [this.order[place], this.order[0]];
    this.from = null;
    for (const each of [0, place]) this.views[each].viewport.open(this.plane(this.order[each]));
    this.refresh();
    this.#facts();
  }

  /** Fetch and show the slices through the place in hand. */
  async refresh() {
    if (!this.open_) return;
    const begun = performance.now();
    await Promise.all(this.views.map((view) => this.#show(view)));
    this.shownIn = performance.now() - begun;
    this.#strip();
  }

  async #show(view) {
    const number = this.order[view.place];
    const plane = this.plane(number);
    const n = this.at(number);
    const ask = ++view.asked;
    const masked = this.open_.row.predicted && state.look.mask > 0;
    around(this, view, plane);
    view.viewport.restyle({ colours: colours(), ...state.look }, this.level);
    const got = await attempt(() => Promise.all([this.slices.image(number, n), this.#label(number, n), masked ? this.slices.mask(number, n) : null]));
    if (got && ask === view.asked && plane === view.viewport.plane) {
      const [image, labels, mask] = got;
      view.viewport.show({ image, labels, mask });
      view.shown = n;
      view.box.dataset.slice = String(n);
      if (view.place === 0) this.#prefetch(number, n, plane.count);
    }
  }

  /** The labels of a slice; `null` where nobody has labelled anything. */
  #label(number, n) { return this.open_.marks[number].includes(n) ? this.slices.label(number, n) : null; }

  /** Ask for the neighbours, so that they are there when a person gets to them. */
  #prefetch(number, n, count) {
    const masked = this.slices.masks.size > 0;
    for (const away of [1, 2, 3, -1, 4, 5]) {
      const next = n + Math.sign(this.way || 1) * away;
      if (next < 0 || next >= count) continue;
      for (const asked of [this.slices.image(number, next), this.#label(number, next), masked && this.slices.mask(number, next)]) asked?.catch?.(() => {});
    }
  }

  #strip() {
    const number = this.order[0];
    const known = number === 0 ? new Set(this.open_.facts.filter((fact) => fact.slice !== null).map((fact) => toPlane(this.plane(0), [fact.slice, 0, 0]).n)) : new Set();
    const n = this.at(number);
    this.strip.show({ count: this.plane(number).count, n, from: this.from ?? n, labelled: new Set(this.open_.marks[number]), known });
  }

  #begin(view, event) {
    if (!this.open_) return false;
    const place = view.viewport.under(event);
    if (!view.viewport.inside(place)) return false;
    const number = this.order[view.place];
    if (event.altKey) {
      this.voxel = toVoxel(this.plane(number), this.at(number), Math.round(place.x), Math.round(place.y));
      this.refresh();
      return false;
    }
    this.gesture = new Gesture(view.viewport, number, this.at(number), place);
    view.viewport.draw();
    return true;
  }

  async #end(view) {
    const { gesture } = this;
    if (!gesture) return;
    const done = await gesture.end();
    const last = gesture.voxels.at(-1).map((value, axis) => Math.min(this.open_.row.shape[axis] - 1, Math.max(0, Math.round(value))));
    this.voxel = last;
    await (done ? this.changed() : this.refresh());
    if (this.gesture === gesture) this.gesture = null;
    view.viewport.draw();
  }

  /** Do what the tool does at the cross, as a click would. */
  async stamp() {
    if (!this.open_) return;
    const view = this.views[0];
    const number = this.order[0];
    const { x, y, n } = toPlane(this.plane(number), this.voxel);
    if (this.gesture) {
      this.gesture.move({ x, y });
      await this.#end(view);
    } else {
      this.gesture = new Gesture(view.viewport, number, n, { x, y });
      if (["point", "brush", "eraser"].includes(state.tool)) await this.#end(view);
    }
  }

  /** Move the cross by so many pixels of the large plane. */
  nudge(across, down) {
    if (!this.open_) return;
    const number = this.order[0];
    const plane = this.plane(number);
    const { x, y, n } = toPlane(plane, this.voxel);
    const clamp = (value, most) => Math.min(most - 1, Math.max(0, value));
    const place = { x: clamp(x + across, plane.columns), y: clamp(y + down, plane.rows) };
    this.voxel = toVoxel(plane, n, place.x, place.y);
    this.crossed = true;
    this.gesture?.move(place);
    this.refresh();
  }

  /** Labels or facts of the open scan are others now. */
  async changed() {
    const id = state.scan;
    const said = await attempt(() => api.get(`/api/scans/${id}`));
    if (!said?.planes || id !== state.scan) return;
    const newMask = said.row.training !== this.open_.row.training;
    this.open_ = { ...said, planes: this.open_.planes };
    this.slices.forgetLabels();
    if (newMask) this.slices.forgetMasks();
    await this.refresh();
    this.#facts();
  }

  brightness(across, down) {
    const [low, high] = this.level;
    const width = Math.min(510, Math.max(2, (high - low) * Math.exp(across / 300)));
    const centre = Math.min(300, Math.max(-45, (low + high) / 2 + down / 2));
    this.level = [centre - width / 2, centre + width / 2];
    this.views.forEach((view) => view.viewport.restyle({}, this.level));
  }

  reset() {
    this.level = [0, 255];
    this.views.forEach((view) => { view.viewport.fit(); view.viewport.restyle({}, this.level); });
    if (this.open_) scaleBar(this.views[0], this.plane(this.order[0]));
  }

  #hover(view, event) {
    if (!this.open_) return;
    const place = event && view.viewport.under(event);
    this.hovered = place && view.viewport.inside(place) ? { view, place } : null;
    view.words.where.textContent = this.hovered ? under(this, view, place) : "";
    view.viewport.draw();
    if (view.place === 0) scaleBar(view, view.viewport.plane);
  }

  #facts() {
    const place = this.right.querySelector("[data-facts]");
    if (place && this.open_ && !place.contains(document.activeElement)) place.replaceChildren(factsPanel(this.open_.facts, this.chosen, this.open_.row.shape[0]));
  }

  /** Draw both sides anew. */
  panels() {
    panels(this);
    this.#facts();
  }

  /** Open the scan before or after this one in the list. */
  neighbour(way) {
    const there = rows(this.review).filter((row) => !row.error);
    const next = there[there.findIndex((row) => row.id === state.scan) + way];
    if (next) this.open(next.id);
  }

  async accept() {
    if (!this.open_) return;
    if (!this.open_.row.predicted) return void toast("there is no mask to accept yet: train first", true);
    const accepted = !scanRow().accepted;
    if (await act("accept", { accepted })) toast(accepted ? "accepted" : "no longer accepted");
  }
}
