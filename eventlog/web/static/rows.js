// A box that chooses all rows of the page, how many are chosen, and a search that goes on by itself. Without it, each row is chosen
// by itself, and a link looks further back.
"use strict";
(() => {
  const named = (id) => document.getElementById(id);
  const head = document.querySelector("table.rows thead th");
  const boxes = () => [...document.querySelectorAll('input[name="id"]')];

  // Choosing.
  const all = document.createElement("input");
  const tell = () => {
    const every = boxes();
    const chosen = every.filter((box) => box.checked).length;
    all.checked = chosen > 0 && chosen === every.length;
    all.indeterminate = chosen > 0 && chosen < every.length;
    named("chosen").textContent = chosen ? `${chosen.toLocaleString("en")} chosen` : "";
    document.querySelectorAll(".when-chosen").forEach((one) => { one.hidden = !chosen; });
  };
  if (head && document.querySelector(".bar .actions")) {
    all.type = "checkbox";
    all.setAttribute("aria-label", "Choose all rows of this page");
    head.replaceChildren(all);
    all.addEventListener("change", () => {
      for (const box of boxes()) box.checked = all.checked;
      tell();
    });
    document.addEventListener("change", (event) => event.target.name === "id" && tell());
  }
  tell();

  // A search of a long log: the server looks through a part at a time, and this asks for the next part until the page is full.
  const FULL = 50;
  const count = () => document.querySelectorAll("table.rows tbody tr").length;
  let stopped = false;
  const say = (text, button) => {
    const sign = named("search");
    sign.textContent = text;
    if (!button) return;
    const stop = document.createElement("button");
    stop.type = "button";
    stop.textContent = "Stop";
    stop.addEventListener("click", () => { stopped = true; say("The search was stopped."); });
    sign.append(" ", stop);
  };
  const take = (made) => {
    const rows = made.querySelectorAll("table.rows tbody tr");
    document.querySelector("table.rows tbody").append(...[...rows].map((row) => document.adoptNode(row)));
    if (count()) {
      named("list").hidden = false;
      named("empty").hidden = true;
    }
    const shown = named("shown");
    if (shown) shown.textContent = count().toLocaleString("en");
    named("ways").replaceWith(document.adoptNode(made.getElementById("ways")));
    tell();
  };
  const search = async () => {
    let next = named("ways").querySelector('a[rel="next"]');
    const before = (link) => Number(new URL(link.href).searchParams.get("before")).toLocaleString("en");
    while (next && named("ways").dataset.searches && count() < FULL && !stopped) {
      say(`Looking further back: rows before ${before(next)}.`, true);
      const answer = await fetch(next.href);
      if (!answer.ok || answer.redirected) break;
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (stopped || !made.getElementById("ways")) break;
      take(made);
      next = named("ways").querySelector('a[rel="next"]');
    }
    if (stopped) return;
    say(next ? "" : "The whole log was looked through.");
    if (!next && !count()) named("empty").textContent = "No such rows.";
  };
  if (named("ways")?.dataset.searches) search().catch(() => say("The search was interrupted. The link looks further back."));
})();
