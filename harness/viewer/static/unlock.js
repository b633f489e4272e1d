// Trades the token behind # for a cookie, takes it out of the address, and shows the page again.
const base = document.querySelector("main").dataset.base;
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  const answer = await fetch(`${base}/unlock`, { method: "POST", body: token });
  if (answer.ok) {
    history.replaceState(null, "", location.pathname + location.search);
    location.reload();
  } else {
    document.getElementById("why").textContent =
      "The token in this address is not the one of the running server. Open the address it printed last.";
  }
}
