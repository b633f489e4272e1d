// Search on the server, over the whole session; here only its list of hits.

export class Search {
  constructor(form, panel, get, jump, state) {
    Object.assign(this, { form, panel, get, jump, state, asked: 0 });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    if (form.q.value) this.run();
  }

  async run(cursor = "") {
    const query = this.form.q.value.trim();
    const mine = ++this.asked;
    this.panel.hidden = !query;
    if (!query) return;
    if (!cursor) this.panel.replaceChildren("Searching…");
    try {
      const path = `/search?q=${encodeURIComponent(query)}&cursor=${encodeURIComponent(cursor)}`;
      const found = await this.get(path);
      if (mine === this.asked) this.show(found, Boolean(cursor));
    } catch (error) {
      this.panel.replaceChildren(error.message);
    }
  }

  show(found, more) {
    const list = more ? this.panel.querySelector("ol") : document.createElement("ol");
    for (const hit of found.hits) list.append(this.item(hit));
    const said = document.createElement("p");
    said.textContent = found.said;
    this.state(found.said);
    this.panel.replaceChildren(said, list);
    if (found.cursor) this.panel.append(this.button("Search on", () => this.run(found.cursor)));
  }

  item(hit) {
    const item = document.createElement("li");
    const mark = document.createElement("mark");
    mark.textContent = hit.match;
    const button = this.button("", async () => {
      if (await this.jump(hit.key)) openAround(hit.key, hit.match);
    });
    button.append(`${hit.name}: ${hit.before}`, mark, hit.after);
    item.append(button);
    return item;
  }

  button(text, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", act);
    return button;
  }
}

// Open the folds of a turn that hide the text that was found.
function openAround(key, text) {
  const turn = document.querySelector(`.turn[data-key="${CSS.escape(key)}"]`);
  const wanted = text.toLowerCase();
  for (const fold of turn?.querySelectorAll("details") ?? [])
    if (fold.textContent.toLowerCase().includes(wanted)) fold.open = true;
}
