// A box that chooses all rows of the page, and how many are chosen. Without it, each row is chosen by itself.
"use strict";
(() => {
  const boxes = [...document.querySelectorAll('input[name="id"]')];
  const head = document.querySelector("table.rows thead th");
  const actions = document.querySelector(".actions");
  if (!boxes.length || !head || !actions) return;
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "Choose all rows of this page");
  head.replaceChildren(all);
  const count = document.createElement("span");
  count.className = "quiet chosen";
  count.setAttribute("role", "status");
  actions.append(count);
  const tell = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
    count.textContent = chosen ? `${chosen} of ${boxes.length} rows chosen` : "";
  };
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    tell();
  });
  for (const box of boxes) box.addEventListener("change", tell);
  tell();
})();
