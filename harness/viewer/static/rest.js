// Blocks of a long turn that its page left out, put where they belong.

// Takes the link's place; gives what was put there, to be looked through for sub-agents.
export async function openRest(link, base, expanded) {
  const answer = await fetch(`${base}/api/sessions/${link.dataset.rest}&html=1`);
  const said = await answer.json();
  const holder = document.createElement("div");
  if (answer.ok) holder.innerHTML = said.html; // made by the server
  else holder.textContent = said.error;
  for (const fold of holder.querySelectorAll("details")) fold.open = expanded;
  link.parentElement.replaceWith(holder);
  return holder;
}
