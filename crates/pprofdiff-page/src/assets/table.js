// The table of functions, the table of source lines, and the callers and callees of one function.

// ---------------------------------------------------------------- table

// A phone has room for three columns only. The other columns of a row appear when it is selected.
const narrow = matchMedia("screen and (max-width: 640px)");

/**
 * Returns the columns besides the name: the chosen columns, or else all columns. On a phone, the latter are only the
 * deltas, or the costs of a single profile.
 */
function columnsShown() {
  if (view.columns) return COLUMNS.filter((column) => view.columns.split(".").includes(column));
  return COLUMNS.filter((column) => !narrow.matches || column.endsWith(twoSided ? "_delta" : "_new"));
}

/** Returns the columns from left to right in groups: [flat or cum, its values]. */
function groupsOf(shown) {
  const groups = ["flat", "cum"].map((cost) => [cost, VALUES.filter((value) => shown.includes(`${cost}_${value}`))]);
  return groups.filter(([, values]) => values.length > 0);
}

/** Returns the head of a value's column. */
const headOf = (value, cost) => (value === "share" ? "of total" : twoSided ? value : cost);

/** Creates the menu of columns. */
function makeChoice() {
  const place = $("choice").lastElementChild;
  place.style.gridTemplateRows = `repeat(${VALUES.length}, auto)`;
  for (const column of COLUMNS) {
    const [cost, value] = column.split("_"), label = element("label"), box = element("input");
    box.type = "checkbox";
    box.value = column;
    label.append(box, value ? `${cost}: ${headOf(value, "cost")}` : column);
    place.append(label);
  }
  const usual = element("button", "Default columns");
  usual.type = "button";
  place.append(usual);
  const choose = (columns) => {
    view.columns = "";
    // A table with names only is a valid choice, too.
    if (columns && columns !== columnsShown().join(".")) view.columns = columns;
    showTable();
    showControls();
    showRest();
    keepInFragment("columns");
  };
  usual.onclick = () => choose("");
  place.onchange = () => choose([...place.querySelectorAll(":checked")].map((box) => box.value).join(".") || "name");
  document.addEventListener("click", (e) => { if (!$("choice").contains(e.target)) $("choice").open = false; });
  $("choice").onkeydown = (e) => {
    if (e.key !== "Escape") return;
    $("choice").open = false;
    $("choice").firstElementChild.focus();
  };
}

let order = [];
const columnOf = {
  name: (b, i) => data.names[b.frame[i]], status: (b, i) => b.status[i],
  flat_base: (b, i) => b.flat_base[i], flat_new: (b, i) => b.flat_new[i], flat_delta: (b, i) => b.flat_new[i] - b.flat_base[i],
  cum_base: (b, i) => b.cum_base[i], cum_new: (b, i) => b.cum_new[i], cum_delta: (b, i) => b.cum_new[i] - b.cum_base[i],
  flat_growth: (b, i) => timesOf(b.flat_base[i], b.flat_new[i]), cum_growth: (b, i) => timesOf(b.cum_base[i], b.cum_new[i]),
};
// Shares have the order of deltas, because all rows have the same total.
columnOf.flat_share = columnOf.flat_delta;
columnOf.cum_share = columnOf.cum_delta;

/**
 * Returns the ratio of new to base for sorting. In descending order, added rows come first, and rows with negative
 * values or only zeros come last.
 */
const timesOf = (base, fresh) => (base < 0n || fresh < 0n || (base === 0n && fresh === 0n) ? -1 : base === 0n ? Infinity : Number(fresh) / Number(base));

/**
 * The columns of source lines in the order to show, each as [its position in the listing, its head]. Changes come
 * first.
 */
const LINES = [[2, "flat: delta"], [5, "cum: delta"], [9, "line"], [10, "source"], [0, "flat: base"], [1, "new"],
  [3, "cum: base"], [4, "new"], [6, "growth"], [7, "of total"], [8, "line: base"]];
let linesAreOrdered = !twoSided;

/** Reorders the columns when source lines are shown for the first time. A single profile's columns keep their order. */
function orderLines() {
  if (linesAreOrdered) return;
  linesAreOrdered = true;
  for (const tr of $("source").querySelectorAll("tr")) {
    const cells = [...tr.cells];
    tr.replaceChildren(...LINES.map(([i]) => cells[i]));
    if (tr.parentNode.tagName === "THEAD") for (const [i, name] of LINES) cells[i].textContent = name;
  }
}

const COSTS = { flat: "cost of the function itself", cum: "cost including everything that the function calls" };

/** The columns that the table currently has, and their groups. */
let headed = null, shown = [], groupsShown = [];

