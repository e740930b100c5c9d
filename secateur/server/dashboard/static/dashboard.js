"use strict";
// Keeps the pages of the dashboard up to date, and sends what its buttons ask for.
// A page is fetched again and compared part by part, so that focus, scrolling and open details stay as they are.

const PAUSE_MS = 1400; // without an answer that says when there may be something new
const SPREAD_MS = 100; // so that the pages of many browsers are not asked for at once
const ROWS_SHOWN = 500;
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

function shown(value) {
  if (value === null) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function resultOf(result) {
  const parts = document.createDocumentFragment();
  const stats = result.stats;
  const facts = [`${result.row_count ?? 0} rows`, `${result.elapsed_ms.toFixed(2)} ms`];
  if (stats) {
    facts.push(`${stats.partitions_read} of ${stats.partitions_total} partitions`);
    facts.push(`${stats.members_touched} of ${stats.members_total} members`, stats.execution);
  }
  const line = element("p", facts.join(", "));
  line.id = "result-facts";
  parts.append(line);
  if (result.columns.length) {
    const table = element("table");
    table.id = "result";
    table.append(element("caption", "The rows", "hidden"));
    const head = table.createTHead().insertRow();
    const numbers = result.columns.map((column) => /INT|DECIMAL|DOUBLE|FLOAT/.test(column.type));
    result.columns.forEach((column, index) => {
      const cell = element("th", column.name, numbers[index] ? "num" : "");
      cell.scope = "col";
      cell.title = column.type;
      head.append(cell);
    });
    const body = table.createTBody();
    const rows = result.rows.slice(0, ROWS_SHOWN);
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((value, index) => line.append(element("td", shown(value), numbers[index] ? "num" : "")));
    }
    const frame = element("div", undefined, "scroll");
    frame.append(table);
    parts.append(frame);
    if (rows.length < result.row_count) parts.append(element("p", `The first ${rows.length} rows.`, "dim"));
  }
  return parts;
}

async function post(path, body) {
  return fetch(here(path), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

async function run(sql, params) {
  const answer = await post("/api/v1/statements", { sql, params });
  if (!answer.ok) {
    const alert = element("p", await problemOf(answer), "alert");
    alert.setAttribute("role", "alert");
    return alert;
  }
  let result = await answer.json();
  while (result.rows === undefined) {
    const next = await fetch(here(`/api/v1/statements/${result.id}/result?limit=200&wait=30`));
    if (!next.ok) return element("p", await problemOf(next), "alert");
    result = await next.json();
  }
  return resultOf(result);
}

async function plan(sql, params, mode) {
  const answer = await post("/plan", { sql, params, mode });
  const type = answer.headers.get("Content-Type") || "";
  if (!type.startsWith("text/html")) return element("p", await problemOf(answer), "alert");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = document.createDocumentFragment();
  parts.append(...page.body.childNodes);
  return parts;
}

async function submitted(form, mode) {
  const output = document.getElementById("output");
  const buttons = [...form.querySelectorAll("button")];
  let params;
  try {
    params = JSON.parse(form.params.value || "[]");
  } catch {
    output.replaceChildren(element("p", "The parameters are not JSON: write an array such as [1, \"C7\"].", "alert"));
    return;
  }
  buttons.forEach((button) => (button.disabled = true));
  output.setAttribute("aria-busy", "true");
  try {
    output.replaceChildren(mode === "run" ? await run(form.sql.value, params) : await plan(form.sql.value, params, mode));
    output.focus();
  } catch (error) {
    output.replaceChildren(element("p", `No answer: ${error.message}`, "alert"));
  } finally {
    output.removeAttribute("aria-busy");
    buttons.forEach((button) => (button.disabled = false));
  }
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

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-plan]")) return;
  event.preventDefault();
  submitted(event.target, (event.submitter || event.target.querySelector("button")).value);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target.closest("[data-plan]");
  if (form) form.requestSubmit();
});

if (document.querySelector("[data-live]")) {
  keepFresh();
  setInterval(showAge, 500);
}
