// What people do with the page: keeps graph, table and URL fragment in step.
//
//     data block -> types (trees and table as typed arrays) -> view (what is looked at) -> drawn
//
// Everything that is looked at is in `view`; whoever changes it calls `show`, which draws all of it anew and
// writes it to the fragment. Names are data from strangers: they go through textContent and fillText only.

// ---------------------------------------------------------------- view

const SORTS = twoSided
  ? ["name", "flat_base", "flat_new", "flat_delta", "cum_base", "cum_new", "cum_delta", "status"]
  : ["name", "flat_new", "cum_new"];
const start = {
  type: data.shown, width: twoSided ? "max" : "new", inverted: false, upward: false, zoom: 0,
  search: "", fn: -1, find: false, sort: twoSided ? "cum_delta" : "cum_new", descending: true, filter: "", theme: "",
  fit: "", grey: true, cause: -1, course: courses?.rows.length ? 0 : -1,
};
const view = { ...start };
let selected = -1;            // the node that the keyboard walks from
const zooms = [];             // where Back goes
let rowsShown = 0;

const type = () => types[view.type];
const tree = () => type().tree(view.inverted ? "up" : "down");

/** The fragment that brings this view back; what is as at the start is left out. */
function toFragment() {
  const parts = new URLSearchParams();
  for (const key of Object.keys(start)) {
    if (view[key] === start[key]) continue;
    parts.set(key, key === "type" ? type().raw.type : typeof start[key] === "boolean" ? +view[key] : view[key]);
  }
  return parts.toString();
}

/** The view that a fragment asks for; what it says wrong is as at the start. */
function fromFragment(text) {
  const parts = new URLSearchParams(text);
  Object.assign(view, start);
  for (const [key, value] of parts) {
    if (!(key in start)) continue;
    if (key === "type") {
      const index = types.findIndex((t) => t.raw.type === value && !t.raw.error);
      if (index >= 0) view.type = index;
    } else if (typeof start[key] === "boolean") view[key] = value === "1";
    else if (typeof start[key] === "number") view[key] = Number.isInteger(+value) ? +value : start[key];
    else view[key] = value;
  }
  if (!twoSided || !MODES.some(([mode]) => mode === view.width)) view.width = start.width;
  if (!SORTS.includes(view.sort)) view.sort = start.sort;
  if (!["", "dark", "light"].includes(view.theme)) view.theme = "";
  if (!["", "0", "1"].includes(view.fit)) view.fit = "";
  if (view.zoom < 0 || view.zoom >= tree().n) view.zoom = 0;
  if (!type().raw.causes?.[view.cause]?.functions.length) view.cause = -1;
  if (!courses?.rows[view.course]) view.course = start.course;
  if (view.fn < -1 || view.fn >= data.names.length) view.fn = -1;
  selected = view.zoom > 0 ? view.zoom : -1;
}

let written = "";
function keepInFragment() {
  const fragment = toFragment();
  if (fragment === written) return;
  written = fragment;
  // For what frames the page, if it listens.
  dispatchEvent(new CustomEvent("view", { detail: fragment }));
  // Not every place that shows the page lets it touch its address: a notebook's frame, for one.
  try { history.replaceState(null, "", "#" + fragment); } catch { /* the view is just not kept */ }
}

// ---------------------------------------------------------------- search

/** A regular expression as people mean it: without capitals it ignores case. Null if there is none. */
function compile(input) {
  const text = input.value;
  input.removeAttribute("aria-invalid");
  input.removeAttribute("title");
  if (!text) return null;
  try {
    return new RegExp(text, /\p{Lu}/u.test(text.replace(/\\./g, "")) ? "" : "i");
  } catch (e) {
    input.setAttribute("aria-invalid", "true");
    input.title = e.message;
    return undefined;
  }
}

/**
 * Which boxes the graph points out: those whose names the search matches, those of the function that was asked for, or
 * the stacks of a cause. Null if nothing is looked for.
 */
let pointed = null;
function point() {
  const regex = compile($("search")), t = tree(), cause = type().raw.causes?.[view.cause];
  const output = $("matched");
  output.replaceChildren();
  pointed = null;
  if (regex === undefined) output.textContent = "not a regular expression";
  else if (regex) pointed = boxesOf(t, Uint8Array.from(data.names, (name) => +regex.test(name)));
  else if (view.find && view.fn >= 0) pointed = boxesOf(t, setOf([view.fn]));
  else if (cause) {
    pointed = stacksOf(t, cause);
    if (!pointed.includes(1)) output.textContent = `cause ${view.cause + 1} is too thin to be drawn`;
  }
  if (!regex) return;
  // A stack counts once, however often it matches: by its first match.
  let base = 0n, fresh = 0n, skipped = 0;
  const functions = new Set();
  for (let i = 1; i < t.n; i++) {
    if (!pointed[i]) continue;
    functions.add(frameOf(t, i));
    if (i < skipped) continue;
    base += t.base[i];
    fresh += t.new[i];
    skipped = t.end[i];
  }
  const count = document.createElement("b");
  count.textContent = `${functions.size} function${functions.size === 1 ? "" : "s"}`;
  const least = t.pruned.stacks > 0 ? ", without what is pruned" : "";
  output.append(count, functions.size ? `: ${type().pair(base, fresh)}${least}` : "");
}

