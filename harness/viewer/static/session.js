// One session: pages from the server, jumps, search, following, keys.
import { Rows } from "./rows.js";
import { counted } from "./counting.js";
import { linkChildren, openChild } from "./child.js";
import { isPrompt, Outline, placeOf } from "./outline.js";
import { openRest } from "./rest.js";
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
let outline = null; // where each turn stands in the whole session, once that was read
let filling = null; // what came behind the outline, on its way
let children = new Map(); // sub-agents by the call that started them
let loading = null;
let following = true;
let stale = false; // what is shown was taken back: nothing may be put beside it
let wholes = 0; // times that the whole was asked for
let chasing = false; // a follower was too far behind for one page
let seen = localStorage.getItem(seenKey); // where the reader stopped last time
let news = 0; // when something new came last
const rows = new Rows(byId("scroller"), byId("turns"), {
  onShown: near,
  onNode: dress,
  mayStick: () => atEnd && following,
});

async function get(path) {
  const answer = await fetch(`${api}${path}`);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

const row = ({ key, kind, at, html }) => ({ key, kind, at, html });

function fromPage(nodes) {
  return [...nodes].filter((node) => node.dataset.key).map((node) => {
    const { key, kind } = node.dataset;
    return { key, kind, at: node.querySelector("header time")?.dateTime, html: node.outerHTML };
  });
}

// What a turn gets that its markup does not have.
function dress(node) {
  linkAll(node);
  node.classList.toggle("seen", node.dataset.key === seen);
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
  note(page);
  if (where === "before") {
    before = page.before;
    grow(turns);
  } else if (where === "after" && !page.gap) {
    chasing = (atEnd || chasing) && !page.atEnd;
    [after, atEnd] = [page.after, page.atEnd];
    goOn(turns, page);
  } else if (where === "after" && !rows.stuck) {
    // Nobody who reads further up is pulled down; the end is a key away.
    [after, atEnd, stale] = ["", false, true];
    state("The end of the session has changed: press End to see it.");
    return false;
  } else {
    [before, after, atEnd, stale, chasing] = [page.before, page.after, page.atEnd, false, false];
    rows.reset(turns, ...around(turns), standing(where, cursor, page));
  }
  return turns.length > 0;
}

// Where a reader is to be in a page that replaces all others. Who is scrolling stays where the bar is.
function standing(where, cursor, page) {
  if (where === "scroll") return {};
  if (where === "tail" || page.gap) return { end: true };
  return { key: startOf(page.turns, cursor) };
}

const startOf = (turns, key) => (turns.some((turn) => turn.key === key) ? key : turns[0]?.key);

// A page in front may bring turns again that have grown since: those are replaced where they stand.
function grow(above) {
  for (const turn of above) rows.replace(turn);
  const all = [...above.filter((turn) => !rows.has(turn.key)), ...rows.rows];
  rows.change(all, ...around(all));
}

// A page behind others says what there is from its beginning on. What was there and is not any more was taken back.
function goOn(turns, page) {
  for (const turn of turns) rows.replace(turn);
  const stays = rows.rows.filter(({ key }) => placeOf(key) < page.start);
  if (!stays.length) before = page.before;
  const all = [...stays, ...turns.map((turn) => rows.rows[rows.index.get(turn.key)] ?? turn)];
  rows.change(all, ...around(all));
}

// What was written after the whole was read belongs to the outline too, and what was taken back does not.
function note(page) {
  if (page.gap || (outline && !outline.note(page))) forget(page.size);
  else if (outline?.misses(page)) fill();
}

// What came since the outline was made, where the pages that are shown do not say it.
function fill() {
  filling ??= filled().catch((error) => state(error.message)).finally(() => (filling = null));
  return filling;
}

async function filled() {
  const mine = outline;
  let page = { atEnd: !mine };
  while (mine === outline && !page.atEnd) {
    page = await get(`/turns?html=1&where=after&cursor=${encodeURIComponent(mine.after)}`);
    if (mine === outline) note(page);
  }
  if (mine === outline) rows.change(rows.rows, ...around(rows.rows));
}

// The session is another one now: where its turns were says nothing of where they are.
function forget(size) {
  outline = null;
  news = Date.now();
  app.dataset.size = size;
  readLater();
}

// Called with every change of what is shown: fetch what comes next, before it is reached.
function near() {
  const [first, last] = rows.shown;
  const { scrollTop, clientHeight } = rows.scroller;
  if (loading || !rows.rows.length) return;
  const beyond = Math.max(rows.tops[0] - (scrollTop + clientHeight), scrollTop - rows.bottom);
  if (outline && beyond > 2 * clientHeight && !rows.onScreen()) far();
  else if (before && first === 0 && scrollTop - rows.tops[0] < 1200)
    stale ? load("around", rows.rows[0].key) : load("before", before);
  else if (after && !atEnd && last === rows.rows.length) load("after", after);
}

function far() {
  const at = Math.min(Math.max(rows.guess(), 0), outline.keys.length - 1);
  load("scroll", outline.keys[at]);
}

async function jump(key) {
  if (stale || !rows.has(key)) await load("around", key);
  const found = rows.show(key);
  if (found) history.replaceState(null, "", `?at=${encodeURIComponent(key)}`);
  return found;
}

const toStart = async () => {
  if (before || stale) await load("head");
  if (rows.rows.length) rows.show(rows.rows[0].key);
};

const toEnd = async () => {
  if (!atEnd) await load("tail");
  rows.toEnd();
};

// The prompts of the whole session, or of what is loaded until the whole was read.
function prompts() {
  if (outline) return outline.prompts;
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

function promptFrom(step) {
  const here = position(place());
  const ahead = prompts().filter((key) => (step > 0 ? position(key) > here : position(key) < here));
  return step > 0 ? ahead[0] : ahead.at(-1);
}

async function toPrompt(step) {
  await filling;
  let key = promptFrom(step);
  if (!key && step > 0) {
    await fill();
    key = promptFrom(step);
  }
  if (key) await jump(key);
  else state(step > 0 ? "No later prompt." : "No earlier prompt.");
}

async function readWhole() {
  const mine = ++wholes;
  const whole = await counted(get, (words) => mine === wholes && (byId("summary").textContent = words));
  if (mine !== wholes) return;
  byId("summary").innerHTML = whole.html; // made by the server
  outline = new Outline(whole.outline, app.dataset.base, app.dataset.key);
  children = new Map(whole.children.filter((child) => child.call).map((child) => [child.call, child]));
  for (const node of byId("turns").children) linkAll(node);
  rows.change(rows.rows, ...around(rows.rows));
  if (rows.rows.some(({ key }) => !outline.index.has(key))) fill();
}

// Unasked, where that is not dear.
function readLater() {
  const mine = ++wholes;
  setTimeout(() => {
    if (mine !== wholes) return;
    if (Number(app.dataset.size) > WHOLE) offerWhole();
    else readWhole().catch((error) => (byId("summary").textContent = error.message));
  }, 400);
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
    const had = new Set(rows.index.keys());
    const known = wholes;
    await load("after", after);
    const more = rows.rows.filter(({ key }) => !had.has(key)).length;
    if (more > 0 && known === wholes) {
      news = Date.now();
      state(`${more} new ${more === 1 ? "turn" : "turns"}`);
    }
  } else if (following && outline && !loading && !document.hidden) await fill();
  setTimeout(poll, isGrowing() ? FRESH : IDLE);
}

// A session whose last turn is younger than two minutes, or came less than two minutes ago, is being written.
function isGrowing() {
  const time = Date.parse(rows.rows.at(-1)?.at ?? "") || 0;
  return Date.now() - Math.max(news, time) < 120_000;
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
  const rest = event.target.closest("a.rest");
  if (at) jump(at.dataset.jump);
  else if (rest) openRest(rest, app.dataset.base, rows.expanded).then(linkAll);
  else if (link && !link.closest(".inside")) jump(link.closest(".turn").dataset.key);
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

const linkAll = (node) => linkChildren(node, children, app.dataset.base);

// The last turn that is on the screen, to be marked next time.
function leave() {
  const { scrollTop, clientHeight } = rows.scroller;
  const last = rows.rows[rows.at(scrollTop + clientHeight - 12)];
  if (last && !stale) localStorage.setItem(seenKey, last.key);
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
  if (atEnd && seen === loaded.at(-1)?.key) seen = null; // nothing is new: nothing is to be marked
  rows.reset(loaded, 0, 0, at ? { key: startOf(loaded, at) } : { end: true });
  if (at) rows.show(at);
  addEventListener("pagehide", leave);
  new Search(byId("find"), byId("hits"), get, jump, state);
  readLater();
  setTimeout(poll, FRESH);
  document.documentElement.dataset.ready = "1";
}

begin();
