// A sub-agent's session, opened in the place where it was started.

const MOST = 20; // turns shown in place; the whole of it has a page of its own

// Calls that started a sub-agent get a link to it.
export function linkChildren(node, children, base) {
  for (const call of node.querySelectorAll?.(".call") ?? []) {
    const child = children.get(call.dataset.call);
    if (!child || call.querySelector("a.child")) continue;
    const link = document.createElement("a");
    link.className = "child";
    link.href = `${base}/sessions/${child.key}`;
    link.dataset.child = child.key;
    link.textContent = `Sub-agent: ${child.title}`;
    call.append(link);
  }
}

export async function openChild(link, base) {
  const key = link.dataset.child;
  const answer = await fetch(`${base}/api/sessions/${key}/turns?html=1&where=head`);
  const said = await answer.json();
  const box = document.createElement("section");
  box.className = "inside";
  box.setAttribute("aria-label", link.textContent);
  if (!answer.ok) box.textContent = said.error;
  for (const turn of said.turns?.slice(0, MOST) ?? []) {
    const holder = document.createElement("template");
    holder.innerHTML = turn.html; // made by the server
    const node = holder.content.firstElementChild;
    node.classList.replace("turn", "inner");
    node.removeAttribute("id");
    box.append(node);
  }
  const whole = document.createElement("a");
  whole.href = link.href;
  whole.textContent = "Open this sub-agent's whole session";
  box.append(whole);
  link.replaceWith(box);
}
