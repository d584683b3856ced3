// Puts the newest figures into the page as the server draws them, shows the figure of a curve that one points at, copies commands,
// and finds what is pasted. Without it, everything can be read all the same.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  const named = (id) => document.getElementById(id);
  const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

  // The state of the log stands in the title, in the icon, and beside the outputs.
  const showState = (made) => {
    const former = named("state");
    const state = made.getElementById("state");
    if (!former || !state) return;
    // A stream knows nothing of which page this is.
    const here = former.querySelector("[aria-current]")?.getAttribute("href");
    for (const link of state.querySelectorAll("a")) {
      if (link.getAttribute("href") === here) link.setAttribute("aria-current", "page");
    }
    const { state: word, icon } = state.dataset;
    if (word) document.title = [word, ...document.title.split(" · ").slice(former.dataset.state ? 1 : 0)].join(" · ");
    if (named("icon").getAttribute("href") !== icon) named("icon").setAttribute("href", icon);
    // Who reads it with the keyboard is not interrupted.
    if (former.contains(document.activeElement)) Object.assign(former.dataset, { state: word, icon });
    else former.replaceWith(document.adoptNode(state));
  };

  // Updates. Somebody who reads with the keyboard, marks a text or points at a curve is not interrupted, and told so.
  const live = () => named("live");
  const sign = named("paused");
  let waiting = null;
  let pointed = false;
  const busy = () => {
    if (pointed) return "while you point at a curve";
    if (live().contains(document.activeElement)) return "while the keyboard is in this part";
    if (String(document.getSelection())) return "while a text is marked";
    return "";
  };
  const tell = (text) => {
    if (sign.textContent !== text) sign.textContent = text;
  };
  const show = () => {
    const why = busy();
    if (waiting && !why) {
      live().replaceWith(document.adoptNode(waiting));
      waiting = null;
    }
    tell(waiting ? `Live updates are paused ${why}.` : "");
  };
  // The first part comes at once, and would be drawn a second time before anything is seen.
  const afterPaint = (begin) => {
    if (document.hidden || !window.PerformanceObserver?.supportedEntryTypes.includes("paint")) return begin();
    const painted = (_, observer) => (observer.disconnect(), begin());
    return new PerformanceObserver(painted).observe({ type: "paint", buffered: true });
  };
  const listen = () => {
    const source = new EventSource(live().dataset.stream);
    source.onmessage = (message) => {
      const made = parsed(message.data);
      showState(made);
      waiting = made.getElementById("live");
      show();
    };
    source.onerror = () => tell("Live updates are paused: the page does not answer. These figures are old.");
  };
  if (live() && sign && "EventSource" in window) {
    afterPaint(listen);
    for (const event of ["focusout", "selectionchange", "pointerup"]) {
      document.addEventListener(event, () => waiting && setTimeout(show, 100));
    }
  } else if (named("state")) {
    setInterval(async () => {
      if (document.hidden) return;
      const answer = await fetch("/state").catch(() => null);
      if (answer?.ok && !answer.redirected) showState(parsed(await answer.text()));
    }, 15000);
  }

  // Curves: the nearest point to the pointer, its figure, and how long ago that was.
  const points = (chart) =>
    [...chart.querySelectorAll("polyline")].flatMap((line) => {
      const values = line.dataset.values.split("|");
      const places = line.getAttribute("points").split(" ");
      return places.map((place, at) => [...place.split(",").map(Number), values[at]]);
    });
  const ago = (seconds) => {
    if (seconds < 1) return "now";
    if (seconds < 120) return `${Math.round(seconds)} s ago`;
    if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
    return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h ago` : `${(seconds / 86400).toFixed(1)} d ago`;
  };
  const figure = (chart) => chart.closest("figure").querySelector(".figure");
  const clear = () =>
    document.querySelectorAll(".cursor").forEach((cursor) => {
      const text = figure(cursor);
      text.textContent = text.dataset.text;
      cursor.remove();
    });
  const leave = () => {
    clear();
    if (pointed) {
      pointed = false;
      if (waiting) show();
    }
  };
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.("svg.chart");
    const found = chart ? points(chart) : [];
    if (!found.length) return leave();
    const box = chart.getBoundingClientRect();
    const { width, height } = chart.viewBox.baseVal;
    const wanted = ((event.clientX - box.left) / box.width) * width;
    const [x, y, value] = found.reduce((best, one) =>
      Math.abs(one[0] - wanted) < Math.abs(best[0] - wanted) ? one : best);
    clear();
    pointed = true;
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "g");
    cursor.setAttribute("class", "cursor");
    for (const [name, path] of [["line", `M${x} 0V${height}`], ["dot", `M${x} ${y}h0`]]) {
      const drawn = document.createElementNS("http://www.w3.org/2000/svg", "path");
      drawn.setAttribute("class", name);
      drawn.setAttribute("d", path);
      cursor.append(drawn);
    }
    chart.append(cursor);
    const text = figure(chart);
    text.dataset.text = text.textContent;
    text.textContent = `${value}, ${ago(((width - x) / width) * Number(chart.dataset.seconds))}`;
  });
  document.documentElement.addEventListener("pointerleave", leave);

  // Commands are copied, and what is pasted anywhere is looked for.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      // Without TLS a browser lets no page write there: the command is marked instead.
      document.getSelection().selectAllChildren(button.parentElement.querySelector("code"));
    }
  });
  document.addEventListener("paste", (event) => {
    const box = named("find");
    const text = event.clipboardData?.getData("text/plain").trim();
    if (!box || !text || event.target.closest?.("input, textarea, select")) return;
    box.value = text.slice(0, box.maxLength);
    box.form.requestSubmit();
  });
})();
