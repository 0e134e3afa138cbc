// The tools: what a drag over a slice means. Each turns places on the slice into one action of the person.

import { toast, icon } from "./dom.js";
import { ellipseArea, length, toVoxel } from "./geometry.js";
import { act, classOf, state } from "./state.js";

export const TOOLS = {
  point: { key: "p", name: "Point", icon: icon("M12 4v5|M12 15v5|M4 12h5|M15 12h5"), help: "label one voxel" },
  brush: { key: "b", name: "Brush", icon: icon("M4 20c4 0 4-3 6-5l8-10 2 2-9 9c-2 2-3 4-7 4z"), help: "label what you paint over" },
  eraser: { key: "e", name: "Eraser", icon: icon("M8 20h12|M5 14l8-9 6 5-8 9H8z"), help: "take labels back" },
  box: { key: "x", name: "Box", icon: icon("M5 6h14v12H5z"), help: "the region lies inside: outside is background, and its size is guessed" },
  ellipse: { key: "o", name: "Size", icon: icon("M3 12a9 6 0 1 0 18 0a9 6 0 1 0-18 0"), help: "about this big: an ellipse around the region gives its area" },
  ruler: { key: "r", name: "Ruler", icon: icon("M4 20L20 4|M4 20l3-6|M4 20l6-3|M20 4l-3 6|M20 4l-6 3"), help: "about this wide: a line across the region gives its area as a disc" },
  pan: { key: "h", name: "Move", icon: icon("M12 3v18|M3 12h18|M9 6l3-3 3 3|M9 18l3 3 3-3|M6 9l-3 3 3 3|M18 9l3 3-3 3"), help: "move the picture" },
};

const ROUND = (voxel) => voxel.map((value) => Math.round(value * 100) / 100);
const SLACK = 0.25; // of a size drawn by hand, either way

/** A drag that goes on: the places so far, what it draws meanwhile, and what it becomes. */
export class Gesture {
  constructor(viewport, number, n, place) {
    Object.assign(this, { viewport, number, n, tool: state.tool, klass: state.klass, radius: state.radius });
    this.places = [place];
  }

  move(place) {
    if (this.tool === "brush" || this.tool === "eraser") {
      const last = this.places.at(-1);
      if (Math.hypot(last.x - place.x, last.y - place.y) > 0.2) this.places.push(place);
    } else if (this.tool === "point") {
      this.places[0] = place;
    } else {
      this.places[1] = place;
    }
  }

  get voxels() {
    return this.places.map(({ x, y }) => toVoxel(this.viewport.plane, this.n, x, y));
  }

  async end() {
    const plane = this.viewport.plane;
    const voxels = this.voxels;
    if (this.tool === "point") {
      return act("stroke", { class: this.klass, plane: this.number, points: [voxels[0].map(Math.round)], radius: 0 });
    }
    if (this.tool === "brush" || this.tool === "eraser") {
      const klass = this.tool === "eraser" ? null : this.klass;
      return act("stroke", { class: klass, plane: this.number, points: voxels.map(ROUND), radius: this.radius });
    }
    if (voxels.length < 2) return null;
    if (this.klass === 0) {
      toast("a box or a size is that of a class: choose one first (keys 1 to 9)", true);
      return null;
    }
    if (this.tool === "box") return act("box", { class: this.klass, plane: this.number, corners: voxels.map(ROUND) });
    if (plane.through !== 0) {
      toast("sizes are those of slices of the file: draw them in the plane that is large at first", true);
      return null;
    }
    const area = this.area();
    if (area < plane.mm.across * plane.mm.down) return null;
    const size = { low: round(area * (1 - SLACK)), high: round(area * (1 + SLACK)), unit: "mm2" };
    toast(`${classOf(this.klass).name}: about ${Math.round(area)} mm², a quarter more or less`);
    return act("fact", { class: this.klass, slices: [Math.round(voxels[0][0])], present: true, size });
  }

  area() {
    const plane = this.viewport.plane;
    if (this.tool === "ellipse") return ellipseArea(plane, this.voxels);
    return (Math.PI / 4) * length(plane, this.voxels) ** 2;
  }

  /** What is being done, over the slice. */
  draw(context, viewport) {
    const colour = this.tool === "eraser" ? "#ffffff" : classOf(this.klass).colour;
    const scale = viewport.scale;
    const at = this.places.map(({ x, y }) => viewport.toCanvas(x, y));
    context.save();
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineCap = context.lineJoin = "round";
    const path = () => {
      context.beginPath();
      context.moveTo(at[0].x, at[0].y);
      for (const next of at.slice(1)) context.lineTo(next.x, next.y);
    };
    if (this.tool === "brush" || this.tool === "eraser") {
      context.globalAlpha = 0.6;
      context.lineWidth = Math.max(2, (2 * this.radius * scale.x) / viewport.plane.mm.across);
      path();
      if (at.length === 1) context.lineTo(at[0].x + 0.01, at[0].y);
      context.stroke();
    } else if (this.tool === "point") {
      const [x, y] = [Math.round(this.places[0].x), Math.round(this.places[0].y)];
      const corner = viewport.toCanvas(x - 0.5, y - 0.5);
      context.fillRect(corner.x, corner.y, scale.x, scale.y);
    } else if (at.length > 1) {
      context.lineWidth = 2 * (window.devicePixelRatio || 1);
      context.setLineDash([6, 4]);
      const [a, b] = at;
      if (this.tool === "ellipse") {
        context.beginPath();
        context.ellipse((a.x + b.x) / 2, (a.y + b.y) / 2, Math.abs(a.x - b.x) / 2, Math.abs(a.y - b.y) / 2, 0, 0, 2 * Math.PI);
        context.stroke();
      } else if (this.tool === "box") context.strokeRect(Math.min(a.x, b.x), Math.min(a.y, b.y), Math.abs(a.x - b.x), Math.abs(a.y - b.y));
      else { path(); context.stroke(); }
      if (this.tool !== "box") {
        context.setLineDash([]);
        Object.assign(context, { shadowColor: "#000", shadowBlur: 5 });
        context.font = `${13 * (window.devicePixelRatio || 1)}px system-ui`;
        const words = this.tool === "ruler" ? `${length(viewport.plane, this.voxels).toFixed(0)} mm, ${this.area().toFixed(0)} mm²` : `${this.area().toFixed(0)} mm²`;
        context.fillText(words, Math.max(a.x, b.x) + 8, b.y);
      }
    }
    context.restore();
  }
}

const round = (value) => Math.round(value * 10) / 10;