/** Frames, as what `boxesOf` takes. */
function setOf(frames) {
  const set = new Uint8Array(data.names.length);
  for (const frame of frames) set[frame] = 1;
  return set;
}

/** The boxes of a set of frames. */
const boxesOf = (t, set) => Uint8Array.from(t.kind, (_, i) => set[frameOf(t, i)] ?? 0);

/**
 * The stacks of a cause: what is above and below each box of its function, of those that the caller calls. If only the
 * function itself costs more, what it calls is no part of that.
 */
function stacksOf(t, { functions, callers, own }) {
  const of = boxesOf(t, setOf(functions)), above = boxesOf(t, setOf(callers));
  const called = (i) => view.inverted ? [...childrenOf(t, i)].some((c) => above[c]) : above[t.parent[i]];
  let hits = of.map((hit, i) => +(hit && called(i)));
  // Where a frame between them is no part of what was explained, all of the function is shown.
  if (!hits.includes(1)) hits = of;
  const shown = new Uint8Array(t.n);
  for (let i = 1; i < t.n; i++) {
    if (!hits[i]) continue;
    shown[i] = 1;
    for (let up = t.parent[i]; up >= 0 && !shown[up]; up = t.parent[up]) shown[up] = 1;
    if (!own || view.inverted) shown.fill(1, i, t.end[i]);
  }
  return shown;
}

/** Points out the stacks of a cause, or all again. */
function choose(cause) {
  view.cause = cause;
  view.search = "";
  view.find = false;
  if (cause >= 0 && view.zoom !== 0) { zooms.push(view.zoom); view.zoom = 0; }
  show();
  if (cause < 0) return;
  const t = tree(), of = boxesOf(t, setOf(type().raw.causes[cause].functions));
  const widest = widestOf(t, (i) => of[i] && pointed[i]);
  if (widest >= 0) reveal(widest);
}

/** The widest of some boxes, or -1. */
function widestOf(t, isOne) {
  const width = t.width[view.width];
  let widest = -1;
  for (let i = 1; i < t.n; i++) if (isOne(i) && (widest < 0 || width[i] > width[widest])) widest = i;
  return widest;
}

/** Whether what is no more than chance is grey: a bit of the data's. */
const isGrey = (bit) => Boolean(bit && view.grey);

// ---------------------------------------------------------------- words about a node

function element(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

const sign = (delta) => (delta > 0n ? "more" : delta < 0n ? "less" : "");
const toneOf = (delta, chance) => (isGrey(chance) ? "chance" : sign(delta));

/** "0.20s → 1.68s, +1.48s, x8.4, +77.89% of total" with the change coloured, unless it is chance. */
function pairElement(base, fresh, chance) {
  const span = element("span");
  if (!twoSided || (base === 0n && fresh === 0n)) { span.textContent = type().pair(base, fresh); return span; }
  const [sides, change] = type().change(base, fresh);
  span.append(sides + ", ", element("span", change, toneOf(fresh - base, chance)));
  return span;
}

function describe(t, node) {
  const parts = [element("div", nameOf(t, node), "name")];
  const values = element("div");
  const chance = t.chance[node] && t.base[node] !== t.new[node];
  values.append(pairElement(t.base[node], t.new[node], chance));
  if (vanished(t, node)) values.append(element("span", "vanished", `mark ${toneOf(-1n, chance)}`));
  if (appeared(t, node)) values.append(element("span", "appeared", `mark ${toneOf(1n, chance)}`));
  parts.push(values);
  if (t.kind[node] === PRUNED) {
    parts.push(element("div", "Stacks that are each too thin to be seen, together.", "note"));
  } else {
    const [base, fresh] = flatOf(t, node);
    if (base !== 0n || fresh !== 0n) {
      const own = element("div", view.inverted ? "stacks that begin here: " : "of which itself: ", "note");
      // Whether this is chance is not in the data: no colour says so where that of boxes does.
      own.append(pairElement(base, fresh, Boolean(type().raw.chance)));
      parts.push(own);
    }
  }
  if (chance) parts.push(element("div", type().chance(t.base[node], t.new[node]), "note"));
  return parts;
}

function showDetails() {
  const t = tree(), node = selected >= 0 ? selected : view.zoom;
  $("details").replaceChildren(...describe(t, node));
}

/** What `hover` found, beside the mouse. */
function showTip() {
  const tip = $("tip");
  tip.hidden = hovered < 0;
  if (tip.hidden) return;
  tip.replaceChildren(...describe(tree(), hovered));
  const { x, y } = pointer;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 8)) + "px";
  tip.style.top = (y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18) + "px";
}

