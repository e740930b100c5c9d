"use strict";
// Executes the statements of a form, shows their rows, and keeps their texts in this browser.

const ROWS_SHOWN = 500;
const CELL_CHARS = 80;
const NUMBER = /^(U?\w*INT(EGER)?|DECIMAL.*|DOUBLE|FLOAT)$/;
const SEEN_SHARE = 0.6; // a result that begins further down the window is scrolled to
const HISTORY = "secateur.history";
const HISTORY_MAX = 50;
const TEXT_CHARS_MAX = 10000;

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(HISTORY)) || [];
  } catch {
    return []; // nothing may be kept here
  }
}

function keep(entries) {
  try {
    localStorage.setItem(HISTORY, JSON.stringify(entries));
  } catch {
    // nothing may be kept here, or there is no room
  }
  showHistory();
}

function remember(entry) {
  if (entry.sql.length + entry.params.length > TEXT_CHARS_MAX) return;
  const others = remembered().filter(({ sql, params }) => sql !== entry.sql || params !== entry.params);
  keep([entry, ...others].slice(0, HISTORY_MAX));
}

function showHistory() {
  const list = document.getElementById("history");
  if (!list) return;
  list.replaceChildren(...remembered().map((entry) => {
    const button = element("button", entry.sql, "name");
    button.type = "button";
    button.title = entry.sql;
    button.onclick = () => {
      const form = document.querySelector("[data-plan]");
      form.sql.value = entry.sql;
      form.params.value = entry.params;
      form.sql.focus();
    };
    const line = element("li");
    line.append(button);
    return line;
  }));
  document.getElementById("forget").hidden = !list.children.length;
}

// Numbers beyond 53 bits keep their digits, as texts, where the browser tells how they were written.
function parsed(text) {
  const isKept = (value) => !Number.isInteger(value) || Number.isSafeInteger(value);
  return JSON.parse(text, (_, value, written) => (isKept(value) || !written ? value : written.source));
}

function cellOf(value, isNumber) {
  if (value === null) return element("td", "NULL", isNumber ? "num null" : "null");
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  if (text.length <= CELL_CHARS) return element("td", text, isNumber ? "num" : "");
  const cell = element("td");
  const whole = element("details", undefined, "cut");
  const begin = text.slice(0, CELL_CHARS).replace(/[\ud800-\udbff]$/, "");
  whole.append(element("summary", `${begin}…`), element("div", text));
  cell.append(whole);
  return cell;
}

// The rows as the server writes them, all of them: the page has the first.
async function download(path) {
  const answer = await fetch(here(path), { headers: { Accept: "text/csv" } });
  if (!answer.ok) return say(await problemOf(answer));
  const link = element("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = "result.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

function resultOf(result) {
  const parts = document.createDocumentFragment();
  const stats = result.stats;
  const count = result.row_count ?? 0;
  const facts = [`${count} row${count === 1 ? "" : "s"}`, `${result.elapsed_ms.toFixed(2)} ms`];
  if (stats) {
    facts.push(`${stats.partitions_read} of ${stats.partitions_total} partitions`);
    facts.push(`${stats.members_touched} of ${stats.members_total} members`, stats.execution);
  }
  const line = element("p", facts.join(", "));
  line.id = "result-facts";
  if (result.result) {
    const button = element("button", "CSV");
    button.type = "button";
    button.title = "saves all rows as a file";
    button.onclick = () => download(result.result);
    line.append(" ", button);
  }
  parts.append(line);
  if (result.columns.length) {
    const table = element("table");
    table.id = "result";
    table.append(element("caption", "The rows", "hidden"));
    const head = table.createTHead().insertRow();
    const numbers = result.columns.map((column) => NUMBER.test(column.type));
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
      row.forEach((value, index) => line.append(cellOf(value, numbers[index])));
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
  let result = parsed(await answer.text());
  while (result.rows === undefined) {
    const next = await fetch(here(`/api/v1/statements/${result.id}/result?limit=200&wait=30`));
    if (!next.ok) return element("p", await problemOf(next), "alert");
    result = parsed(await next.text());
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
  remember({ sql: form.sql.value, params: form.params.value });
  buttons.forEach((button) => (button.disabled = true));
  output.setAttribute("aria-busy", "true");
  try {
    output.replaceChildren(mode === "run" ? await run(form.sql.value, params) : await plan(form.sql.value, params, mode));
    output.focus({ preventScroll: true });
    if (output.getBoundingClientRect().top > SEEN_SHARE * innerHeight) output.scrollIntoView();
  } catch (error) {
    output.replaceChildren(element("p", `No answer: ${error.message}`, "alert"));
  } finally {
    output.removeAttribute("aria-busy");
    buttons.forEach((button) => (button.disabled = false));
  }
}

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

document.addEventListener("click", (event) => {
  const { name } = event.target.dataset;
  if (!name) return;
  const field = document.getElementById("sql");
  field.setRangeText(name, field.selectionStart, field.selectionEnd, "end");
  field.focus();
});

document.getElementById("forget")?.addEventListener("click", () => keep([]));
if (matchMedia("(max-width: 60rem)").matches) document.querySelectorAll(".beside details").forEach((one) => (one.open = false));
showHistory();
