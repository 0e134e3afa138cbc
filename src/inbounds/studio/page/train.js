// One button and minutes; what training does meanwhile, and what it was told to do.

import * as api from "./api.js";
import { attempt, channels, el } from "./dom.js";
import { rows } from "./panels.js";
import { colours, state, tell } from "./state.js";

const BUSY = new Set(["preparing", "training", "predicting"]);

export class TrainPage {
  constructor() {
    this.minutes = el("input", { type: "number", min: 0.2, max: 1440, step: "any", value: localStorage.getItem("minutes") ?? 5, "aria-label": "minutes", class: "short" });
    this.element = el("div", { class: "page" });
    this.live = el("div", { class: "live" });
    this.masks = "";
    this.draw();
  }

  draw() {
    const { training, missing } = state.project;
    const busy = BUSY.has(training.state);
    const again = training.state === "stopped" || training.state === "failed";
    const first = !training.number;
    if (this.element.contains(document.activeElement) && document.activeElement === this.minutes && !busy) return;
    this.element.replaceChildren(...[
      el("div", { class: "row apart" },
        el("div", {}, el("h2", {}, HEAD[training.state] ?? training.state), el("p", { class: training.state === "failed" ? "note bad" : "note" }, training.sentence)),
        el("div", { class: "row" },
          training.state === "done" && el("button", { onclick: () => tell({ tab: "review" }) }, "Look at the masks"),
          !busy && el("label", { class: "row" }, this.minutes, "minutes"),
          !busy && again && el("button", { onclick: () => this.#ask("resume") }, "Go on"),
          !busy && el("button", { class: "main", "data-do": "train", disabled: missing.length > 0, onclick: () => this.#train() }, first ? "Train" : "Train again"),
          busy && el("button", { "data-do": "stop", onclick: () => this.#ask("stop") }, "Stop"))),
      busy && el("div", { class: "bar" }, el("i", { "data-bar": "" })),
      first && !missing.length && el("section", { class: "card" }, el("h3", {}, "What happens"), el("ul", {},
        ["A network for these scans learns from what you labelled and the sizes that you know.", "Masks of some slices appear here while it does; all scans are segmented at its end.",
          "You may close this page, or go on labelling: the next training takes in what is new."].map((words) => el("li", {}, words)))),
      missing.length > 0 && !busy && el("section", { class: "card" }, el("h3", {}, "Still missing"), el("ul", {}, missing.map((what) => el("li", {}, what)))),
      this.#masks(training),
      !first && el("section", { class: "card" }, el("h3", {}, "How it goes"), this.#curves(training), el("p", { class: "note" }, "Each curve on a scale of its own: what the loss is made of, and its last value. The sum may rise while bounds come in.")),
      training.words?.length > 0 && el("section", { class: "card" }, el("h3", {}, "What was chosen for these data"), el("ul", {}, training.words.map((words) => el("li", {}, words)))),
      training.commands?.length > 0 && el("section", { class: "card" }, el("h3", {}, "The same by hand"), el("pre", {}, training.commands.join("\n")),
        el("p", { class: "note" }, "Of the last three trainings with masks, weights and masks are kept; of all, labels, sizes and commands.")),
    ].filter(Boolean));
    const bar = this.element.querySelector("[data-bar]");
    if (bar) bar.style.width = `${training.epochs ? (100 * training.epoch) / training.epochs : 3}%`;
    this.#plot(training);
    this.#fillMasks(training);
  }

  #curves(training) {
    const names = Object.keys(training.curves ?? {});
    this.canvas = names.length ? el("canvas", { class: "curve", role: "img", "aria-label": "curves of training" }) : null;
    return this.canvas ?? el("p", { class: "note" }, "The first epoch is on its way.");
  }

  #plot(training) {
    const { canvas } = this;
    if (!canvas?.isConnected) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const entries = Object.entries(training.curves).filter(([, points]) => points.length);
    const last = Math.max(2, training.epochs || 0, ...entries.map(([, points]) => points.at(-1)[0]));
    const hues = ["#5db4e8", "#ffb000", "#3fd0a8", "#dc267f", "#a58bff"];
    context.font = "12px system-ui";
    entries.forEach(([name, points], index) => {
      const values = points.map(([, value]) => value).filter(Number.isFinite);
      const unit = /dsc|share|satisfied/i.test(name);
      const top = unit ? 1 : Math.max(...values);
      const low = unit ? 0 : Math.min(0, ...values);
      const x = (epoch) => 8 + ((width - 150) * (epoch - 1)) / (last - 1);
      const y = (value) => height - 22 - ((height - 40) * (value - low)) / (top - low || 1);
      context.strokeStyle = context.fillStyle = hues[index % hues.length];
      context.lineWidth = 2;
      context.beginPath();
      points.forEach(([epoch, value], at) => (at ? context.lineTo(x(epoch), y(value)) : context.moveTo(x(epoch), y(value))));
      context.stroke();
      const [epoch, value] = points.at(-1);
      context.beginPath(); context.arc(x(epoch), y(value), 3, 0, 7); context.fill();
      context.fillText(`${name} ${Number(value.toPrecision(3))}`, width - 134, 18 + 17 * index);
    });
    context.strokeStyle = "#2b343e"; context.lineWidth = 1;
    context.beginPath(); context.moveTo(8, height - 21.5); context.lineTo(width - 142, height - 21.5); context.stroke();
    context.fillStyle = "#9aa7b4";
    context.fillText("epoch 1", 8, height - 6);
    context.textAlign = "right"; context.fillText(String(last), width - 142, height - 6); context.textAlign = "left";
  }

  #masks(training) {
    const words = training.newest ? `Newest masks · after epoch ${training.newest.epoch}` : "Masks of the last training, worst first";
    return (training.newest || state.project.scans.some((row) => row.predicted)) && el("section", { class: "card" }, el("h3", {}, words), this.live);
  }

  /** Some slices with their masks, fetched when they are others: of the network as it learns, else of the last one. */
  async #fillMasks(training) {
    const learning = training.newest && Object.entries(training.newest.slices).map(([name, n]) => ({ row: state.project.scans.find((row) => row.name === name), n })).filter(({ row }) => row);
    const shown = learning || rows(true).filter((row) => row.predicted).slice(0, 12).map((row) => ({ row, n: null }));
    const key = JSON.stringify([training.number, training.newest?.epoch, shown.map(({ row, n }) => [row.id, n, row.doubt, row.volumes])]);
    if (key === this.masks || !shown.length) return;
    this.masks = key;
    const path = (row, n) => (learning ? `/api/train/mask/${row.id}` : `/api/scans/${row.id}/mask/0/${n}`);
    const pictures = await Promise.all(shown.map(({ row, n }) => picture(row, n, path)));
    if (key === this.masks) this.live.replaceChildren(...pictures);
  }

  async #train() {
    localStorage.setItem("minutes", this.minutes.value);
    await attempt(() => api.post("/api/train", { minutes: Number(this.minutes.value), who: state.who }));
  }

  #ask(what) {
    return attempt(() => api.post(`/api/train/${what}`, { who: state.who }));
  }
}

const HEAD = { idle: "Train a network on what you labelled", preparing: "Preparing", training: "Training", predicting: "Segmenting all scans", stopped: "Stopped", failed: "Training failed", done: "Training finished" };

/** A slice under its mask; the middle one, if none is named. */
async function picture(row, chosen, path) {
  const canvas = el("canvas");
  try {
    const scan = await api.opened(row.id, () => {});
    const plane = scan.planes[0];
    const n = chosen ?? Math.floor(plane.count / 2);
    const [image, mask] = await Promise.all([api.bytes(`/api/scans/${row.id}/image/0/${n}`), api.bytes(path(row, n))]);
    canvas.dataset.coloured = mask?.some((value) => value) ?? false;
    canvas.width = plane.columns;
    canvas.height = plane.rows;
    const context = canvas.getContext("2d");
    const data = context.createImageData(plane.columns, plane.rows);
    const table = new Map([...colours()].map(([value, colour]) => [value, channels(colour)]));
    image?.forEach((grey, at) => {
      const colour = mask?.[at] ? table.get(mask[at]) : null;
      for (let each = 0; each < 3; each += 1) data.data[4 * at + each] = colour ? 0.55 * grey + 0.45 * colour[each] : grey;
      data.data[4 * at + 3] = 255;
    });
    context.putImageData(data, 0, 0);
  } catch { /* its row says what is wrong */ }
  return el("figure", {}, canvas, el("figcaption", {}, row.name));
}