// ---------------------------------------------------------------- what people do

function zoomTo(node) {
  const t = tree();
  if (node < 0 || node === view.zoom || t.width[view.width][node] <= 0) return;
  zooms.push(view.zoom);
  view.zoom = node;
  show();
}

function back() {
  if (zooms.length === 0) return;
  view.zoom = Math.min(zooms.pop(), tree().n - 1);
  show();
}

function select(node) {
  selected = node;
  const t = tree(), frame = node >= 0 ? frameOf(t, node) : -1;
  if (frame >= 0) view.fn = frame;
  view.find = false;
}

/** Changes the tree that is looked at, and stays at the same stack if it has it. */
function changeTree(change, keep) {
  const before = tree(), zoom = view.zoom, chosen = selected;
  change();
  zooms.length = 0;
  view.zoom = keep ? sameNode(before, zoom, tree()) : 0;
  selected = keep && chosen > 0 ? sameNode(before, chosen, tree()) || -1 : -1;
  if (tree().width[view.width][view.zoom] <= 0) view.zoom = 0;
  show();
}

/** Shows where a function is: points its boxes out, and goes to the widest. */
function find(frame) {
  view.fn = frame;
  view.search = "";
  view.cause = -1;
  view.find = true;
  const t = tree(), width = t.width[view.width];
  const widest = widestOf(t, (i) => frameOf(t, i) === frame);
  let where = 0;
  selected = widest;
  if (widest >= 0) {
    const spot = spotOf(widest);
    if (!spot || spot.w < 12) {
      // As near as it takes to be seen, and no nearer.
      const across = canvas.clientWidth, wide = (in_) => width[widest] / width[in_] * across;
      where = widest;
      while (where > 0 && wide(t.parent[where]) >= 200) where = t.parent[where];
      if (where !== view.zoom && width[where] > 0) { zooms.push(view.zoom); view.zoom = where; }
    }
  }
  show();
  if (widest >= 0) reveal(widest);
  else $("details").replaceChildren(element("div", data.names[frame], "name"),
    element("div", "Only in stacks that are too thin to be drawn.", "note"));
}

/** Scrolls the picture so that a node is in sight. */
function reveal(node) {
  const spot = spotOf(node), v = $("view");
  if (!spot) return;
  if (spot.y < v.scrollTop) v.scrollTop = Math.max(0, spot.y - ROW);
  else if (spot.y + ROW > v.scrollTop + v.clientHeight) v.scrollTop = spot.y + 2 * ROW - v.clientHeight;
}

/** The names down to a node, root first. */
function stackOf(node) {
  const t = tree(), names = pathTo(t, node).map((i) => nameOf(t, i));
  return view.inverted ? names.reverse() : names;
}

/** True in a notebook's frame, whose document was written by what is around it. */
const inNotebook = location.protocol === "about:";

/** Says to a notebook, which knows what is in its frame, what was chosen in it. A page from elsewhere tells nobody. */
let told = "";
function tell() {
  if (!inNotebook) return;
  const t = tree(), chosen = selected > 0 && t.kind[selected] >= FIRST_FRAME;
  const choice = chosen ? { frame: nameOf(t, selected), stack: stackOf(selected) } : { frame: null, stack: [] };
  const text = JSON.stringify(choice);
  if (text !== told && (told || chosen)) parent.postMessage(choice, "*");
  told = text;
}

