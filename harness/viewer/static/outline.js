// Where each turn stands in the whole session, and the list of its prompts.
//
// It knows the session up to `end`, and `after` is the cursor from which what came since can be asked for. A page
// says what there is on its bytes: one that abuts takes the outline further, one beyond leaves a hole to be filled.

const WORDS = 100; // characters of a prompt in the list
export const isPrompt = ({ kind }) => kind === "prompt" || kind === "queued";
export const placeOf = (key) => Number(key.match(/\d+/)?.[0] ?? 0); // bytes in front of a turn: its key says so

export class Outline {
  constructor({ keys, prompts, end, after }, base, key) {
    Object.assign(this, { end, after, address: `${base}/sessions/${key}` });
    this.put(keys, prompts.map((prompt) => prompt.key));
  }

  put(keys, prompts) {
    Object.assign(this, { keys, prompts, index: new Map(keys.map((key, at) => [key, at])) });
  }

  // Whether there is something between what is known and what this page shows.
  misses({ start, end }) {
    return start > this.end && end > this.end;
  }

  // What is on the page's bytes and behind them is as the page says; false where that is less than before.
  note(page) {
    if (page.atEnd && page.end < this.end && page.start > 0) return false;
    if (!(page.atEnd || page.end > this.end) || this.misses(page) || page.start === page.end) return true;
    const stays = (key) => placeOf(key) < page.start;
    const asked = page.turns.filter(isPrompt);
    const keys = [...this.keys.filter(stays), ...page.turns.map(({ key }) => key)];
    const prompts = [...this.prompts.filter(stays), ...asked.map(({ key }) => key)];
    [this.end, this.after] = [page.end, page.after];
    if (String([keys, prompts]) === String([this.keys, this.prompts])) return true;
    this.put(keys, prompts);
    this.list(asked, stays);
    return true;
  }

  list(asked, stays) {
    const fold = document.querySelector("details.outline");
    const list = fold?.querySelector("ol");
    if (!list) return;
    for (const link of list.querySelectorAll("[data-jump]")) if (!stays(link.dataset.jump)) link.parentElement.remove();
    list.append(...asked.map((turn) => this.item(turn)));
    fold.hidden = this.prompts.length === 0;
  }

  item({ key, html }) {
    const holder = document.createElement("template");
    holder.innerHTML = html; // made by the server; only its text is taken
    const texts = [...holder.content.querySelectorAll(".text")].map((each) => each.textContent);
    const link = document.createElement("a");
    link.href = `${this.address}?at=${encodeURIComponent(key)}`;
    link.dataset.jump = key;
    link.textContent = texts.join(" ").trim().replace(/\s+/g, " ").slice(0, WORDS) || "(no text)";
    const item = document.createElement("li");
    item.append(link);
    return item;
  }
}