function headOfTable() {
  shown = columnsShown();
  if (headed === shown.join()) return;
  headed = shown.join();
  groupsShown = groupsOf(shown);
  const groups = element("tr"), columns = element("tr");
  const column = (key, text, className) => {
    const th = element("th", undefined, className), button = element("button", text);
    th.scope = "col";
    button.type = "button";
    th.dataset.key = key;
    button.onclick = () => {
      view.descending = view.sort === key ? !view.descending : key !== "name" && key !== "status";
      view.sort = key;
      showTable();
      keepInFragment();
    };
    th.append(button);
    columns.append(th);
  };
  column("name", "function", "t");
  groups.append(element("td"));
  for (const [cost, values] of groupsShown) {
    const th = element("th", cost, "group-start");
    th.colSpan = values.length;
    th.title = COSTS[cost];
    groups.append(th);
    for (const [i, value] of values.entries()) {
      column(`${cost}_${value}`, headOf(value, cost), twoSided && i === 0 ? "group-start" : "");
    }
  }
  if (shown.includes("status")) column("status", "status", "t");
  $("table").tHead.replaceChildren(...(twoSided ? [groups] : []), columns);
}

/** Filters, sorts and shows the table. Deltas and shares are sorted by magnitude. */
function showTable() {
  const b = type().table;
  $("functions").hidden = $("neighbours").hidden = !b;
  if (!b) return;
  headOfTable();
  const regex = compile($("filter"));
  order = [];
  for (let i = 0; i < b.n; i++) if (!regex || regex.test(data.names[b.frame[i]])) order.push(i);
  const value = columnOf[view.sort], magnitude = /_(delta|share)$/.test(view.sort), up = view.descending ? -1 : 1;
  const abs = (v) => (v < 0n ? -v : v);
  // Like all formats, order rows with equal flat by cum and the reverse, then by name.
  const other = view.sort.startsWith("flat") ? columnOf.cum_delta : columnOf.flat_delta;
  const keys = new Map(order.map((i) => [i, magnitude ? abs(value(b, i)) : value(b, i)]));
  order.sort((i, j) => {
    const x = keys.get(i), y = keys.get(j);
    if (x !== y) return x < y ? -up : up;
    const [s, t] = [abs(other(b, i)), abs(other(b, j))];
    if (s !== t) return s < t ? 1 : -1;
    const [p, q] = [data.names[b.frame[i]], data.names[b.frame[j]]];
    return p < q ? -1 : p > q ? 1 : 0;
  });
  for (const th of $("table").tHead.querySelectorAll("th[data-key]")) {
    if (th.dataset.key === view.sort) th.setAttribute("aria-sort", view.descending ? "descending" : "ascending");
    else th.removeAttribute("aria-sort");
  }
  const left = b.of - b.n;
  $("rows").textContent = (regex ? `${order.length} of ${b.n}` : `${b.n}`) + (b.n === 1 ? " function" : " functions")
    + (left > 0 ? `; ${left} with little cost are not on this page` : "");
  rowsShown = 0;
  $("table").tBodies[0].replaceChildren();
  moreRows(100);
}

function moreRows(count) {
  const b = type().table, body = $("table").tBodies[0], until = Math.min(order.length, rowsShown + count);
  for (; rowsShown < until; rowsShown++) body.append(rowElement(b, order[rowsShown]));
  $("more").hidden = rowsShown >= order.length;
  $("more").textContent = `Show more (${order.length - rowsShown} left)`;
}

function rowElement(b, i) {
  const tr = element("tr");
  tr.dataset.frame = b.frame[i];
  tr.setAttribute("aria-selected", String(b.frame[i] === view.fn));
  const name = element("td", undefined, "t"), button = element("button", data.names[b.frame[i]]);
  button.type = "button";
  name.append(button);
  tr.append(name);
  const t = type(), scales = t.scales;
  const cell = (text, className, why = "") => {
    const td = element("td", text, className);
    td.title = why;
    tr.append(td);
  };
  for (const [cost, values] of groupsShown) {
    const base = b[cost + "_base"][i], fresh = b[cost + "_new"][i], delta = fresh - base;
    const chance = b[cost + "_chance"][i] && delta !== 0n, why = chance ? t.chance(base, fresh) : "", tone = toneOf(delta, chance);
    for (const [position, value] of values.entries()) {
      const className = twoSided && position === 0 ? "group-start " : "";
      if (value === "base") cell(t.show(base, scales.sides), className);
      else if (value === "new") cell(t.show(fresh, scales.sides), className);
      else if (value === "delta") cell(t.delta(delta, scales.delta), className + tone, why);
      else if (value === "growth") cell(growth(base, fresh), className + tone, why);
      else cell(t.share(delta), twoSided ? className + tone : className, why);
    }
  }
  if (shown.includes("status")) cell(STATUSES[Number(b.status[i])], "w");
  return tr;
}

