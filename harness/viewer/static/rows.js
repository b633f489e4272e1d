// A list of which only the rows near the screen are in the document.
//
// Rows are a contiguous piece of the session. `lead` and `trail` say how many turns lie before and
// behind them: they take their estimated room, so that the scroll bar tells the truth.
//
// The place on the screen is an anchor (a row, and how far the screen's top is below its own), or
// the end when `stuck`. Whatever changes, heights or rows, the anchor stays where it is.

const ESTIMATE = 64; // pixels of a row that was never shown
const OVERSCAN = 600; // pixels kept ready above and below the screen
const MOST = 54; // rows in the document at once
const NEAR_END = 24; // pixels from the bottom within which new rows are followed

export class Rows {
  constructor(scroller, list, { onShown, onNode, mayStick }) {
    Object.assign(this, { scroller, list, onShown, onNode, mayStick });
    this.rows = [];
    this.lead = 0;
    this.trail = 0;
    this.expanded = false;
    this.stuck = false;
    this.anchor = null;
    this.shown = [0, 0];
    this.frame = 0;
    this.put = 0; // where it was scrolled to from here
    this.observer = new ResizeObserver((entries) => this.measured(entries));
    this.sum();
    scroller.addEventListener("scroll", () => this.later(), { passive: true });
    addEventListener("resize", () => this.later());
    // Opening or closing a fold must survive its row's leaving the document.
    list.addEventListener("toggle", (event) => this.folded(event.target), true);
  }

  // Show other rows altogether: from the one with this key on, their end, or what the scroll bar stands at.
  reset(rows, lead, trail, { key, end = false }) {
    this.observer.disconnect();
    this.list.replaceChildren();
    Object.assign(this, { rows, lead, trail, anchor: key ? { key, delta: -8 } : null, stuck: end });
    this.settle();
  }

  // Put in other rows around those that are there, or tell how many lie beyond them.
  change(rows, lead, trail) {
    if (!this.anchor && !this.stuck) this.remember();
    this.heed();
    Object.assign(this, { rows, lead, trail });
    this.settle();
  }

  replace(row) {
    const at = this.index.get(row.key);
    const old = this.rows[at];
    if (!old || old.html === row.html) return;
    this.heed();
    old.node?.remove();
    this.rows[at] = { ...row, height: old.height, open: old.open };
    this.settle();
  }

  has(key) {
    return this.index.has(key);
  }

  // Bring a row to the top of the screen, or as near as the list allows, and give it the focus.
  show(key, { focus = true } = {}) {
    if (!this.has(key)) return false;
    this.stuck = false;
    this.anchor = { key, delta: -8 };
    this.settle();
    if (focus) this.rows[this.index.get(key)].node?.focus({ preventScroll: true });
    return true;
  }

  toEnd() {
    this.stuck = true;
    this.settle();
  }

  // The row at the top of the screen.
  current() {
    return this.rows[this.at(this.scroller.scrollTop + 12)];
  }

  // The number, in the whole session, of the turn that a place in the scroll bar stands for.
  guess() {
    const { scrollTop } = this.scroller;
    if (scrollTop < this.tops[0]) return Math.floor(scrollTop / ESTIMATE);
    return this.lead + this.rows.length + Math.floor((scrollTop - this.bottom) / ESTIMATE);
  }

  // Whether the screen shows a row. Rows that were not measured yet may reach further than their estimates say.
  onScreen() {
    const screen = this.scroller.getBoundingClientRect();
    const first = this.list.firstElementChild?.getBoundingClientRect();
    const last = this.list.lastElementChild?.getBoundingClientRect();
    return Boolean(first) && first.top < screen.bottom && last.bottom > screen.top;
  }

