"use strict";
// Keeps the pages of the dashboard up to date, and ends what its buttons ask it to end.
// A page is fetched again and compared part by part, so that focus, scrolling and open details stay as they are.

const PAUSE_MS = 1400; // without an answer that says when there may be something new
const SPREAD_MS = 100; // so that the pages of many browsers are not asked for at once
const fresh = document.getElementById("fresh");
const said = document.getElementById("said");
const OLD_MS = 3000; // what is shown longer than this without an answer is called old
let tag = "";
let answered = Date.now(); // when the cluster has last answered

function here(path) {
  return new URL(path, location.origin); // without the name and password that location.href may have
}

function patch(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) {
    old.replaceWith(now);
    return;
  }
  if (old.nodeType === Node.ELEMENT_NODE && old.matches("[data-still]:hover")) return; // its buttons must not move
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of [...now.attributes]) {
    if (old.getAttribute(name) !== value && name !== "open") old.setAttribute(name, value);
  }
  const wanted = [...now.childNodes];
  const present = [...old.childNodes];
  present.slice(wanted.length).forEach((node) => node.remove());
  wanted.forEach((node, index) => (index < present.length ? patch(present[index], node) : old.append(node)));
}

// Says how old the page is, also while an answer is awaited: a cluster that is gone answers late or never.
function showAge() {
  const age = Date.now() - answered;
  const isOld = age > OLD_MS;
  const at = new Date(answered).toISOString().slice(11, 19);
  const words = isOld ? `no answer since ${at} UTC, for ${Math.round(age / 1000)} s` : "live";
  if (fresh.textContent !== words) fresh.textContent = words;
  fresh.className = isOld ? "fresh old" : "fresh";
  document.body.classList.toggle("stale", isOld);
}

// Returns the milliseconds after which there may be something new.
async function refresh() {
  let next = PAUSE_MS;
  try {
    const headers = { Accept: "text/html", "If-None-Match": tag };
    const answer = await fetch(here(location.pathname + location.search), { headers });
    if (answer.status !== 304) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const isDown = answer.status >= 500; // what was known of the cluster stays, below what the answer says
      for (const part of document.querySelectorAll(isDown ? "#trouble" : "[data-live]")) {
        const now = page.getElementById(part.id);
        if (now) patch(part, now);
      }
      tag = isDown ? "" : answer.headers.get("ETag") || "";
    }
    next = Number(answer.headers.get("Secateur-Next-Ms")) || PAUSE_MS;
    if (answer.status < 500) answered = Date.now();
  } catch {
    // showAge tells
  }
  showAge();
  return next + SPREAD_MS * Math.random();
}

async function keepFresh() {
  const next = document.hidden ? PAUSE_MS : await refresh();
  setTimeout(keepFresh, next);
}

function say(text) {
  said.textContent = text;
  setTimeout(() => said.textContent === text && (said.textContent = ""), 8000);
}

async function problemOf(answer) {
  const problem = await answer.json().catch(() => ({}));
  return problem.detail || `the server answered ${answer.status}`;
}

async function end(button, path, name) {
  button.disabled = true;
  const answer = await fetch(here(path), { method: "DELETE" });
  say(answer.ok ? `${name} was ended` : await problemOf(answer));
  button.disabled = false;
  await refresh();
}

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-kill], [data-cancel]");
  if (!button) return;
  const { kill, cancel } = button.dataset;
  const text = button.closest("tr, #content").querySelector("code")?.textContent || "";
  if (!confirm(`End ${kill ? "statement" : "job"} ${kill || cancel}?\n\n${text}`)) return;
  if (kill) end(button, `/api/v1/statements/${encodeURIComponent(kill)}`, `statement ${kill}`);
  else end(button, `/api/v1/jobs/${encodeURIComponent(cancel)}`, `job ${cancel}`);
});

if (document.querySelector("[data-live]")) {
  keepFresh();
  setInterval(showAge, 500);
}
