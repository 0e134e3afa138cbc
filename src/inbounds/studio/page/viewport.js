// One plane of a scan on a canvas: image, mask and labels over each other; zoom, pan, brightness; never a stretched pixel.

import { channels } from "./dom.js";

const UNLABELLED = 255;

export class Viewport {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.plane = null;
    this.zoom = 1; // 1 shows the whole slice
    this.centre = null; // in pixels of the slice
    this.level = [0, 255];
    this.shown = { image: null, labels: null, mask: null };
    this.layers = {};
    this.look = { colours: new Map(), labels: 1, mask: 0.4, smooth: true };
    this.overlay = () => {}; // draws what is being done, in pixels of the slice
    this.asked = 0;
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.draw();
  }

  open(plane) {
    this.plane = plane;
    this.fit();
  }

  fit() {
    this.zoom = 1;
    this.centre = this.plane && { x: (this.plane.columns - 1) / 2, y: (this.plane.rows - 1) / 2 };
    this.draw();
  }

  show(slices) {
    for (const kind of Object.keys(this.shown)) {
      if (kind in slices && slices[kind] !== this.shown[kind]) {
        this.shown[kind] = slices[kind];
        delete this.layers[kind];
      }
    }
    this.draw();
  }

  restyle(look, level) {
    Object.assign(this.look, look);
    if (level) this.level = level;
    this.layers = {};
    this.draw();
  }

  /** Canvas pixels for one pixel of the slice, across and down. */
  get scale() {
    const { columns, rows, mm } = this.plane;
    const whole = Math.min(this.canvas.width / (columns * mm.across), this.canvas.height / (rows * mm.down));
    return { x: whole * this.zoom * mm.across, y: whole * this.zoom * mm.down };
  }

  /** Where the pixel's middle lies on the canvas. */
  toCanvas(x, y) {
    const scale = this.scale;
    return { x: this.canvas.width / 2 + (x - this.centre.x) * scale.x, y: this.canvas.height / 2 + (y - this.centre.y) * scale.y };
  }

  /** The place on the slice under a pointer, in pixels whose middles are whole numbers. */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.scale;
    const x = (event.clientX - box.left) * (this.canvas.width / box.width);
    const y = (event.clientY - box.top) * (this.canvas.height / box.height);
    return { x: (x - this.canvas.width / 2) / scale.x + this.centre.x, y: (y - this.canvas.height / 2) / scale.y + this.centre.y };
  }

  inside({ x, y }) {
    return x >= -0.5 && y >= -0.5 && x < this.plane.columns - 0.5 && y < this.plane.rows - 0.5;
  }

  zoomAt(event, factor) {
    const before = this.under(event);
    this.zoom = Math.min(40, Math.max(0.5, this.zoom * factor));
    const after = this.under(event);
    this.centre = { x: this.centre.x + before.x - after.x, y: this.centre.y + before.y - after.y };
    this.draw();
  }

  pan(across, down) {
    const ratio = this.canvas.width / this.canvas.getBoundingClientRect().width;
    const scale = this.scale;
    this.centre = { x: this.centre.x - (across * ratio) / scale.x, y: this.centre.y - (down * ratio) / scale.y };
    this.draw();
  }

  draw() {
    if (!this.asked) this.asked = requestAnimationFrame(() => { this.asked = 0; this.paint(); });
  }

  paint() {
    const { context, canvas, plane } = this;
    context.fillStyle = "#000";
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!plane || !this.centre) return;
    const corner = this.toCanvas(-0.5, -0.5);
    const far = this.toCanvas(plane.columns - 0.5, plane.rows - 0.5);
    const place = [corner.x, corner.y, far.x - corner.x, far.y - corner.y];
    const put = (layer, smooth, alpha) => {
      if (!layer) return;
      context.imageSmoothingEnabled = smooth;
      context.imageSmoothingQuality = "high";
      context.globalAlpha = alpha;
      context.drawImage(layer, ...place);
      context.globalAlpha = 1;
    };
    put(this.#layer("image", (to, from) => this.#grey(to, from)), this.look.smooth && this.scale.x < 12, 1);
    if (this.look.mask > 0) put(this.#layer("mask", (to, from) => this.#tint(to, from, 0)), false, this.look.mask);
    if (this.look.labels > 0) put(this.#layer("labels", (to, from) => this.#tint(to, from, UNLABELLED)), false, 0.8 * this.look.labels);
    this.overlay(context, this);
  }

  #layer(kind, fill) {
    const from = this.shown[kind];
    const { rows, columns } = this.plane;
    if (!from || from.length !== rows * columns) return null;
    if (!this.layers[kind]) {
      const canvas = new OffscreenCanvas(columns, rows);
      const context = canvas.getContext("2d");
      const image = context.createImageData(columns, rows);
      fill(new Uint32Array(image.data.buffer), from);
      context.putImageData(image, 0, 0);
      this.layers[kind] = canvas;
    }
    return this.layers[kind];
  }

  #grey(to, from) {
    const [low, high] = this.level;
    const table = new Uint32Array(256);
    for (let value = 0; value < 256; value += 1) {
      const grey = Math.round(255 * Math.min(1, Math.max(0, (value - low) / Math.max(1, high - low))));
      table[value] = (255 << 24) | (grey << 16) | (grey << 8) | grey;
    }
    for (let at = 0; at < from.length; at += 1) to[at] = table[from[at]];
  }

  #tint(to, from, nothing) {
    const table = new Uint32Array(256);
    for (const [value, colour] of this.look.colours) {
      const [red, green, blue] = channels(colour);
      if (value !== nothing) table[value] = (255 << 24) | (blue << 16) | (green << 8) | red;
    }
    for (let at = 0; at < from.length; at += 1) to[at] = table[from[at]];
  }
}
