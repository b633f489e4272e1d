// Dark or light: what the reader chose, else what the system says. Loaded before the page is painted.
"use strict";
(() => {
  const root = document.documentElement;
  const chosen = localStorage.getItem("theme");
  if (chosen) root.dataset.theme = chosen;
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".theme")) return;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || dark) === "dark" ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
})();
