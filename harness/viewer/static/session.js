// One session: pages from the server, jumps, search, following, keys.
import { Rows } from "./rows.js";
import { linkChildren, openChild } from "./child.js";
import { Search } from "./search.js";

const app = document.getElementById("app");
const api = `${app.dataset.base}/api/sessions/${app.dataset.key}`;
const seenKey = `seen:${app.dataset.key}`;
const FRESH = 3000; // milliseconds between looks while the session grows
const IDLE = 10000;
const WHOLE = 64_000_000; // bytes up to which the whole session is read unasked

const byId = (id) => document.getElementById(id);
let told = 0;
function state(text) {
  byId("state").textContent = text;
  clearTimeout(told);
  told = setTimeout(() => (byId("state").textContent = ""), 6000);
}
let before = app.dataset.before;
let after = app.dataset.after;
let atEnd = Boolean(app.dataset.atEnd);
let outline = null; // {keys, prompts}: where each turn stands in the whole session
let children = new Map(); // sub-agents by the call that started them
let loading = null;
let following = true;
let news = 0; // when something new came last
const rows = new Rows(byId("scroller"), byId("turns"), {
  onShown: near,
  onNode: (node) => linkChildren(node, children, app.dataset.base),
  mayStick: () => atEnd && following,
});

async function get(path) {
  const answer = await fetch(`${api}${path}`);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

const row = ({ key, html }) => ({ key, html });
const isPrompt = ({ html }) => /data-kind="(prompt|queued)"/.test(html);

function fromPage(nodes) {
  return [...nodes].filter((node) => node.dataset.key).map((node) => ({ key: node.dataset.key, html: node.outerHTML }));
}

// How many turns of the whole session lie before and behind these; none that we know of without an outline.
function around(list) {
  const first = outline?.index.get(list[0]?.key);
  const last = outline?.index.get(list.at(-1)?.key);
  return [first ?? 0, last === undefined ? 0 : outline.keys.length - 1 - last];
}

// One page is on its way at a time. A failed one leaves the view as it is, and the next scroll tries again.
async function load(where, cursor = "") {
  while (loading) await loading;
  byId("turns").setAttribute("aria-busy", "true");
  const asked = where === "scroll" ? "around" : where;
  const path = `/turns?html=1&where=${asked}&cursor=${encodeURIComponent(cursor)}`;
  loading = get(path).then(
    (page) => take(where, cursor, page),
    (error) => state(error.message),
  );
  const came = await loading;
  loading = null;
  byId("turns").setAttribute("aria-busy", "false");
  if (came) near();
}

function take(where, cursor, page) {
  const turns = page.turns.map(row);
  if (where === "before") {
    before = page.before;
    grow(turns, []);
  } else if (where === "after" && !page.gap) {
    [after, atEnd] = [page.after, page.atEnd];
    note(turns);
    grow([], turns);
  } else if (where === "after" && !rows.stuck) {
    // Nobody who reads further up is pulled down; the end is a key away.
    [after, atEnd] = ["", false];
    state("The end of the session has changed: press End to see it.");
    return false;
  } else {
    [before, after, atEnd] = [page.before, page.after, page.atEnd];
    rows.reset(turns, ...around(turns), placeOf(where, cursor, page));
  }
  return turns.length > 0;
}

// Where a reader is to be in a page that replaces all others. Who is scrolling stays where the bar is.
function placeOf(where, cursor, page) {
  if (where === "scroll") return {};
  if (where === "tail" || page.gap) return { end: true };
  return { key: startOf(page.turns, cursor) };
}

const startOf = (turns, key) => (turns.some((turn) => turn.key === key) ? key : turns[0]?.key);

// A page may bring turns again that have grown since: those are replaced where they stand.
function grow(above, below) {
  for (const turn of [...above, ...below]) rows.replace(turn);
  const fresh = (turn) => !rows.has(turn.key);
  const all = [...above.filter(fresh), ...rows.rows, ...below.filter(fresh)];
  rows.change(all, ...around(all));
}

// What was written after the whole was read belongs to the outline too.
function note(turns) {
  if (!outline || !outline.index.has(rows.rows.at(-1)?.key)) return;
  for (const turn of turns) {
    if (outline.index.has(turn.key)) continue;
    outline.index.set(turn.key, outline.keys.push(turn.key) - 1);
    if (isPrompt(turn)) outline.prompts.push({ key: turn.key });
  }
}

// Called with every change of what is shown: fetch what comes next, before it is reached.
function near() {
  const [first, last] = rows.shown;
  const { scrollTop, clientHeight } = rows.scroller;
  if (loading || !rows.rows.length) return;
  const beyond = Math.max(rows.tops[0] - (scrollTop + clientHeight), scrollTop - rows.bottom);
  if (outline && beyond > 2 * clientHeight) far();
  else if (before && first === 0 && scrollTop - rows.tops[0] < 1200) load("before", before);
  else if (after && !atEnd && last === rows.rows.length) load("after", after);
}

function far() {
  const at = Math.min(Math.max(rows.guess(), 0), outline.keys.length - 1);
  load("scroll", outline.keys[at]);
}

async function jump(key) {
  if (!rows.has(key)) {
    await load("around", key);
  }
  const found = rows.show(key);
  if (found) history.replaceState(null, "", `?at=${encodeURIComponent(key)}`);
  return found;
}

const toStart = async () => {
  if (before) await load("head");
  if (rows.rows.length) rows.show(rows.rows[0].key);
};

const toEnd = async () => {
  if (!atEnd) await load("tail");
  rows.toEnd();
};

// The prompts of the whole session, or of what is loaded until the whole was read.
function prompts() {
  if (outline) return outline.prompts.map((prompt) => prompt.key);
  return rows.rows.filter(isPrompt).map((each) => each.key);
}

function position(key) {
  return outline?.index.get(key) ?? rows.index.get(key) ?? -1;
}

// Where the reader is: at the turn with the focus while it is on the screen, else at the one at its top.
function place() {
  const focused = document.activeElement?.closest?.("article.turn");
  const box = focused?.getBoundingClientRect();
  const screen = rows.scroller.getBoundingClientRect();
  const isSeen = box && box.bottom > screen.top && box.top < screen.bottom;
  return isSeen ? focused.dataset.key : rows.current()?.key;
}

async function toPrompt(step) {
  const here = position(place());
  const all = prompts();
  const ahead = all.filter((key) => (step > 0 ? position(key) > here : position(key) < here));
  const key = step > 0 ? ahead[0] : ahead.at(-1);
  if (key) await jump(key);
  else state(step > 0 ? "No later prompt." : "No earlier prompt.");
}

async function readWhole() {
  const whole = await get("?html=1");
  byId("summary").innerHTML = whole.html; // made by the server
  const keys = whole.outline.keys;
  outline = { ...whole.outline, index: new Map(keys.map((key, at) => [key, at])) };
  children = new Map(whole.children.filter((child) => child.call).map((child) => [child.call, child]));
  for (const node of byId("turns").children) linkChildren(node, children, app.dataset.base);
  rows.change(rows.rows, ...around(rows.rows));
}

function offerWhole() {
  const ask = document.createElement("button");
  ask.type = "button";
  ask.textContent = "Count the whole session";
  ask.onclick = () => {
    ask.textContent = "Reading…";
    readWhole().catch((error) => (byId("summary").textContent = error.message));
  };
  byId("summary").replaceChildren("A large file: totals are not known yet. ", ask);
}

async function poll() {
  if (following && atEnd && !loading && !document.hidden) {
    const had = rows.rows.at(-1)?.key;
    await load("after", after);
    const more = rows.rows.length - 1 - (rows.index.get(had) ?? 0);
    if (more > 0) {
      news = Date.now();
      state(`${more} new ${more === 1 ? "turn" : "turns"}`);
    }
  }
  setTimeout(poll, isGrowing() ? FRESH : IDLE);
}

// A session whose last turn is younger than two minutes, or came less than two minutes ago, is being written.
function isGrowing() {
  const time = rows.rows.at(-1)?.html.match(/datetime="([^"]+)"/);
  return Date.now() - Math.max(news, time ? Date.parse(time[1]) : 0) < 120_000;
}

