// The panel of what is known of a region without drawing it: present or absent, an area in this slice, a volume in the scan.

import { el, toast } from "./dom.js";
import { act, classOf, state } from "./state.js";

const UNITS = { slice: ["mm²", "px"], scan: ["ml"] };
const SHORT = { "mm²": "mm2", px: "px", ml: "ml" };
const LONG = { mm2: "mm²", px: "px", ml: "ml" };

/** What is known of a class in some slice, or in the whole scan (`null`). */
export const factOf = (facts, klass, slice) => facts.find((fact) => fact.class === klass && fact.slice === slice);

/** The panel, for the class in hand. `slices` are the file's numbers of those that are chosen, of so many in the scan. */
export function factsPanel(facts, slices, count) {
  const klass = classOf(state.klass);
  if (!klass || klass.value === 0) {
    return el("section", {}, el("h3", {}, "Sizes"), el("p", { class: "note" }, "Choose a class to say how large it is, or that it is absent."));
  }
  const here = factOf(facts, klass.value, slices[0]);
  const whole = factOf(facts, klass.value, null);
  const where = slices.length > 1 ? `${slices.length} slices` : `Slice ${slices[0] + 1}`;
  const set = (present) => () => setPresent(facts, slices, here?.present === present ? null : present);
  const choice = (present, words, key) =>
    el("button", { "aria-pressed": String(here?.present === present), onclick: set(present), title: `${words} (${key})` }, words);
  return el("section", { class: "known" },
    el("h3", {}, `${klass.name}: what you know`),
    el("div", { class: "row apart" }, el("span", {}, where),
      el("span", { class: "choice" }, choice(true, "present", "Y"), choice(false, "absent", "N"))),
    measure("slice", here, (size) => act("fact", { class: klass.value, slices, present: size ? true : (here?.present ?? null), size })),
    sized(facts, slices) !== undefined && el("button", { class: "quiet", onclick: () => copyOn(facts, slices, count), title: "The size of this slice for both neighbours; of several chosen slices, for those (C)" }, slices.length > 1 ? "Copy to the chosen slices" : "Copy to both neighbours"),
    here?.warning && el("p", { class: "note warn" }, here.warning),
    el("div", { class: "row apart" }, el("span", {}, "Whole scan"), el("small", {}, told(whole))),
    measure("scan", whole, (size) => act("fact", { class: klass.value, slice: null, present: null, size })),
    whole?.warning && el("p", { class: "note warn" }, whole.warning));
}

/** Present or absent, in all chosen slices; a size that was known stays where it can. */
export function setPresent(facts, slices, present) {
  const known = factOf(facts, state.klass, slices[0]);
  const size = present === true && slices.length === 1 ? (known?.size ?? null) : null;
  return act("fact", { class: state.klass, slices, present, size });
}

/** The first of some slices that has a size. */
const sized = (facts, slices) => slices.find((slice) => factOf(facts, state.klass, slice)?.size);

/** The size of a slice for the others that are chosen, or for both neighbours. */
export async function copyOn(facts, slices, count) {
  const from = sized(facts, slices);
  if (from === undefined) return toast("there is no size here to copy", true);
  const { size } = factOf(facts, state.klass, from);
  const others = slices.length > 1 ? slices.filter((slice) => slice !== from) : [from - 1, from + 1];
  const there = others.filter((slice) => slice >= 0 && slice < count);
  const done = await act("fact", { class: state.klass, slices: there, present: true, size });
  if (done) toast(`copied to ${there.length === 1 ? "slice" : "slices"} ${there.map((slice) => slice + 1).join(", ")}`);
  return done;
}

function told(fact) {
  if (!fact?.size) return "";
  const { low, high, unit } = fact.size;
  return `${short(low)} to ${short(high)} ${LONG[unit]}`;
}

/** A number with a margin: `100 ± 15 %`; empty takes it back. */
function measure(kind, fact, save) {
  const size = fact?.size;
  const middle = size ? (size.low + size.high) / 2 : "";
  const margin = size && middle ? Math.round((50 * (size.high - size.low)) / middle) : 15;
  const number = el("input", { inputmode: "decimal", "aria-label": kind === "slice" ? "area in this slice" : "volume of the whole scan", placeholder: kind === "slice" ? "area" : "volume", value: size ? short(middle) : "", autocomplete: "off" });
  const share = el("input", { class: "share", type: "number", min: 0, max: 90, value: margin, title: "margin in percent", "aria-label": "margin in percent" });
  const unit = UNITS[kind].length === 1 ? el("span", { class: "soft" }, UNITS[kind][0]) : el("select", { "aria-label": "unit" },
    UNITS[kind].map((name) => el("option", { value: SHORT[name], selected: size?.unit === SHORT[name] }, name)));
  const keep = async () => {
    const text = number.value.trim().replace(",", ".");
    const value = Number(text);
    if (text !== "" && !(value > 0 && Number.isFinite(value))) return toast(`${number.value}: a size is a number above 0; leave it empty if you do not know`, true);
    const part = Math.min(90, Math.max(0, Number(share.value) || 0)) / 100;
    const wanted = text === "" ? null : { low: round(value * (1 - part)), high: round(value * (1 + part)), unit: unit.value ?? "ml" };
    if (!wanted && !size) return null;
    const kept = await save(wanted);
    if (!kept) number.value = size ? short(middle) : ""; // it was refused
    return kept;
  };
  for (const field of [number, share, unit]) {
    field.addEventListener("change", keep);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") field.blur();
      event.stopPropagation();
    });
  }
  return el("div", { class: "measure" }, number, unit, el("label", { class: "row" }, "±", share, "%"));
}

const round = (value) => Math.round(value * 1000) / 1000;
const short = (value) => String(Number(value.toPrecision(4)));
