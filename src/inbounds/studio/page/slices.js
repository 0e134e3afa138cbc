// Slices of the open scan as the server sends them: images are kept, labels and masks fetched again when they changed.

import { bytes } from "./api.js";

const KEPT = 600;

export class Slices {
  constructor(scan) {
    this.scan = scan;
    this.images = new Map();
    this.labels = new Map();
    this.masks = new Map();
  }

  image(plane, n) { return this.#through(this.images, `image/${plane}/${n}`); }
  label(plane, n) { return this.#through(this.labels, `labels/${plane}/${n}`); }
  mask(plane, n) { return this.#through(this.masks, `mask/${plane}/${n}`); }

  forgetLabels() { this.labels.clear(); }
  forgetMasks() { this.masks.clear(); }

  #through(kept, path) {
    let asked = kept.get(path);
    if (asked) {
      kept.delete(path); // the newest come last
    } else {
      asked = bytes(`/api/scans/${this.scan}/${path}`);
      asked.catch(() => kept.delete(path));
    }
    kept.set(path, asked);
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    return asked;
  }
}
