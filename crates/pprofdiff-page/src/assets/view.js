// The state of the page: the view and its URL fragment, search, the stacks of a cause, and descriptions of nodes.
//
// All choices of the reader are in `view`. Code that changes it calls `show`, which redraws everything and writes the
// view to the fragment, so that Back undoes the change. Names are untrusted data: they only go through textContent and
// fillText.

// ---------------------------------------------------------------- view

const VALUES = twoSided ? ["base", "new", "delta", "growth", "share"] : ["new", "share"];
/** All columns of the table except the name, which comes first. */
const COLUMNS = [...["flat", "cum"].flatMap((cost) => VALUES.map((value) => `${cost}_${value}`)), ...twoSided ? ["status"] : []];
const start = {
  type: data.shown, width: twoSided ? "max" : "new", inverted: false, upward: false, zoom: 0,
  span: "", search: "", fn: -1, find: false, sort: twoSided ? "cum_delta" : "cum_new", descending: true, filter: "", theme: "",
  columns: "", pane: false, fold: false, tab: "flame", fit: "", scale: "", grey: true, cause: -1, course: courses?.rows.length ? 0 : -1,
};
const view = { ...start };
let selected = -1;            // the node where keyboard navigation starts
let rowsShown = 0;

const type = () => types[view.type];
const tree = () => (view.inverted ? type().tree("up") : view.fold ? type().folded : type().tree("down"));

/** Returns the fragment of this view. Defaults are omitted. */
function toFragment() {
  const parts = new URLSearchParams();
  for (const key of Object.keys(start)) {
    if (view[key] === start[key]) continue;
    parts.set(key, key === "type" ? type().raw.type : typeof start[key] === "boolean" ? +view[key] : view[key]);
  }
  return parts.toString();
}

/** Restores the view of a fragment. Missing and invalid values become defaults, and unknown keys are ignored. */
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
  if (![...COLUMNS, "name"].includes(view.sort)) view.sort = start.sort;
  if (!["", "dark", "light"].includes(view.theme)) view.theme = "";
  if (!["", "0", "1"].includes(view.fit)) view.fit = "";
  if (!(view.scale >= 0.01 && view.scale <= 4)) view.scale = "";
  if (span()[1] - span()[0] === 1) view.span = "";
  if (!TABS.some(([tab]) => tab === view.tab)) view.tab = start.tab;
  if (view.zoom < 0 || view.zoom >= tree().n) view.zoom = 0;
  if (!type().raw.causes?.[view.cause]?.functions.length) view.cause = -1;
  if (!courses?.rows[view.course]) view.course = start.course;
  if (view.fn < -1 || view.fn >= data.names.length) view.fn = -1;
  selected = view.zoom > 0 ? view.zoom : -1;
}

// ---------------------------------------------------------------- search

/**
 * Compiles the regular expression in an input. It ignores case unless it contains capitals; an escaped letter such as
 * `\W` does not count. Returns null for an empty input, and undefined for an invalid expression, which is marked.
 */
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
 * For each node, 1 if its box is highlighted; null if nothing is. `point` computes it: a search highlights names that
 * match, otherwise `find` highlights the boxes of the selected function, otherwise a cause highlights its stacks.
 */
let pointed = null;
function point() {
  const regex = compile($("search")), t = tree(), cause = type().raw.causes?.[view.cause];
  const output = $("matched");
  output.replaceChildren();
  pointed = null;
  if (regex === undefined) output.textContent = "invalid regular expression";
  else if (regex) pointed = boxesOf(t, Uint8Array.from(data.names, (name) => +regex.test(name)));
  else if (view.find && view.fn >= 0) pointed = boxesOf(t, setOf([view.fn]));
  else if (cause) {
    pointed = stacksOf(t, cause);
    if (!pointed.includes(1)) output.textContent = `the stacks of cause ${view.cause + 1} are too thin to draw`;
  }
  if (!regex) return;
  // Count each stack once, at its first match.
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
  const note = t.pruned.stacks > 0 ? ", without pruned stacks" : "";
  output.append(count, functions.size ? `: ${type().pair(base, fresh)}${note}` : "");
}

/** Returns a set of frames for `boxesOf`. */
function setOf(frames) {
  const set = new Uint8Array(data.names.length);
  for (const frame of frames) set[frame] = 1;
  return set;
}

/** Returns, for each node, 1 if its frame is in a set (see `setOf`), otherwise 0. */
const boxesOf = (t, set) => Uint8Array.from(t.kind, (_, i) => set[frameOf(t, i)] ?? 0);

/**
 * Returns the stacks of a cause: everything above and below the boxes of its function that the given caller calls. If
 * only the function's own cost changed, everything below is omitted.
 */
function stacksOf(t, { functions, callers, own }) {
  const functionBoxes = boxesOf(t, setOf(functions)), above = boxesOf(t, setOf(callers));
  const called = (i) => view.inverted ? [...childrenOf(t, i)].some((c) => above[c]) : above[t.parent[i]];
  let hits = functionBoxes.map((hit, i) => +(hit && called(i)));
  // The explanation may have ignored a frame between caller and function. Then show all boxes of the function.
  if (!hits.includes(1)) hits = functionBoxes;
  const shown = new Uint8Array(t.n);
  for (let i = 1; i < t.n; i++) {
    if (!hits[i]) continue;
    shown[i] = 1;
    for (let up = t.parent[i]; up >= 0 && !shown[up]; up = t.parent[up]) shown[up] = 1;
    if (!own || view.inverted) shown.fill(1, i, t.end[i]);
  }
  return shown;
}

/** Returns the widest of the nodes for which `isOne` is true, or -1 if there is none. The root does not count. */
function widestOf(t, isOne) {
  const width = t.width[view.width];
  let widest = -1;
  for (let i = 1; i < t.n; i++) if (isOne(i) && (widest < 0 || width[i] > width[widest])) widest = i;
  return widest;
}

/**
 * Returns true if a value is drawn in grey: if `bit`, from the data, marks it as within noise, and the view greys
 * noise.
 */
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

/**
 * Formats "0.20s → 1.68s, +1.48s, x8.4, +77.89% of total". The change is grey if `isGrey(chance)`, otherwise coloured
 * by its direction. A value of a single profile has no colour.
 */
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
    parts.push(element("div", "The sum of stacks that are too thin to draw individually.", "note"));
  } else {
    const [base, fresh] = flatOf(t, node);
    if (base !== 0n || fresh !== 0n) {
      const ownCost = element("div", view.inverted ? "stacks that begin here: " : "itself: ", "note");
      // The data does not say whether this value is within noise, so it has no colour if the graph marks noise.
      ownCost.append(pairElement(base, fresh, Boolean(type().raw.chance)));
      parts.push(ownCost);
    }
  }
  if (chance) parts.push(element("div", type().chance(t.base[node], t.new[node]), "note"));
  return parts;
}

function showDetails() {
  const t = tree(), node = selected >= 0 ? selected : view.zoom;
  $("details").replaceChildren(...describe(t, node));
}

/** Shows the node under the mouse in a tooltip. */
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