/** The selected stack, a frame a line. */
async function copyStack() {
  const names = stackOf(selected >= 0 ? selected : view.zoom);
  const text = names.join("\n");
  let done = false;
  // A notebook's frame has no right to the clipboard (and asking is noted as a fault), but may copy what is selected in it.
  const asked = inNotebook ? Promise.reject() : navigator.clipboard.writeText(text);
  try { await asked; done = true; } catch {
    const area = element("textarea", text, "aside");
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const s = names.length === 1 ? "" : "s";
  $("details").append(element("div", done ? `Copied: ${names.length} frame${s}.` : "The browser does not let this page copy.", "note"));
}

/** Arrow keys: along the stack, and to its neighbours. */
function walk(key) {
  const t = tree(), width = t.width[view.width];
  const deeper = view.upward ? "ArrowUp" : "ArrowDown", shallower = view.upward ? "ArrowDown" : "ArrowUp";
  let node = selected < 0 ? view.zoom : selected;
  if (key === deeper) {
    let widest = -1;
    for (const child of childrenOf(t, node)) if (width[child] > 0 && (widest < 0 || width[child] > width[widest])) widest = child;
    node = widest;
  } else if (key === shallower) {
    node = t.parent[node];
  } else {
    const siblings = t.parent[node] < 0 ? [node] : [...childrenOf(t, t.parent[node])].filter((i) => width[i] > 0);
    node = siblings[siblings.indexOf(node) + (key === "ArrowRight" ? 1 : -1)] ?? -1;
  }
  if (node < 0) return;
  select(node);
  const z = view.zoom;
  // Whoever walks out of what is zoomed in on takes the zoom along.
  if (node < z || node >= t.end[z]) view.zoom = node < z && t.end[node] > z ? node : t.parent[node];
  show();
  reveal(node);
}

// ---------------------------------------------------------------- table

// A phone has room for a few columns only: the changes come first, and what they are of when the table is moved.
const narrow = matchMedia("screen and (max-width: 640px)");

/** The columns from left to right, in groups: [flat or cum, which of its values]. */
function groupsOfTable() {
  if (!twoSided) return [["flat", ["new", "share"]], ["cum", ["new", "share"]]];
  const rest = ["base", "new", "growth", "share"], all = ["base", "new", "delta", "growth", "share"];
  if (narrow.matches) return [["flat", ["delta"]], ["cum", ["delta"]], ["flat", rest], ["cum", rest]];
  return [["flat", all], ["cum", all]];
}

let order = [];
const columnOf = {
  name: (b, i) => data.names[b.frame[i]], status: (b, i) => b.status[i],
  flat_base: (b, i) => b.flat_base[i], flat_new: (b, i) => b.flat_new[i], flat_delta: (b, i) => b.flat_new[i] - b.flat_base[i],
  cum_base: (b, i) => b.cum_base[i], cum_new: (b, i) => b.cum_new[i], cum_delta: (b, i) => b.cum_new[i] - b.cum_base[i],
};

/** Where the columns of source lines stand on a phone, and what they are called there. */
const LINES = [[2, "flat: delta"], [5, "cum: delta"], [9, "line"], [10, "source"], [0, "flat: base"], [1, "new"],
  [3, "cum: base"], [4, "new"], [6, "growth"], [7, "of total"], [8, "line: base"]];
const linesAsWritten = new Map();

function columnsOfLines() {
  if (!twoSided || (!narrow.matches && linesAsWritten.size === 0)) return;
  for (const tr of $("source").querySelectorAll("tr")) {
    if (!linesAsWritten.has(tr)) linesAsWritten.set(tr, [...tr.cells].map((cell) => [cell, cell.textContent]));
    const written = linesAsWritten.get(tr), isHead = tr.parentNode === tr.closest("table").tHead;
    const wanted = narrow.matches ? LINES.map(([i, name]) => [written[i][0], name]) : written;
    tr.replaceChildren(...wanted.map(([cell]) => cell));
    if (isHead) for (const [cell, name] of wanted) cell.textContent = name;
  }
}

const COSTS = { flat: "what a function costs itself", cum: "with all that it calls" };

function headOfTable() {
  const groups = element("tr"), columns = element("tr");
  const column = (key, text, className) => {
    const th = element("th", undefined, className), button = element("button", text);
    th.scope = "col";
    button.type = "button";
    button.disabled = !key;
    if (key) {
      th.dataset.key = key;
      button.onclick = () => {
        view.descending = view.sort === key ? !view.descending : key !== "name" && key !== "status";
        view.sort = key;
        showTable();
        keepInFragment();
      };
    }
    th.append(button);
    columns.append(th);
  };
  column("name", "function", "t");
  groups.append(element("td"));
  for (const [cost, values] of groupsOfTable()) {
    const th = element("th", cost, "group-start");
    th.colSpan = values.length;
    th.title = COSTS[cost];
    groups.append(th);
    for (const [i, value] of values.entries()) {
      const text = value === "share" ? "of total" : twoSided ? value : cost;
      column(value === "share" || value === "growth" ? "" : `${cost}_${value}`, text, twoSided && i === 0 ? "group-start" : "");
    }
  }
  if (twoSided) column("status", "status", "t");
  $("table").tHead.replaceChildren(...(twoSided ? [groups] : []), columns);
}

/** Largest change first where that is asked for: a delta is sorted by its magnitude. */
function showTable() {
  const b = type().table;
  $("functions").hidden = $("neighbours").hidden = !b;
  if (!b) return;
  const regex = compile($("filter"));
  order = [];
  for (let i = 0; i < b.n; i++) if (!regex || regex.test(data.names[b.frame[i]])) order.push(i);
  const value = columnOf[view.sort], magnitude = view.sort.endsWith("delta"), up = view.descending ? -1 : 1;
  const abs = (v) => (v < 0n ? -v : v);
  // As everywhere: rows that are equal in flat are ordered by cum, or the other way round, then by name.
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
    + (left > 0 ? `; ${left} of little cost are not in this page` : "");
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
  for (const [cost, values] of groupsOfTable()) {
    const base = b[cost + "_base"][i], fresh = b[cost + "_new"][i], delta = fresh - base;
    const chance = b[cost + "_chance"][i] && delta !== 0n, why = chance ? t.chance(base, fresh) : "", tone = toneOf(delta, chance);
    for (const [at, value] of values.entries()) {
      const className = twoSided && at === 0 ? "group-start " : "";
      if (value === "base") cell(t.show(base, scales.sides), className);
      else if (value === "new") cell(t.show(fresh, scales.sides), className);
      else if (value === "delta") cell(t.delta(delta, scales.delta), className + tone, why);
      else if (value === "growth") cell(growth(base, fresh), className + tone, why);
      else cell(t.share(delta), twoSided ? className + tone : className, why);
    }
  }
  if (twoSided) cell(STATUSES[Number(b.status[i])], "w");
  return tr;
}

// ---------------------------------------------------------------- callers and callees

function showEdges() {
  const b = type().table, place = $("edges");
  if (!b) return;
  place.replaceChildren();
  const row = b.rowOf.get(view.fn);
  if (row === undefined) {
    place.append(element("div", view.fn < 0 ? "Choose a function in the graph or in the table."
      : "This sample type has nothing of this function, or too little to be in this page.", "note"));
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
    if (shown.length === 0) return element("div", title === "callers" ? "No callers: it is a root." : "It calls nothing.", "note");
    if (more > 0) table.tBodies[0].append(element("tr")), table.tBodies[0].lastChild.append(element("td", `and ${more} of less cost`, "t note"));
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
  place.append(list(b.callers, "callers"), self, list(b.callees, "callees"));
}

// ---------------------------------------------------------------- summary and controls

function showSummary() {
  const sides = [];
  for (const [what, side] of twoSided ? ["base", "new"].map((what) => [what, type().raw[what] ?? data[what]]) : [["", data.new]]) {
    const div = element("div", undefined, "side");
    if (what) div.append(element("b", what));
    const when = [side.extent];
    if (side.duration) when.push(`in ${side.duration}`);
    if (side.time) when.push(`on ${new Date(side.time).toISOString().replace("T", " ").slice(0, 16)} UTC`);
    div.append(element("span", side.name, "path"), element("span", when.join(" "), "when"));
    sides.push(div);
  }
  $("sides").replaceChildren(...sides);
  const notes = data.settings.map((text) => element("li", text));
  if (type().raw.factor !== 1) notes.push(element("li", `new × ${type().raw.factor}`));
  if (twoSided) notes.push(element("li", "growth is a row's own, “of total” its delta in the base's total"));
  notes.push(element("li", data.generator));
  for (const text of data.warnings) notes.push(element("li", "Warning: " + text, "warning"));
  $("notes").replaceChildren(...notes);
  $("total").replaceChildren();
  const [base, fresh] = type().kept, total = element("span");
  const { sides: unit, delta: ofDelta } = type().scalesOf([base], [fresh]);
  if (twoSided) {
    const delta = fresh - base;
    total.append(element("span", `${type().show(base, unit)} → `), element("b", type().show(fresh, unit)),
      element("span", `  ${type().delta(delta, ofDelta)}  ${growth(base, fresh)}`, sign(delta)));
  } else total.append(element("b", type().show(fresh, unit)));
  $("total").append(total);
  if (type().kept !== type().total) {
    const whole = type().total.slice(twoSided ? 0 : 1).map((v) => type().show(v)).join(" → ");
    $("total").append(" ", element("span", `of ${whole} before filters`, "note"));
  }
}

/** Why the sides differ, where that is explained. */
function showWhy() {
  const panels = [...$("why").querySelectorAll("[data-type]")];
  for (const panel of panels) panel.hidden = Number(panel.dataset.type) !== view.type;
  $("why").hidden = panels.length === 0;
  $("unexplained").hidden = panels.some((panel) => !panel.hidden);
}

/** What rose and what fell most, beside the total. */
function showMovers() {
  const { rose, fell } = type().raw;
  const lists = [[twoSided ? "rose most" : "cost most", rose], ["fell most", fell]].filter(([, rows]) => rows?.length);
  $("movers").hidden = lists.length === 0;
  $("movers").replaceChildren(...lists.map(([title, rows]) => {
    const table = element("table"), head = element("tr"), what = element("th", title, "t");
    what.append(element("span", "flat", "caption"));
    what.colSpan = twoSided ? 2 : 3;
    what.title = COSTS.flat;
    head.append(what);
    if (twoSided) head.append(element("th", "growth", "caption"), element("th", "of total", "caption"));
    table.append(element("thead"), element("tbody"));
    table.tHead.append(head);
    for (const [frame, ...sides] of rows) {
      const [base, fresh] = sides.map(BigInt), delta = fresh - base, row = type().table.rowOf.get(frame);
      const direction = twoSided ? toneOf(delta, type().table.flat_chance[row]) : "";
      const tr = element("tr"), name = element("td", undefined, "t");
      const button = element("button", shortName(data.names[frame]));
      button.type = "button";
      button.title = data.names[frame];
      tr.dataset.frame = frame;
      name.append(button);
      tr.append(name, element("td", twoSided ? type().delta(delta) : type().show(fresh), direction),
        ...twoSided ? [element("td", growth(base, fresh), direction)] : [], element("td", type().share(delta), direction));
      table.tBodies[0].append(tr);
    }
    return table;
  }));
}

function showPruned() {
  const { stacks, of, share, widest } = tree().pruned;
  const percent = (part) => Number((100 * part).toPrecision(2)) + "%";
  $("pruned").textContent = stacks === 0 ? `All ${of} stacks are drawn.`
    : `${stacks} of ${of} stacks (${percent(share)} of the width) are in (pruned) boxes: what has less than ${percent(widest)} of the whole is not drawn by itself.`;
}

function showControls() {
  $("type").value = String(view.type);
  for (const button of $("width-mode").children) button.setAttribute("aria-pressed", String(button.dataset.mode === view.width));
  const width = document.querySelector("#legend .width");
  if (width) width.textContent = `${view.inverted ? "inverted; " : ""}width: ${WIDTHS[view.width]}`;
  $("inverted").setAttribute("aria-pressed", String(view.inverted));
  $("upward").setAttribute("aria-pressed", String(view.upward));
  $("grey").setAttribute("aria-pressed", String(view.grey));
  $("grey").hidden = !type().raw.chance;
  for (const e of document.querySelectorAll("#legend .chance, #legend .chance + span")) e.hidden = !type().raw.chance || !view.grey;
  for (const button of $("why").querySelectorAll("[data-type]:not([hidden]) [data-cause]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.cause) === view.cause));
  }
  $("fit").hidden = !(graphWidth() > $("callgraph").lastElementChild.clientWidth);
  $("fit").setAttribute("aria-pressed", String(fitted()));
  $("callgraph").classList.toggle("fitted", fitted());
  $("back").disabled = zooms.length === 0;
  $("reset").disabled = view.zoom === 0 && !pointed;
  if ($("search").value !== view.search) $("search").value = view.search;
  if ($("filter").value !== view.filter) $("filter").value = view.filter;
  const theme = $("theme");
  theme.textContent = { "": "Theme: system", dark: "Theme: dark", light: "Theme: light" }[view.theme];
}

/** The sample type's call graph. An SVG is parsed as XML, in which nothing runs. */
function showCallGraph() {
  const graph = type().raw.callgraph;
  $("callgraph").hidden = !graph;
  if (!graph) return;
  const parsed = new DOMParser().parseFromString(graph.svg, "image/svg+xml").documentElement;
  const drawn = document.importNode(parsed, true);
  for (const [i, node] of drawn.querySelectorAll("g.node").entries()) node.dataset.frame = graph.frames[i];
  // Its colours are the page's, which knows light and dark.
  for (const part of drawn.querySelectorAll("[data-share]")) {
    const share = Number(part.dataset.share);
    part.style.setProperty("--tone", share < 0 ? "var(--less)" : "var(--more)");
    part.style.setProperty("--part", String(Math.sqrt(Math.min(1, Math.abs(share)))));
  }
  const scroll = $("callgraph").lastElementChild;
  scroll.replaceChildren(drawn);
  // Its legend becomes text of the page, which stays readable however small the graph gets. Sides and total, its first
  // lines, have been said.
  const legend = [...drawn.children].filter((e) => e.tagName === "text"), said = twoSided ? 3 : 2;
  $("callgraph").querySelector(".note").textContent = legend.slice(said).map((e) => e.textContent).join(" · ");
  const paper = drawn.querySelector(":scope > rect"), graphed = drawn.querySelector(":scope > g"), margin = 8;
  const { x, y, width, height } = graphed?.getBBox() ?? { width: 0 };
  if (width > 0 && paper) {
    for (const e of legend) e.remove();
    graphed.removeAttribute("transform");
    const box = [x - margin, y - margin, width + 2 * margin, height + 2 * margin].map(Math.round);
    drawn.setAttribute("viewBox", box.join(" "));
    for (const [i, name] of ["x", "y", "width", "height"].entries()) {
      if (i > 1) drawn.setAttribute(name, box[i]);
      paper.setAttribute(name, box[i]);
    }
  }
  $("callgraph").classList.toggle("fitted", fitted());
  seekChange();
}

/** How wide the call graph is in itself. */
const graphWidth = () => Number($("callgraph").querySelector("svg")?.getAttribute("width"));

/** Whether the call graph is as wide as the page: where nobody decided, on a phone, and where it stays readable. */
function fitted() {
  if (view.fit !== "") return view.fit === "1";
  return narrow.matches || $("callgraph").lastElementChild.clientWidth > 0.6 * graphWidth();
}

/** Brings the largest change into sight, of a call graph that is larger than its place. */
function seekChange() {
  let largest = null;
  for (const node of $("callgraph").querySelectorAll("g.node")) {
    if (!largest || Math.abs(node.dataset.share) > Math.abs(largest.dataset.share)) largest = node;
  }
  if (!largest) return;
  const scroll = $("callgraph").lastElementChild;
  const spot = largest.getBoundingClientRect(), around = scroll.getBoundingClientRect();
  scroll.scrollLeft += (spot.left + spot.right - around.left - around.right) / 2;
  scroll.scrollTop += spot.top - around.top - 40;
}

/** What the tables were last made for: they are made anew only if that changed. */
let tabled = "";

/** Draws everything as `view` says. */
function show() {
  document.documentElement.dataset.theme = printing ? "light" : view.theme;
  document.documentElement.classList.toggle("printing", printing);
  if (!palette) readPalette();
  const of = `${view.type} ${view.sort} ${view.descending} ${view.filter} ${view.grey}`;
  if ($("search").value !== view.search) $("search").value = view.search;
  if (tabled !== of) {
    if ($("filter").value !== view.filter) $("filter").value = view.filter;
    showSummary();
    showWhy();
    showMovers();
    showTable();
    showCallGraph();
    tabled = of;
  }
  if (courses) showCourses();
  point();
  showControls();
  showPruned();
  showEdges();
  for (const node of $("callgraph").querySelectorAll("g.node")) node.classList.toggle("chosen", Number(node.dataset.frame) === view.fn);
  for (const tr of $("table").tBodies[0].rows) tr.setAttribute("aria-selected", String(Number(tr.dataset.frame) === view.fn));
  showDetails();
  layout();
  redraw();
  keepInFragment();
  tell();
}

/** [key, what it does, how]; without `how` the canvas knows it. */
const KEYS = [
  ["/", "search", () => $("search").focus()],
  ...(twoSided ? MODES.map(([mode], i) => [String(i + 1), `width: ${WIDTHS[mode]}`, () => setWidth(mode)]) : []),
  ["i", "inverted: from the leaf to its callers, or back", () => $("inverted").click()],
  ["f", "root at the bottom, or at the top", () => $("upward").click()],
  ["g", "what is no more than chance is grey, or not", () => $("grey").click()],
  ["Arrows", "walk the stacks, once the graph was clicked"],
  ["Enter", "zoom in on the selected box"],
  ["Backspace", "back to the zoom before", back],
  ["0", "show all", reset],
  ["Esc", "show all; in the search, clear it"],
  ["c", "copy the selected stack", copyStack],
  ["t", "theme: dark, light or as the system", () => $("theme").click()],
  ["?", "these keys", () => $("help").click()],
];

function controls() {
  for (const [key, text] of KEYS) {
    const dt = element("dt");
    dt.append(element("kbd", key));
    $("keys").querySelector("dl").append(dt, element("dd", text));
  }
  for (const [i, t] of types.entries()) {
    const option = element("option", t.raw.label ?? `${t.raw.type}${t.raw.unit ? ` (${t.raw.unit})` : ""}`);
    option.value = String(i);
    if (t.raw.error) { option.disabled = true; option.title = t.raw.error; }
    $("type").append(option);
  }
  $("type").onchange = () => changeTree(() => {
    view.type = Number($("type").value);
    view.cause = -1;
    // Of a series: the largest course of that change.
    const course = courses ? courses.rows.findIndex((row) => row.part === view.type) : -1;
    if (course >= 0) [view.course, view.fn, view.find] = [course, courses.rows[course].frame, true];
  }, true);
  for (const [mode, text, title] of MODES) {
    const button = element("button", text);
    Object.assign(button, { type: "button", title });
    button.dataset.mode = mode;
    button.onclick = () => setWidth(mode);
    $("width-mode").append(button);
  }
  $("width-mode").hidden = !twoSided;
  $("inverted").onclick = () => changeTree(() => { view.inverted = !view.inverted; }, false);
  $("upward").onclick = () => { view.upward = !view.upward; show(); $("view").scrollTop = view.upward ? 1e9 : 0; redraw(); };
  $("grey").onclick = () => { view.grey = !view.grey; show(); };
  $("why").onclick = (e) => {
    const cause = Number(e.target.closest("[data-cause]")?.dataset.cause ?? -1);
    if (cause >= 0) choose(cause === view.cause ? -1 : cause);
  };
  $("back").onclick = back;
  $("reset").onclick = reset;
  $("copy").onclick = copyStack;
  $("theme").onclick = () => {
    view.theme = { "": "dark", dark: "light", light: "" }[view.theme];
    repaint();
  };
  $("search").oninput = () => { view.search = $("search").value; view.find = false; view.cause = -1; point(); showControls(); redraw(); keepInFragment(); };
  $("filter").oninput = () => { view.filter = $("filter").value; showTable(); keepInFragment(); };
  $("more").onclick = () => moreRows(500);
  for (const place of [$("movers"), $("table").tBodies[0], $("edges")]) {
    place.onclick = (e) => {
      const row = e.target.closest("tr[data-frame]");
      if (row) find(Number(row.dataset.frame));
    };
  }
  $("callgraph").onclick = (e) => {
    const node = e.target.closest("g.node[data-frame]");
    if (node) find(Number(node.dataset.frame));
  };
  $("fit").onclick = () => {
    view.fit = fitted() ? "0" : "1";
    showControls();
    seekChange();
    keepInFragment();
  };
  $("help").onclick = () => { $("keys").showModal(); redraw(); };
  $("keys").onclick = (e) => { if (e.target === $("keys") || e.target.tagName === "BUTTON") $("keys").close(); };
  $("keys").onclose = redraw;
  $("view").onscroll = redraw;
  addEventListener("scroll", () => { if (pointer) redraw(); }, { passive: true });
  const follow = (place) => {
    const before = hovered;
    pointer = place;
    hover();
    if (hovered !== before) redraw();
  };
  // A finger points at nothing once it is lifted: what it touched is told below the graph.
  canvas.onpointermove = (e) => { if (e.pointerType !== "touch") follow({ x: e.clientX, y: e.clientY }); };
  canvas.onpointerleave = () => follow(null);
  canvas.onclick = (e) => {
    const spot = canvas.getBoundingClientRect();
    const node = nodeAt(e.clientX - spot.left, e.clientY - spot.top);
    if (node < 0) return;
    select(node);
    if (node === view.zoom || tree().kind[node] === PRUNED) show(); else zoomTo(node);
  };
  canvas.onkeydown = (e) => {
    if (e.key.startsWith("Arrow")) { e.preventDefault(); walk(e.key); }
    else if (e.key === "Enter") zoomTo(selected);
    else if (e.key === "Escape") reset();
  };
  document.addEventListener("keydown", (e) => {
    if ($("keys").open) return;
    if (e.key === "Escape") {
      follow(null);
      if (view.cause >= 0) choose(-1);
    }
    if (e.target.closest("input, select") || e.ctrlKey || e.metaKey || e.altKey) {
      if (e.key === "Escape" && e.target.id === "search") { view.search = ""; show(); canvas.focus(); }
      return;
    }
    const act = KEYS.find(([key]) => key === e.key)?.[2];
    if (act) { e.preventDefault(); act(); }
  });
  addEventListener("resize", () => { showControls(); if (courses) showCourse(); redraw(); });
  new ResizeObserver(redraw).observe(document.body);
  narrow.addEventListener("change", () => { headOfTable(); columnsOfLines(); tabled = ""; show(); });
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => { printing = on; repaint(); draw(); });
  }
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) === written) return;
    fromFragment(location.hash.slice(1));
    zooms.length = 0;
    tabled = "";
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}

