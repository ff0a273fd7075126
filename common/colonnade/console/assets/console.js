// Keep the page as it is now: fetch it again when the console says that something changed.
"use strict";
const events = new EventSource("events");

let fetched = 0;
async function refresh() {
  const mine = ++fetched;
  const answer = await fetch(location.pathname, { headers: { accept: "text/html" } });
  if (answer.status === 401) return stale();
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== fetched) return; // a newer page was asked for meanwhile
  for (const part of document.querySelectorAll("[data-live]")) {
    const now = page.getElementById(part.id);
    // A part that somebody is using stays until they are done.
    if (now && now.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(now));
  }
}

// A page that is not followed any more must not look as if it were.
function stale() {
  events.close();
  document.getElementById("stale").hidden = false;
}

events.addEventListener("changed", refresh);
let away;
events.addEventListener("open", () => (away = clearTimeout(away)));
events.addEventListener("error", () => {
  if (events.readyState === EventSource.CLOSED) stale();
  else away ??= setTimeout(stale, 10000); // it tries again by itself, until then
});
addEventListener("pagehide", () => events.close());

// The preview of a new job follows the form, a moment after the last change.
const form = document.querySelector("form[data-preview]");
let timer;
let asked = 0;
async function preview() {
  const mine = ++asked;
  const box = document.getElementById("preview");
  box.setAttribute("aria-busy", "true");
  const answer = await fetch(`preview?${new URLSearchParams(new FormData(form))}`);
  const text = answer.ok ? await answer.text() : "";
  if (mine !== asked) return; // the form has changed meanwhile
  box.innerHTML = text;
  box.removeAttribute("aria-busy");
}
if (form) {
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(preview, 400);
  });
  preview();
}
