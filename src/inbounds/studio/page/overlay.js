// What lies around and over a picture: letters and scale, what is under the pointer, the cross, and what is being drawn.

import { toPlane, toVoxel } from "./geometry.js";
import { classOf, state } from "./state.js";

/** The letters of the body's sides, and what is shown. */
export function around(work, view, plane) {
  const letters = plane.letters ?? {};
  for (const side of ["left", "right", "top", "bottom"]) view.words[side].textContent = letters[side] ?? "";
  view.words.what.textContent = view.place ? plane.name : `${plane.name} · ${work.open_.row.name}`;
  if (view.place === 0) scaleBar(view, plane);
}

/** A line of so many mm. */
export function scaleBar(view, plane) {
  const ratio = window.devicePixelRatio || 1;
  const pixels = view.viewport.centre ? view.viewport.scale.x / plane.mm.across / ratio : 1;
  const mm = [100, 50, 20, 10, 5, 2, 1].find((each) => each * pixels < 160) ?? 1;
  view.words.scale.style.width = `${mm * pixels}px`;
  view.words.scale.textContent = `${mm} mm`;
}

/** What is under the pointer, in words. */
export function under(work, view, place) {
  const { plane, shown } = view.viewport;
  const [x, y] = [Math.round(place.x), Math.round(place.y)];
  const [slice, row, column] = toVoxel(plane, view.shown ?? 0, x, y);
  const [low, high] = work.open_.window;
  const value = shown.image ? low + (shown.image[y * plane.columns + x] / 255) * (high - low) : NaN;
  const label = shown.labels?.[y * plane.columns + x] ?? 255;
  const named = label === 255 ? "" : ` · ${classOf(label)?.name ?? label}`;
  return `slice ${slice + 1}, row ${row}, column ${column} · about ${Number(value.toPrecision(3))}${named}`;
}

/** The cross, and what is being drawn or would be. */
export function over(work, view, context) {
  if (!work.open_) return;
  const { viewport } = view;
  if (view.place || work.crossed) {
    const { x, y } = toPlane(viewport.plane, work.voxel);
    const at = viewport.toCanvas(x, y);
    context.strokeStyle = "#ffffff59";
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(at.x, 0); context.lineTo(at.x, viewport.canvas.height);
    context.moveTo(0, at.y); context.lineTo(viewport.canvas.width, at.y);
    context.stroke();
  }
  if (work.gesture?.viewport === viewport) work.gesture.draw(context, viewport);
  else if (work.hovered?.view === view && (state.tool === "brush" || state.tool === "eraser")) {
    const at = viewport.toCanvas(work.hovered.place.x, work.hovered.place.y);
    context.strokeStyle = state.tool === "eraser" ? "#ffffff" : classOf(state.klass)?.colour ?? "#ffffff";
    context.lineWidth = 1.5 * (window.devicePixelRatio || 1);
    context.beginPath();
    context.arc(at.x, at.y, Math.max(2, (state.radius * viewport.scale.x) / viewport.plane.mm.across), 0, 2 * Math.PI);
    context.stroke();
  }
}