  atBottom() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight <= NEAR_END;
  }

  expandAll(open) {
    this.expanded = open;
    for (const row of this.rows) {
      row.open = undefined;
      if (row.node) this.fold(row);
    }
    this.settle();
  }

  sum() {
    let top = this.lead * ESTIMATE;
    let day = "";
    for (const row of this.rows) {
      row.day ??= row.html.match(/ data-day="([^"]*)"/)?.[1] ?? "";
      row.opensDay = row.day !== "" && row.day !== day;
      day = row.day || day;
    }
    this.index = new Map(this.rows.map((row, at) => [row.key, at]));
    this.tops = this.rows.map((row) => {
      const mine = top;
      top += row.height ?? ESTIMATE;
      return mine;
    });
    this.bottom = top;
  }

  // The index of the row that covers a height, by halving.
  at(height) {
    let low = 0;
    let high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= height) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  range(top) {
    const { clientHeight } = this.scroller;
    const first = this.at(top - OVERSCAN);
    const last = Math.min(this.at(top + clientHeight + OVERSCAN) + 1, this.rows.length);
    if (last - first <= MOST) return [first, last];
    const middle = this.at(top + clientHeight / 2);
    const from = Math.max(first, middle - MOST / 2);
    return [from, Math.min(last, from + MOST)];
  }

  later() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.stuck = this.mayStick() && this.atBottom();
      this.remember();
      this.put = this.scroller.scrollTop;
      this.render(this.scroller.scrollTop);
      this.onShown();
    });
  }

  remember() {
    const row = this.current();
    this.anchor = row ? { key: row.key, delta: this.scroller.scrollTop - this.tops[this.index.get(row.key)] } : null;
  }

  // Who has scrolled since, and whose scrolling was not told yet, is not taken back.
  heed() {
    if (Math.abs(this.scroller.scrollTop - this.put) <= 1 || (this.stuck && this.atBottom())) return;
    this.stuck = false;
    this.remember();
  }

  settle() {
    this.sum();
    const top = this.target();
    this.render(top);
    this.scroller.scrollTop = this.stuck ? this.scroller.scrollHeight : top;
    this.put = this.scroller.scrollTop;
    this.onShown();
  }

  target() {
    const { scrollTop, clientHeight } = this.scroller;
    if (this.stuck) return Math.max(0, this.bottom + this.trail * ESTIMATE - clientHeight);
    const at = this.index.get(this.anchor?.key);
    return at === undefined ? scrollTop : this.tops[at] + this.anchor.delta;
  }

  render(top) {
    const [first, last] = this.range(top);
    const nodes = this.rows.slice(first, last).map((row) => this.node(row));
    const keep = new Set(nodes);
    for (const node of [...this.list.children]) if (!keep.has(node)) this.drop(node);
    nodes.forEach((node, at) => {
      const there = this.list.children[at];
      if (there !== node) this.list.insertBefore(node, there ?? null);
      node.classList.toggle("new-day", this.rows[first + at].opensDay);
      node.setAttribute("aria-posinset", String(this.lead + first + at + 1));
      node.setAttribute("aria-setsize", String(this.lead + this.rows.length + this.trail));
    });
    this.list.style.paddingTop = `${this.tops[first] ?? 0}px`;
    this.list.style.paddingBottom = `${this.bottom - (this.tops[last] ?? this.bottom) + this.trail * ESTIMATE}px`;
    this.shown = [first, last];
  }

  node(row) {
    if (row.node) return row.node;
    const holder = document.createElement("template");
    holder.innerHTML = row.html; // made by the server, which lets nothing live into it
    row.node = holder.content.firstElementChild;
    this.onNode(row.node);
    this.fold(row);
    this.observer.observe(row.node);
    return row.node;
  }

  drop(node) {
    this.observer.unobserve(node);
    node.remove();
    const row = this.rows[this.index.get(node.dataset.key)];
    if (row?.node === node) row.node = undefined;
  }

  fold(row) {
    row.node.querySelectorAll("details").forEach((fold, at) => {
      fold.open = row.open?.get(at) ?? this.expanded;
    });
  }

  folded(fold) {
    const node = fold.closest?.(".turn");
    const row = node && this.rows[this.index.get(node.dataset.key)];
    if (!row) return;
    row.open ??= new Map();
    row.open.set([...node.querySelectorAll("details")].indexOf(fold), fold.open);
  }

  measured(entries) {
    let changed = false;
    for (const { target } of entries) {
      const row = this.rows[this.index.get(target.dataset.key)];
      const { height } = target.getBoundingClientRect();
      if (row?.node !== target || !height || row.height === height) continue;
      row.height = height;
      changed = true;
    }
    if (!changed) return;
    this.heed();
    this.settle();
  }
}