function setWidth(mode) {
  view.width = mode;
  const t = tree();
  while (view.zoom > 0 && t.width[mode][view.zoom] <= 0) view.zoom = t.parent[view.zoom];
  show();
}

function reset() {
  if (view.zoom !== 0) zooms.push(view.zoom);
  view.zoom = 0;
  view.search = "";
  view.find = false;
  view.cause = -1;
  selected = -1;
  show();
}

/** The theme changed, and with it all colours. */
function repaint() {
  palette = null;
  show();
}

for (const name of ["less", "same", "more", "one-a", "one-b", "card", "text", "accent"]) document.body.append(element("i", undefined, "swatch s-" + name));
if (twoSided) {
  const key = (className, text) => [element("i", undefined, className), element("span", text)];
  $("legend").append(element("span", "less"), element("i", undefined, "ramp"), element("span", "more"),
    ...key("gone", "vanished (−)"), ...key("came", "appeared (+)"), ...key("chance", "no more than chance"), element("span", "", "width"));
} else $("legend").textContent = "Colours tell packages apart.";
document.body.classList.toggle("bare", !hasTable);
$("source").hidden = !$("source").querySelector("table");
if (courses) {
  makeCourses();
  $("type-of").textContent = "change";
}
headOfTable();
columnsOfLines();
controls();
fromFragment(location.hash.slice(1));
show();