function toggle(id, on) {
  byId(id).setAttribute("aria-pressed", String(on));
}

function expand() {
  rows.expandAll(!rows.expanded);
  toggle("expand", rows.expanded);
}

function follow() {
  following = !following;
  toggle("follow", following);
  if (following) toEnd();
}

function step(by) {
  const at = rows.index.get(place()) ?? 0;
  const next = rows.rows[at + by];
  if (next) rows.show(next.key);
}

const KEYS = {
  "[": () => toPrompt(-1),
  "]": () => toPrompt(1),
  j: () => step(1),
  k: () => step(-1),
  e: expand,
  f: follow,
  "/": () => byId("q").focus(),
  Home: toStart,
  End: toEnd,
};

addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey;
  if (event.key === "Escape") byId("hits").hidden = true;
  if (busy || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

for (const [id, act] of [
  ["prompt-up", () => toPrompt(-1)],
  ["prompt-down", () => toPrompt(1)],
  ["to-start", toStart],
  ["to-end", toEnd],
  ["expand", expand],
  ["follow", follow],
]) byId(id).addEventListener("click", act);

document.addEventListener("click", (event) => {
  const at = event.target.closest("[data-jump]");
  const picture = event.target.closest("a.picture");
  const child = event.target.closest("a.child");
  const link = event.target.closest("a.link");
  if (at) jump(at.dataset.jump);
  else if (link) jump(link.closest(".turn").dataset.key);
  else if (picture) showPicture(picture);
  else if (child) openChild(child, app.dataset.base);
  else return;
  event.preventDefault();
});

function showPicture(link) {
  const picture = document.createElement("img");
  picture.alt = link.textContent;
  picture.onerror = () => picture.replaceWith("This picture cannot be shown; the raw file has it.");
  picture.src = link.href;
  link.replaceWith(picture);
}

// Where the reader was last time: a line there, and what came since below it.
function markSeen() {
  const seen = localStorage.getItem(seenKey);
  const at = rows.index.get(seen);
  if (at === undefined || at === rows.rows.length - 1) return;
  const marked = rows.rows[at].html.replace('class="turn', 'class="seen turn');
  rows.replace({ key: seen, html: marked });
}

// Turns of the page's window that only a reader without a script gets at once.
function waiting(id) {
  const holder = document.createElement("template");
  holder.innerHTML = byId(id).textContent; // made by the server
  return holder.content.children;
}

function begin() {
  const loaded = [waiting("lead"), byId("turns").children, waiting("rest")].flatMap(fromPage);
  const { at } = app.dataset;
  rows.reset(loaded, 0, 0, at ? { key: startOf(loaded, at) } : { end: true });
  markSeen();
  if (at) rows.show(at);
  addEventListener("pagehide", () => localStorage.setItem(seenKey, rows.rows.at(-1)?.key ?? ""));
  new Search(byId("find"), byId("hits"), get, jump, state);
  setTimeout(() => {
    if (Number(app.dataset.size) > WHOLE) offerWhole();
    else readWhole().catch((error) => (byId("summary").textContent = error.message));
  }, 400);
  setTimeout(poll, FRESH);
  document.documentElement.dataset.ready = "1";
}

begin();