/** On a narrow screen, which shows few columns, shows all values of the selected row below it. */
function showRest() {
  const b = type().table, body = $("table").tBodies[0], row = b?.rowOf.get(view.fn);
  body.querySelector(".rest")?.remove();
  const above = row === undefined ? null : body.querySelector(`tr[data-frame="${view.fn}"]`);
  if (!narrow.matches || !above) return;
  const tr = element("tr", undefined, "rest"), td = element("td", undefined, "t");
  td.colSpan = above.cells.length;
  for (const cost of ["flat", "cum"]) {
    const line = element("div");
    line.append(element("span", cost + " ", "caption"), pairElement(b[cost + "_base"][row], b[cost + "_new"][row], b[cost + "_chance"][row]));
    td.append(line);
  }
  if (twoSided) td.append(element("div", STATUSES[Number(b.status[row])], "caption"));
  tr.append(td);
  above.after(tr);
}

/** Copies the filtered rows as CSV, with the names, costs and status that the command writes. */
function copyTable() {
  const b = type().table, cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const costs = ["flat", "cum"], sides = twoSided ? ["base", "new"] : ["new"];
  const head = ["name", ...costs.flatMap((cost) => (twoSided ? [...sides, "delta"].map((side) => `${cost}_${side}`) : [cost])), ...twoSided ? ["status"] : []];
  const lines = order.map((i) => [data.names[b.frame[i]],
    ...costs.flatMap((cost) => [...sides.map((side) => b[`${cost}_${side}`][i]), ...twoSided ? [b[cost + "_new"][i] - b[cost + "_base"][i]] : []]),
    ...twoSided ? [STATUSES[Number(b.status[i])]] : []]);
  const text = [head, ...lines].map((line) => line.map((value) => cell(String(value))).join(",") + "\n").join("");
  $("csv").parentElement.querySelector(".note")?.remove();
  return copyText(text, counted(lines.length, "row"), $("csv").parentElement);
}

// ---------------------------------------------------------------- callers and callees

function showEdges() {
  const b = type().table, place = $("edges");
  if (!b) return;
  place.replaceChildren();
  const row = b.rowOf.get(view.fn);
  if (row === undefined) {
    place.append(element("div", view.fn < 0 ? "Select a function in the graph or in the table."
      : "In this sample type, this function has no cost or too little to be on this page.", "note"));
    return;
  }
  const list = (edges, title) => {
    const shown = [];
    for (let i = edges.first[row]; i < edges.first[row + 1]; i++) shown.push(i);
    const change = (i) => Math.abs(Number(edges.new[i] - edges.base[i]));
    shown.sort((i, j) => change(j) - change(i));
    const table = element("table"), head = element("tr");
    head.append(element("th", title, "t"));
    const values = !twoSided ? ["value"] : narrow.matches ? ["delta", "base", "new"] : ["base", "new", "delta"];
    for (const text of values) head.append(element("th", text));
    table.append(element("thead"), element("tbody"));
    table.tHead.append(head);
    for (const i of shown) {
      const tr = element("tr"), name = element("td", undefined, "t"), frame = Number(edges.other[i]);
      const button = element("button", data.names[frame]);
      button.type = "button";
      tr.dataset.frame = frame;
      name.append(button);
      tr.append(name);
      const delta = edges.new[i] - edges.base[i];
      for (const value of values) {
        if (value === "delta") tr.append(element("td", type().delta(delta), sign(delta)));
        else tr.append(element("td", type().show((value === "base" ? edges.base : edges.new)[i])));
      }
      table.tBodies[0].append(tr);
    }
    const more = Number(edges.all[row]) - shown.length;
    if (shown.length === 0) return element("div", title === "callers" ? "No callers: it is a root." : "No callees.", "note");
    if (more > 0) table.tBodies[0].append(element("tr")), table.tBodies[0].lastChild.append(element("td", `and ${more} with less cost`, "t note"));
    return table;
  };
  const self = element("div", undefined, "edge-self");
  self.append(element("div", data.names[view.fn], "name"));
  for (const cost of ["cum", "flat"]) {
    const line = element("div");
    line.append(element("span", cost + " ", "caption"),
      pairElement(b[cost + "_base"][row], b[cost + "_new"][row], b[cost + "_chance"][row]));
    self.append(line);
  }
  const code = data.code?.[view.fn];
  if (code) self.append(element("div", `code ${code}`, "caption"));
  place.append(list(b.callers, "callers"), self, list(b.callees, "callees"));
}
