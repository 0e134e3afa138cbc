// The page: five tabs, one open scan, and news from the server.

import * as api from "./api.js";
import { ask, attempt, count, el, toast } from "./dom.js";
import { ExportPage } from "./export.js";
import { help } from "./help.js";
import { key } from "./keys.js";
import { rows } from "./panels.js";
import { scansPage } from "./scans.js";
import { refresh, refreshSoon, scanRow, state, step, subscribe, tell } from "./state.js";
import { TrainPage } from "./train.js";
import { Workspace } from "./workspace.js";

const TABS = { scans: "Scans", label: "Label", train: "Train", review: "Review", export: "Export" };
const screen = document.getElementById("screen");
let tab = "scans";
let work = null;
let page = null;
window.studio = { state, get work() { return work; } }; // for whoever looks into the page

function tabs() {
  document.getElementById("tabs").replaceChildren(...Object.entries(TABS).map(([name, words], index) =>
    el("button", { role: "tab", "data-tab": name, "aria-selected": String(name === tab), title: `F${index + 1}`, onclick: () => show(name) }, words)));
}

/** Go to a tab. */
function show(name, chosen = null) {
  const scan = chosen ?? state.scan;
  if (name === tab && screen.childElementCount && name !== "label" && name !== "review") return;
  tab = name;
  work = null;
  page = null;
  tabs();
  if (name === "label" || name === "review") {
    work = new Workspace(name === "review");
    screen.replaceChildren(work.element);
    work.open(name === "review" && !chosen ? worst() : (scan ?? worst()));
    work.element.querySelector(".stage").focus({ preventScroll: true });
  } else if (name === "scans") {
    screen.replaceChildren(scansPage());
  } else {
    page = name === "train" ? new TrainPage() : new ExportPage();
    screen.replaceChildren(page.element);
    page.draw();
  }
}

/** The scan to begin with: in review the one with most against its mask, else the first. */
const worst = () => rows(tab === "review").find((row) => !row.error)?.id ?? null;

/** The line at the top: what is known, and what is missing. */
function known() {
  const { known: words, missing } = state.project;
  document.getElementById("known").replaceChildren(words, ...(missing.length ? [" · ", el("b", {}, `to train: ${missing[0]}`)] : []));
  document.getElementById("known").title = [words, ...missing].join("\n");
  document.title = `${state.project.name} · inbounds studio`;
}

subscribe(async (news) => {
  if (news.open !== undefined) return show("label", news.open);
  if (news.tab) return show(news.tab);
  if (news.reload) return refreshSoon();
  if (news.undo || news.redo) {
    const done = await step(news.undo ? "undo" : "redo");
    if (done?.scan && done.scan !== state.scan && work) await work.open(done.scan);
    else if (done && work) await work.changed();
    return refreshSoon();
  }
  if (news.project) {
    known();
    if (tab === "scans") keepingScroll(() => screen.replaceChildren(scansPage()));
    else if (work) {
      work.panels();
      if (work.open_ && scanRow()?.training !== work.open_.row.training) work.changed();
    } else page?.draw();
  }
  if (news.training) {
    const was = state.project.training;
    state.project.training = news.training;
    if (tab === "train") page.draw();
    if (was.state !== news.training.state || was.number !== news.training.number) {
      refreshSoon();
      if (tab !== "train" && ["done", "failed"].includes(news.training.state)) toast(news.training.sentence, news.training.state === "failed");
    }
  }
  if (news.kind) {
    refreshSoon();
    if (work?.open_ && news.scan === state.scan && news.sequence > (work.open_.sequence ?? 0)) work.changed();
  }
  return undefined;
});

function keepingScroll(doing) {
  const typing = document.activeElement?.closest?.("#screen input");
  if (typing) return;
  const top = screen.firstElementChild?.scrollTop ?? 0;
  doing();
  screen.firstElementChild.scrollTop = top;
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=range]):not([type=color]), select, textarea, dialog");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const number = /^F([1-5])$/.exec(event.key);
  if (number) { show(Object.keys(TABS)[Number(number[1]) - 1]); return event.preventDefault(); }
  if (event.key === "?") return help();
  if ((event.ctrlKey || event.metaKey) && "zy".includes(event.key.toLowerCase())) {
    event.preventDefault();
    return tell(event.key.toLowerCase() === "y" || event.shiftKey ? { redo: true } : { undo: true });
  }
  if (!work) return undefined;
  if (event.key === " ") { work.spaceHeld = true; return event.preventDefault(); }
  const onButton = event.target.closest("button");
  if (onButton && ["Enter", "Tab", " "].includes(event.key)) return undefined;
  if (key(event, work)) event.preventDefault();
  return undefined;
});
document.addEventListener("keyup", (event) => { if (event.key === " " && work) work.spaceHeld = false; });

async function name(first = false) {
  const answer = await ask("Who are you?", el("div", {}, el("p", {}, "A name or initials, kept in this browser and with everything you do, so that two people can share a project."),
    el("p", {}, el("input", { name: "who", value: state.who, maxlength: 60, required: true, autofocus: true, autocomplete: "off" }))), { cancel: first ? null : "Cancel" });
  if (answer?.who.trim()) {
    state.who = answer.who.trim();
    localStorage.setItem("who", state.who);
  }
  document.getElementById("who").textContent = state.who || "no name";
}

document.getElementById("help").addEventListener("click", help);
document.getElementById("who").addEventListener("click", () => name());
let broken = false;
await attempt(async () => {
  await refresh();
  api.listen(state.project.sequence, (news) => { broken = false; tell(news); }, () => {
    if (!broken) toast("the studio's server is gone; what it confirmed is kept, and this page goes on when it is back", true);
    broken = true;
  });
});
if (state.project) {
  known();
  tabs();
  show("scans");
  document.getElementById("who").textContent = state.who || "no name";
  if (!state.who) await name(true);
  const bad = state.project.scans.filter((row) => row.error).length;
  if (bad) toast(`${count(bad, "scan")} cannot be read; the others work`, true);
} else {
  screen.replaceChildren(el("div", { class: "page" }, el("h2", {}, "The studio cannot be reached"), el("p", {}, "Open the address that the command printed, with its token.")));
}
