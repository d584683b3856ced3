// Puts the newest figures into the page as the server draws them, and shows the figure of a curve that one points at.
// Without it, everything can be read all the same.
"use strict";
(() => {
  const live = () => document.getElementById("live");
  const sign = document.getElementById("paused");
  if (!live() || !sign) return;

  // Updates. Somebody who reads with the keyboard, marks a text or points at a curve is not interrupted, and told so.
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
  if ("EventSource" in window) {
    const source = new EventSource(live().dataset.stream);
    source.onmessage = (message) => {
      waiting = new DOMParser().parseFromString(message.data, "text/html").getElementById("live");
      show();
    };
    source.onerror = () => tell("Live updates are paused: the page does not answer. These figures are old.");
    for (const event of ["focusout", "selectionchange", "pointerup"]) {
      document.addEventListener(event, () => waiting && setTimeout(show, 100));
    }
  }

  // Curves: the nearest point to the pointer, its figure, and how long ago that was.
  const drawn = (name, attributes, parent) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, entry] of Object.entries(attributes)) made.setAttribute(key, entry);
    parent.append(made);
    return made;
  };
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
  const leave = () => {
    document.querySelectorAll(".cursor").forEach((one) => one.remove());
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
    const left = Number(chart.dataset.left);
    const seconds = ((width - x) / (width - left)) * Number(chart.dataset.seconds);
    document.querySelectorAll(".cursor").forEach((one) => one.remove());
    pointed = true;
    const cursor = drawn("g", { class: "cursor" }, chart);
    drawn("line", { x1: x, x2: x, y1: 0, y2: height - 26 }, cursor);
    drawn("circle", { cx: x, cy: y, r: 4 }, cursor);
    const right = x > width / 2;
    const text = drawn("text", { x: right ? x - 8 : x + 8, y: 18, "text-anchor": right ? "end" : "start" }, cursor);
    text.textContent = `${value}, ${ago(seconds)}`;
    const around = text.getBBox();
    const ground = { x: around.x - 4, y: around.y - 2, width: around.width + 8, height: around.height + 4, rx: 3 };
    cursor.insertBefore(drawn("rect", ground, cursor), text);
  });
  document.documentElement.addEventListener("pointerleave", leave);
})();
