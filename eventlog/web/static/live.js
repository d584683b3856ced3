// Puts the newest figures into the page as the server draws them. Without it, everything can be read all the same.
"use strict";
(() => {
  const live = () => document.getElementById("live");
  const busy = (region) => region.contains(document.activeElement) || String(document.getSelection());
  if (!live() || !("EventSource" in window)) return;
  new EventSource("/events").onmessage = (message) => {
    const fresh = new DOMParser().parseFromString(message.data, "text/html").getElementById("live");
    const region = live();
    // Somebody who reads with the keyboard or marks a text is not interrupted.
    if (fresh && region && !busy(region)) region.replaceWith(document.adoptNode(fresh));
  };
})();
