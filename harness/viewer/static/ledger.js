// A long ledger: its requests are there at once, what takes the whole to be known follows.
const audit = document.getElementById("audit");
const { base, key } = audit.dataset;

async function fill() {
  const answer = await fetch(`${base}/api/sessions/${key}/ledger?html=1`);
  const said = await answer.json();
  if (!answer.ok) return (audit.textContent = said.error);
  audit.innerHTML = said.html; // both were made by the server
  document.getElementById("decisions").innerHTML = said.decisions;
}

fill().catch((error) => (audit.textContent = error.message));
