// Sorting, filtering, CSV and SVG. Every page is complete without it.
"use strict";
const text = (cell) => cell.dataset.value ?? cell.textContent.trim();

function sort(button) {
  const head = button.closest("th");
  const body = head.closest("table").tBodies[0];
  const rows = [...body.rows];
  const key = (row) => text(row.cells[head.cellIndex]);
  const numeric = head.classList.contains("num") || rows.every((row) => !Number.isNaN(Number(key(row))));
  const before = head.getAttribute("aria-sort");
  const up = before ? before === "descending" : !numeric; // words from A, numbers from the largest
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const missing = (row) => numeric && Number.isNaN(parseFloat(key(row)));
  const compare = numeric ? (a, b) => parseFloat(key(a)) - parseFloat(key(b)) : (a, b) => key(a).localeCompare(key(b), "en");
  rows.sort((a, b) => missing(a) - missing(b) || (up ? compare(a, b) : compare(b, a))); // what is missing comes last
  body.append(...rows);
}

function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function csv(table) {
  const safe = (value) => (/^[=+\-@]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value);
  const quote = (cell) => `"${safe(text(cell)).replaceAll('"', '""')}"`;
  const shown = (cell) => !cell.classList.contains("plotcol");
  return [...table.rows].map((row) => [...row.cells].filter(shown).map(quote).join(",")).join("\r\n");
}

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "vector-effect"];

// A copy that carries its styles with it, since a file of its own has no style sheet.
function styled(plot, width) {
  const copy = plot.cloneNode(true);
  copy.setAttribute("width", width);
  copy.setAttribute("overflow", "visible");
  const from = plot.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, index) => {
    const style = getComputedStyle(from[index]);
    for (const name of STYLES) node.style.setProperty(name, style.getPropertyValue(name));
  });
  return copy.outerHTML;
}

function picture(width, height, content) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${content}</svg>`;
}

function svg(box) {
  const plot = box.querySelector("svg");
  const size = box.getBoundingClientRect();
  const pad = getComputedStyle(box);
  const moved = `translate(${parseFloat(pad.paddingLeft)} ${parseFloat(pad.paddingTop)})`;
  const inner = plot.getBoundingClientRect().width;
  return picture(size.width, size.height, `<g transform="${moved}">${styled(plot, inner)}</g>`);
}

// The plots of a table's rows, one under the other, with the rows' names.
function strips(table) {
  const [left, width, height] = [220, 480, 34];
  const ink = getComputedStyle(table).color;
  const escape = (value) => value.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden && row.querySelector(".plotcol svg"));
  const drawn = rows.map((row, place) => {
    const name = `<text x="${left - 12}" y="21" text-anchor="end" font-family="sans-serif" font-size="13" fill="${ink}">${escape(row.cells[0].textContent.trim())}</text>`;
    const plot = `<g transform="translate(${left} 0)">${styled(row.querySelector(".plotcol svg"), width)}</g>`;
    return `<g transform="translate(0 ${place * height})">${name}${plot}</g>`;
  });
  return picture(left + width + 20, rows.length * height, drawn.join(""));
}

function filter(form) {
  const part = form.querySelector("[data-filter]");
  const party = form.elements.party?.value ?? "";
  const all = form.elements.unclear?.checked ?? true;
  for (const row of document.getElementById(part.dataset.filter).tBodies[0].rows) {
    row.hidden = (party !== "" && row.dataset.party !== party) || (!all && row.dataset.clear === "no");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches("th button")) sort(button);
  if ("print" in button.dataset) print();
  if (button.dataset.csv) save(`${button.dataset.csv}.csv`, "text/csv", csv(document.getElementById(button.dataset.csv)));
  if (button.dataset.svg) save(`${button.dataset.svg}.svg`, "image/svg+xml", svg(document.getElementById(button.dataset.svg)));
  if (button.dataset.strips) save(`${button.dataset.strips}.svg`, "image/svg+xml", strips(document.getElementById(button.dataset.strips)));
});

document.addEventListener("change", (event) => {
  if (event.target.dataset.filter) filter(event.target.form);
});
for (const form of document.querySelectorAll("form.filters")) filter(form);

// On paper everything is open; afterwards all is as it was.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const part of closed) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of closed) part.open = false;
});
