// Small helpers that make elements, and say things.

/** An element; `on...` attributes are listeners, `dataset` and others are set as they are. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") made[key] = value;
    else if (key === "colour") made.style.background = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A line drawing for a button. */
export function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  for (const part of path.split("|")) {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("d", part);
    svg.append(line);
  }
  return svg;
}

/** Say something for a few seconds; what went wrong stays longer. */
export function toast(sentence, bad = false) {
  const place = document.getElementById("toasts");
  if ([...place.children].some((child) => child.textContent === sentence)) return;
  const made = el("div", { class: bad ? "toast bad" : "toast" }, sentence);
  place.append(made);
  setTimeout(() => made.remove(), bad ? 9000 : 3500);
}

/** Do something that may be refused; a refusal is said in the server's own words. */
export async function attempt(doing) {
  try {
    return await doing();
  } catch (error) {
    toast(error.message, true);
    return null;
  }
}

/** Ask one question in a dialog; `null` if it was closed without an answer. */
export function ask(title, body, { ok = "OK", cancel = "Cancel" } = {}) {
  return new Promise((resolve) => {
    const form = el("form", { method: "dialog" }, el("h2", {}, title), body);
    const close = (answer) => () => { box.close(); box.remove(); resolve(answer); };
    form.append(el("div", { class: "row" },
      el("button", { class: "main", value: "ok" }, ok),
      cancel && el("button", { type: "button", onclick: close(null) }, cancel)));
    form.addEventListener("submit", (event) => { event.preventDefault(); close(answers(new FormData(form)))(); });
    const box = el("dialog", { oncancel: close(null) }, form);
    [...form.children].slice(1).forEach((child) => child.style.setProperty("margin-top", "12px"));
    document.body.append(box);
    box.showModal();
  });
}

/** What a form says, by name; a list where there are several, as of files. */
function answers(given) {
  return Object.fromEntries([...new Set(given.keys())].map((name) => [name, given.getAll(name).length > 1 ? given.getAll(name) : given.get(name)]));
}

/** `1 scan`, `2 scans`. */
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/** A colour with an opacity, as canvas understands it. */
export function channels(colour) {
  const number = Number.parseInt(colour.slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}
