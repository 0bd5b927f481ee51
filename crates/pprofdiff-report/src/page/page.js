// What the page does: reads its data, draws the flame graph, and keeps graph, table and URL fragment in step.
//
//     data block -> types (trees and table as typed arrays) -> view (what is looked at) -> drawn
//
// Everything that is looked at is in `view`; whoever changes it calls `show`, which draws all of it anew and
// writes it to the fragment. Names are data from strangers: they go through textContent and fillText only.
"use strict";
(() => {
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const twoSided = data.base !== null;
const BASE = 1, NEW = 2;                       // bits of a node's sides
const ROOT = 0, PRUNED = 1, FIRST_FRAME = 2;   // what a node is
const ROW = 20;                                // pixels of a box's height, with the gap below it
const THIN = 0.5;                              // pixels below which boxes are drawn as one strip
const STATUSES = ["added", "removed", "changed", "same"];

// ---------------------------------------------------------------- reading

/** Bytes of a base64 column. */
function bytesOf(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** A column of small numbers (ids, depths, counts). */
function readNumbers(text, count) {
  const bytes = bytesOf(text), out = new Float64Array(count);
  for (let i = 0, at = 0; i < count; i++) {
    let value = 0, factor = 1, byte;
    do { byte = bytes[at++]; value += (byte & 127) * factor; factor *= 128; } while (byte > 127);
    out[i] = value;
  }
  return out;
}

/** A column of int64. BigInts are slow to make, so they are made of as few parts as will do. */
function readValues(text, count) {
  const bytes = bytesOf(text), out = new BigInt64Array(count);
  for (let i = 0, at = 0; i < count; i++) {
    let low = 0, factor = 1, n = 0, byte;
    do { byte = bytes[at++]; low += (byte & 127) * factor; factor *= 128; } while (byte > 127 && ++n < 7);
    if (byte <= 127) {
      out[i] = BigInt(low % 2 ? -(low + 1) / 2 : low / 2);
      continue;
    }
    let whole = BigInt(low), shift = 49n;
    do { byte = bytes[at++]; whole |= BigInt(byte & 127) << shift; shift += 7n; } while (byte > 127);
    out[i] = (whole >> 1n) ^ -(whole & 1n);
  }
  return out;
}

/** A tree, depth first: for each node its parent, the end of its subtree, both values, and all widths. */
function readTree(raw) {
  const n = raw.nodes, depth = Uint32Array.from(readNumbers(raw.depth, n)), what = readNumbers(raw.what, n);
  const kind = new Uint32Array(n), sides = new Uint8Array(n), parent = new Int32Array(n), end = new Int32Array(n);
  const path = [];
  for (let i = 0; i < n; i++) {
    kind[i] = Math.floor(what[i] / 4);
    sides[i] = what[i] % 4;
    while (path.length > depth[i]) end[path.pop()] = i;
    parent[i] = path.length ? path[path.length - 1] : -1;
    path.push(i);
  }
  while (path.length) end[path.pop()] = n;
  // A value is written as what it lacks of its parent's.
  const values = (text) => {
    const out = readValues(text, n);
    for (let i = 0; i < n; i++) out[i] = (parent[i] < 0 ? 0n : out[parent[i]]) - out[i];
    return out;
  };
  const base = values(raw.base), fresh = values(raw.new), max = values(raw.max);
  const float = (column) => Float64Array.from(column, Number);
  const width = { max: float(max) };
  if (raw.base_width) {
    for (const mode of ["base", "new", "delta"]) width[mode] = float(values(raw[mode + "_width"]));
  } else {
    width.base = float(base);
    width.new = float(fresh);
    // Of two values that aren't negative, the larger is half of their sum and their difference together.
    width.delta = Float64Array.from(max, (m, i) => Number(2n * m - base[i] - fresh[i]));
  }
  return { n, depth, kind, sides, parent, end, base, new: fresh, width, left: {}, pruned: raw.pruned };
}

/** Where each node begins, in the units of a width. Worked out once for each way of drawing. */
function leftOf(tree, mode) {
  if (tree.left[mode]) return tree.left[mode];
  const width = tree.width[mode], left = new Float64Array(tree.n), next = new Float64Array(tree.n);
  for (let i = 1; i < tree.n; i++) {
    const p = tree.parent[i];
    left[i] = next[p];
    next[p] += width[i];
    next[i] = left[i];
  }
  return tree.left[mode] = left;
}

function readTable(raw) {
  const n = raw.rows;
  const edges = (e) => {
    const shown = readValues(e.shown, n), all = readValues(e.all, n);
    const first = new Uint32Array(n + 1);
    for (let i = 0; i < n; i++) first[i + 1] = first[i] + Number(shown[i]);
    const count = first[n];
    return { first, all, other: readValues(e.other, count), base: readValues(e.base, count), new: readValues(e.new, count) };
  };
  const table = {
    n, of: raw.of, frame: readNumbers(raw.frame, n), status: readValues(raw.status, n),
    flat_base: readValues(raw.flat_base, n), flat_new: readValues(raw.flat_new, n),
    cum_base: readValues(raw.cum_base, n), cum_new: readValues(raw.cum_new, n),
    callers: edges(raw.callers), callees: edges(raw.callees), rowOf: new Map(),
  };
  for (let i = 0; i < n; i++) table.rowOf.set(table.frame[i], i);
  return table;
}

/** A sample type. Its trees and its table are read when they are first looked at. */
class Type {
  constructor(raw) {
    this.raw = raw;
    this.total = raw.total ? raw.total.map(BigInt) : [0n, 0n];
    this.trees = {};
    const whole = Math.max(...this.total.map((v) => Math.abs(Number(v))));
    this.scale = raw.units ? this.suited(whole) : null;
  }
  tree(direction) { return this.trees[direction] ??= readTree(this.raw[direction]); }
  get table() { return this.raw.table ? this.rows ??= readTable(this.raw.table) : null; }

  /** The unit that suits a value: the largest in which it is at least 1. */
  suited(value) {
    const [units, smallest] = this.raw.units;
    return units.findLast(([, factor]) => value / factor >= 1) ?? units[smallest];
  }
  /** A value in the unit that suits the total, or in its own where it would read as zero. */
  show(value) {
    if (!this.scale) return value.toString();
    const number = Number(value);
    if (number === 0) return "0";
    const fits = Math.abs(number) / this.scale[1] >= 0.005;
    const [symbol, factor] = fits ? this.scale : this.suited(Math.abs(number));
    const digits = (number / factor).toFixed(2).replace(/\.00$/, "");
    return digits === "0" || digits === "-0" ? "0" : digits + symbol;
  }
  delta(value) { return (value > 0n ? "+" : "") + this.show(value); }
  /** Signed, and of the base's total; of one profile, of its total. */
  percent(value) {
    const whole = twoSided ? this.total[0] : this.total[1];
    if (whole === 0n) return "–";
    const percent = 100 * Number(value) / Number(whole);
    return percent === 0 ? "0%" : (twoSided && percent > 0 ? "+" : "") + percent.toFixed(2) + "%";
  }
  /** Both sides of a value in words. */
  pair(base, fresh) {
    if (!twoSided) return `${this.show(fresh)} (${this.percent(fresh)})`;
    const delta = fresh - base;
    return `${this.show(base)} → ${this.show(fresh)}, ${this.delta(delta)} (${this.percent(delta)})`;
  }
}

const types = data.types.map((raw) => new Type(raw));
const hasTable = types.some((t) => t.raw.table);

// ---------------------------------------------------------------- view

const SORTS = twoSided
  ? ["name", "flat_base", "flat_new", "flat_delta", "cum_base", "cum_new", "cum_delta", "status"]
  : ["name", "flat_new", "cum_new"];
const start = {
  type: data.shown, width: twoSided ? "max" : "new", inverted: false, upward: false, zoom: 0,
  search: "", fn: -1, find: false, sort: twoSided ? "cum_delta" : "cum_new", descending: true, filter: "", theme: "",
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
  if (view.zoom < 0 || view.zoom >= tree().n) view.zoom = 0;
  if (view.fn < -1 || view.fn >= data.names.length) view.fn = -1;
  selected = view.zoom > 0 ? view.zoom : -1;
}

let written = "";
function keepInFragment() {
  const fragment = toFragment();
  if (fragment === written) return;
  written = fragment;
  // Not every place that shows the page lets it touch its address: a notebook's frame, for one.
  try { history.replaceState(null, "", "#" + fragment); } catch { /* the view is just not kept */ }
}

// ---------------------------------------------------------------- the nodes of a tree

function nameOf(t, node) {
  const kind = t.kind[node];
  return kind === ROOT ? "all" : kind === PRUNED ? "(pruned)" : data.names[kind - FIRST_FRAME];
}
const frameOf = (t, node) => t.kind[node] - FIRST_FRAME;

/** From the root's child down to a node. */
function pathTo(t, node) {
  const path = [];
  for (let i = node; i > 0; i = t.parent[i]) path.push(i);
  return path.reverse();
}

function* childrenOf(t, node) {
  for (let i = node + 1; i < t.end[node]; i = t.end[i]) yield i;
}

/** What the stacks that end at a node cost: its value without its children's. */
function flatOf(t, node) {
  let base = t.base[node], fresh = t.new[node];
  if (t.kind[node] === PRUNED) return [0n, 0n];
  for (const child of childrenOf(t, node)) { base -= t.base[child]; fresh -= t.new[child]; }
  return [base, fresh];
}

/** The node of one tree at the end of another's path, or as near to it as there is one. */
function sameNode(from, node, to) {
  let at = 0;
  for (const step of pathTo(from, node)) {
    let next = -1;
    for (const child of childrenOf(to, at)) if (to.kind[child] === from.kind[step]) next = child;
    if (next < 0) break;
    at = next;
  }
  return at;
}

const vanished = (t, node) => twoSided && t.sides[node] === BASE;
const appeared = (t, node) => twoSided && t.sides[node] === NEW;

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

/** Which frames the graph points out: those that the search matches, or the function that was asked for. */
let pointed = null;
function point() {
  const regex = compile($("search"));
  pointed = null;
  if (regex) {
    pointed = Uint8Array.from(data.names, (name) => +regex.test(name));
  } else if (view.find && view.fn >= 0) {
    pointed = new Uint8Array(data.names.length);
    pointed[view.fn] = 1;
  }
  const output = $("matched");
  output.replaceChildren();
  if (regex === undefined) { output.textContent = "not a regular expression"; return; }
  if (!regex) return;
  // A stack counts once, however often it matches: by its first match.
  const t = tree();
  let base = 0n, fresh = 0n, skipped = 0;
  const functions = new Set();
  for (let i = 1; i < t.n; i++) {
    const frame = frameOf(t, i);
    if (frame < 0 || !pointed[frame]) continue;
    functions.add(frame);
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

// ---------------------------------------------------------------- colours

const MODES = [
  ["max", "Larger", "Width: the larger side of each stack, so that what vanished is as wide as it was (1)"],
  ["base", "Base", "Width: the base (2)"],
  ["new", "New", "Width: the new side (3)"],
  ["delta", "|Δ|", "Width: how much each stack changed (4)"],
];
const WIDTHS = { max: "the larger side of each stack", base: "base", new: "new", delta: "the change of each stack, either way" };
const STEPS = 32;
let palette;

/** The colours of the swatches, which the style sheet gives: mixed for each step from less to more. */
function readPalette() {
  const colour = (name) => {
    const [r, g, b] = getComputedStyle(document.querySelector(".s-" + name)).backgroundColor.match(/[\d.]+/g).map(Number);
    return [r, g, b];
  };
  const mix = (a, b, t) => a.map((v, i) => v + (b[i] - v) * t);
  const css = (c) => `rgb(${c.map(Math.round).join(",")})`;
  // Dark text on light boxes and the other way round, by relative luminance.
  const luminance = (c) => c.map((v) => ((v / 255) ** 2.2)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const box = (c) => ({ fill: css(c), text: luminance(c) > 0.22 ? "#111418" : "#ffffff" });
  const [less, same, more, card] = ["less", "same", "more", "card"].map(colour);
  const [oneA, oneB] = ["one-a", "one-b"].map(colour);
  const change = [], one = [];
  for (let i = -STEPS; i <= STEPS; i++) change.push(box(mix(same, i < 0 ? less : more, Math.abs(i / STEPS) ** 0.8)));
  for (let i = 0; i <= STEPS; i++) one.push(box(mix(oneA, oneB, i / STEPS)));
  const hatch = document.createElement("canvas");
  hatch.width = hatch.height = 8;
  const h = hatch.getContext("2d");
  h.fillStyle = css(mix(card, less, 0.30));
  h.fillRect(0, 0, 8, 8);
  h.strokeStyle = css(mix(card, less, 0.75));
  h.lineWidth = 1.6;
  for (const x of [-8, 0, 8]) { h.beginPath(); h.moveTo(x, 8); h.lineTo(x + 8, 0); h.stroke(); }
  palette = {
    change, one, card: css(card), text: css(colour("text")), accent: css(colour("accent")), less: css(less),
    root: box(same), pruned: box(mix(card, same, 0.55)),
    gone: { fill: context.createPattern(hatch, "repeat"), text: css(colour("text")) },
  };
}

/** From -1 (vanished) to 1 (appeared): the change as a part of the larger side. */
function relative(t, node) {
  const base = Number(t.base[node]), fresh = Number(t.new[node]);
  const larger = Math.max(Math.abs(base), Math.abs(fresh));
  return larger === 0 ? 0 : Math.max(-1, Math.min(1, (fresh - base) / larger));
}

/** One profile has no change to show: the colour tells packages apart. */
const packageShade = new Map();
function shadeOf(name) {
  let shade = packageShade.get(name);
  if (shade === undefined) {
    let hash = 7;
    const part = name.slice(0, 200).replace(/[.:][^.:/]*$/, "");
    for (let i = 0; i < part.length; i++) hash = (hash * 31 + part.charCodeAt(i)) >>> 0;
    shade = hash % (STEPS + 1);
    packageShade.set(name, shade);
  }
  return shade;
}

function boxOf(t, node) {
  if (t.kind[node] === PRUNED) return palette.pruned;
  if (t.kind[node] === ROOT && !twoSided) return palette.root;
  if (!twoSided) return palette.one[shadeOf(nameOf(t, node))];
  if (vanished(t, node)) return palette.gone;
  return palette.change[STEPS + Math.round(relative(t, node) * STEPS)];
}

// ---------------------------------------------------------------- drawing

const canvas = $("canvas"), context = canvas.getContext("2d");
const FONT = "12px system-ui, 'Segoe UI', 'Liberation Sans', sans-serif";
let rows = 1, hovered = -1, drawing = 0, painted = false, laidOut = "";

/** How a node is placed now: zoomed nodes' callers take the whole width. */
function place() {
  const t = tree(), width = t.width[view.width], left = leftOf(t, view.width);
  const across = canvas.clientWidth;
  const scale = width[view.zoom] > 0 ? across / width[view.zoom] : 0;
  return { t, width, left, across, scale, from: left[view.zoom] };
}

/** The y of a depth, in the whole picture. */
const top = (depth) => (view.upward ? rows - 1 - depth : depth) * ROW;

/** The room there is for the picture: most of the window, or what a frame has left. */
function mostHeight() {
  if (hasTable) return Math.max(300, innerHeight * 0.62);
  return Math.max(6 * ROW, innerHeight - (document.body.offsetHeight - $("view").offsetHeight));
}

/** Gives the picture its height: the deepest box that is at least a pixel wide. */
function layout() {
  const { t, width, scale } = place();
  let deepest = t.depth[view.zoom];
  for (let i = view.zoom + 1; i < t.end[view.zoom];) {
    if (width[i] * scale < THIN) { i = t.end[i]; continue; }
    if (t.depth[i] > deepest) deepest = t.depth[i];
    i++;
  }
  const before = rows;
  rows = deepest + 1;
  const height = rows * ROW, most = mostHeight();
  $("extent").style.height = height + "px";
  $("view").style.height = Math.min(height, most) + "px";
  const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = Math.ceil(Math.min(height, most));
  canvas.style.height = h + "px";
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  if (view.upward && rows !== before) $("view").scrollTop = height;
  laidOut = `${canvas.clientWidth} ${innerHeight}`;
}

function draw() {
  drawing = 0;
  // A frame may have had no size yet when the page was laid out, and may get one without a word.
  if (laidOut !== `${canvas.clientWidth} ${innerHeight}`) layout();
  const { t, width, left, across, scale, from } = place();
  const ratio = devicePixelRatio || 1, height = canvas.height / ratio, scrolled = $("view").scrollTop;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, across, height);
  context.font = FONT;
  context.textBaseline = "middle";
  if (width[view.zoom] <= 0) {
    context.fillStyle = palette.text;
    context.fillText(view.width === "delta" ? "No stack changed." : "There are no stacks here.", 4, ROW / 2);
    return;
  }
  const edges = new Path2D();
  const strips = [];                    // of each depth: where a strip of thin boxes began and ended
  const zoomDepth = t.depth[view.zoom];
  const strip = (depth) => {
    const s = strips[depth];
    if (s && s.end - s.start >= 0.2) {
      context.globalAlpha = pointed && !s.pointed ? 0.25 : 1;
      context.fillStyle = s.pointed ? palette.accent : palette.pruned.fill;
      context.fillRect(s.start, top(depth) - scrolled, s.end - s.start, ROW - 1);
    }
    strips[depth] = null;
  };
  const box = (node, x, w, faded) => {
    const y = top(t.depth[node]) - scrolled;
    if (y > height || y + ROW < 0) return;
    const { fill, text } = boxOf(t, node), frame = frameOf(t, node);
    const dim = pointed && !(frame >= 0 && pointed[frame]);
    context.globalAlpha = dim ? 0.25 : faded ? 0.6 : 1;
    context.fillStyle = fill;
    context.fillRect(x, y, w, ROW - 1);
    if (w > 2) { edges.moveTo(x + w - 0.5, y); edges.lineTo(x + w - 0.5, y + ROW - 1); }
    if (vanished(t, node) && w > 3) {
      context.strokeStyle = palette.less;
      context.setLineDash([3, 2]);
      context.strokeRect(x + 0.5, y + 0.5, w - 2, ROW - 2);
      context.setLineDash([]);
    }
    if (w <= 26) return;
    // What is dimmed lets the page through, so its text is the page's.
    if (dim) context.globalAlpha = 0.55;
    label(t, node, x + 4, y + ROW / 2, w - 8, dim ? palette.text : text);
  };
  for (let i = view.zoom, up = t.parent[i]; up >= 0; up = t.parent[up]) box(up, 0, across, true);
  for (let i = view.zoom; i < t.end[view.zoom];) {
    const x = (left[i] - from) * scale, w = width[i] * scale, depth = t.depth[i];
    if (w < THIN && i !== view.zoom) {
      const frame = frameOf(t, i), hit = Boolean(pointed && frame >= 0 && pointed[frame]);
      if (w > 0) {
        let s = strips[depth];
        if (s && (x - s.end > 0.01 || s.pointed !== hit)) { strip(depth); s = null; }
        if (s) s.end = x + w; else strips[depth] = { start: x, end: x + w, pointed: hit };
      }
      i = t.end[i];
      continue;
    }
    if (strips[depth]) strip(depth);
    if (w > 0 || i === view.zoom) box(i, x, w, false);
    i++;
  }
  for (let depth = zoomDepth; depth < strips.length; depth++) if (strips[depth]) strip(depth);
  context.globalAlpha = 1;
  context.strokeStyle = palette.card;
  context.lineWidth = 1;
  context.stroke(edges);
  if (!painted) performance.mark("pprofdiff-painted");
  painted = true;
  outline(selected, 2);
  if (hovered !== selected) outline(hovered, 1);
}

function outline(node, thick) {
  if (node < 0) return;
  const spot = spotOf(node);
  if (!spot) return;
  context.strokeStyle = palette.text;
  context.lineWidth = thick;
  context.strokeRect(spot.x + thick / 2, spot.y - $("view").scrollTop + thick / 2, Math.max(spot.w - thick, 1), ROW - 1 - thick);
  context.lineWidth = 1;
}

/** Where a node is drawn, in the whole picture; null if it is not in what is zoomed in on. */
function spotOf(node) {
  const { t, width, left, across, scale, from } = place();
  const z = view.zoom;
  if (node < z && t.end[node] > z) return { x: 0, w: across, y: top(t.depth[node]) };
  if (node < z || node >= t.end[z]) return null;
  return { x: (left[node] - from) * scale, w: width[node] * scale, y: top(t.depth[node]) };
}

const measured = new Map();
/** The start of a text that fits. Texts are measured once; one that is far too long is not measured whole. */
function fit(text, room) {
  const head = text.length > 400 ? text.slice(0, 400) : text;
  let width = measured.get(head);
  if (width === undefined) measured.set(head, width = context.measureText(head).width);
  if (width <= room && head === text) return [text, width];
  let n = Math.min(head.length, Math.floor(head.length * room / width));
  while (n > 0 && context.measureText(head.slice(0, n) + "…").width > room) n--;
  return n > 1 ? [head.slice(0, n) + "…", room] : ["", 0];
}

/** A box's text: the name, marked if it vanished or appeared, and both values where there is room. */
function label(t, node, x, y, room, colour) {
  let name = nameOf(t, node);
  const mark = t.kind[node] === ROOT ? "" : vanished(t, node) ? "− " : appeared(t, node) ? "+ " : "";
  let [text, used] = fit(mark + name, room);
  if (text !== mark + name) {
    // Where the whole does not fit, its end says more than its beginning: `headers.Classify`.
    const short = name.replace(/^[^\s<([]*\//, "");
    if (short !== name) [text, used] = fit(mark + short, room);
  }
  if (!text) return;
  if (vanished(t, node)) {
    // Letters on hatching are hard to read.
    const alpha = context.globalAlpha;
    context.globalAlpha = alpha * 0.6;
    context.fillStyle = palette.card;
    context.fillRect(x - 2, y - 8, used + 4, 15);
    context.globalAlpha = alpha;
  }
  context.fillStyle = colour;
  context.fillText(text, x, y);
  const rest = room - used - 14;
  if (rest < 40) return;
  const base = t.base[node], fresh = t.new[node];
  const both = twoSided ? `${type().show(base)} → ${type().show(fresh)}` : type().show(fresh);
  for (const values of [twoSided ? `${both}  ${type().percent(fresh - base)}` : `${both}  ${type().percent(fresh)}`, both]) {
    if (context.measureText(values).width <= rest) {
      context.globalAlpha *= 0.85;
      context.fillText(values, x + used + 10, y);
      return;
    }
  }
}

function redraw() { if (!drawing) drawing = requestAnimationFrame(draw); }

/** The node under a point of the canvas, or -1. */
function nodeAt(px, py) {
  const { t, width, left, across, scale, from } = place();
  const row = Math.floor((py + $("view").scrollTop) / ROW), depth = view.upward ? rows - 1 - row : row;
  if (depth < 0 || px < 0 || px > across) return -1;
  let node = view.zoom;
  if (depth <= t.depth[node]) {
    while (t.depth[node] > depth) node = t.parent[node];
    return node;
  }
  const at = from + px / scale;
  while (t.depth[node] < depth) {
    let next = -1;
    for (const child of childrenOf(t, node)) if (left[child] <= at && at < left[child] + width[child]) { next = child; break; }
    if (next < 0) return -1;
    node = next;
  }
  return node;
}

// ---------------------------------------------------------------- words about a node

function element(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

const sign = (delta) => (delta > 0n ? "more" : delta < 0n ? "less" : "");

/** "0.20s → 1.68s, +1.48s (+77.89%)" with the change coloured. */
function pairElement(base, fresh) {
  const span = element("span");
  if (!twoSided) { span.textContent = type().pair(base, fresh); return span; }
  const delta = fresh - base;
  span.append(`${type().show(base)} → ${type().show(fresh)}, `,
    element("span", `${type().delta(delta)} (${type().percent(delta)})`, sign(delta)));
  return span;
}

function describe(t, node) {
  const parts = [element("div", nameOf(t, node), "name")];
  const values = element("div");
  values.append(pairElement(t.base[node], t.new[node]));
  if (vanished(t, node)) values.append(element("span", "vanished", "mark less"));
  if (appeared(t, node)) values.append(element("span", "appeared", "mark more"));
  parts.push(values);
  if (t.kind[node] === PRUNED) {
    parts.push(element("div", "Stacks that are each too thin to be seen, together.", "note"));
  } else {
    const [base, fresh] = flatOf(t, node);
    if (base !== 0n || fresh !== 0n) {
      const own = element("div", view.inverted ? "stacks that begin here: " : "of which itself: ", "note");
      own.append(pairElement(base, fresh));
      parts.push(own);
    }
  }
  return parts;
}

function showDetails() {
  const t = tree(), node = selected >= 0 ? selected : view.zoom;
  $("details").replaceChildren(...describe(t, node));
}

function showTip(x, y) {
  const tip = $("tip");
  if (hovered < 0) { tip.hidden = true; return; }
  tip.replaceChildren(...describe(tree(), hovered));
  tip.hidden = false;
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
  view.find = true;
  const t = tree(), width = t.width[view.width];
  let widest = -1, where = 0;
  for (let i = 1; i < t.n; i++) if (frameOf(t, i) === frame && (widest < 0 || width[i] > width[widest])) widest = i;
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

/** The selected stack, root first, a frame a line. */
async function copyStack() {
  const t = tree(), node = selected >= 0 ? selected : view.zoom;
  const names = pathTo(t, node).map((i) => nameOf(t, i));
  if (view.inverted) names.reverse();
  const text = names.join("\n");
  let done = false;
  // A notebook's frame has no right to the clipboard (and asking is noted as a fault), but may copy what is selected in it.
  const asked = location.protocol === "about:" ? Promise.reject() : navigator.clipboard.writeText(text);
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

let order = [];
const columnOf = {
  name: (b, i) => data.names[b.frame[i]], status: (b, i) => b.status[i],
  flat_base: (b, i) => b.flat_base[i], flat_new: (b, i) => b.flat_new[i], flat_delta: (b, i) => b.flat_new[i] - b.flat_base[i],
  cum_base: (b, i) => b.cum_base[i], cum_new: (b, i) => b.cum_new[i], cum_delta: (b, i) => b.cum_new[i] - b.cum_base[i],
};

function headOfTable() {
  const head = $("table").tHead;
  const groups = element("tr"), columns = element("tr");
  const heads = twoSided
    ? [["name", "function"], ["flat_base", "base"], ["flat_new", "new"], ["flat_delta", "delta"], ["", "%"],
       ["cum_base", "base"], ["cum_new", "new"], ["cum_delta", "delta"], ["", "%"], ["status", "status"]]
    : [["name", "function"], ["flat_new", "flat"], ["", "%"], ["cum_new", "cum"], ["", "%"]];
  if (twoSided) {
    for (const [text, span, title] of [["", 1], ["flat", 4, "what a function costs itself"], ["cum", 4, "with all that it calls"], ["", 1]]) {
      const th = element(text ? "th" : "td", text, text ? "group-start" : "");
      th.colSpan = span;
      if (title) th.title = title;
      groups.append(th);
    }
    head.append(groups);
  }
  for (const [key, text] of heads) {
    const th = element("th", undefined, key === "name" || key === "status" ? "t" : "");
    if (/base$/.test(key)) th.classList.add("group-start");
    th.scope = "col";
    const button = element("button", text);
    button.type = "button";
    const by = key || (heads[heads.findIndex((h) => h[1] === text && h[0] === "") - 1] ?? heads[0])[0];
    button.disabled = !key;
    if (key) {
      th.dataset.key = key;
      button.onclick = () => {
        view.descending = view.sort === by ? !view.descending : by !== "name" && by !== "status";
        view.sort = by;
        showTable();
        keepInFragment();
      };
    }
    th.append(button);
    columns.append(th);
  }
  head.append(columns);
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
  const keys = new Map(order.map((i) => [i, magnitude ? abs(value(b, i)) : value(b, i)]));
  order.sort((i, j) => {
    const x = keys.get(i), y = keys.get(j);
    if (x !== y) return x < y ? -up : up;
    const [p, q] = [data.names[b.frame[i]], data.names[b.frame[j]]];
    return p < q ? -1 : p > q ? 1 : 0;
  });
  for (const th of $("table").tHead.querySelectorAll("th[data-key]")) {
    if (th.dataset.key === view.sort) th.setAttribute("aria-sort", view.descending ? "descending" : "ascending");
    else th.removeAttribute("aria-sort");
  }
  const left = b.of - b.n;
  $("rows").textContent = (regex ? `${order.length} of ${b.n}` : `${b.n}`) + " functions"
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
  const t = type(), cell = (text, className) => tr.append(element("td", text, className));
  for (const [base, fresh] of [[b.flat_base[i], b.flat_new[i]], [b.cum_base[i], b.cum_new[i]]]) {
    if (twoSided) {
      const delta = fresh - base;
      cell(t.show(base), "group-start");
      cell(t.show(fresh));
      cell(t.delta(delta), sign(delta));
      cell(t.percent(delta), sign(delta));
    } else {
      cell(t.show(fresh));
      cell(t.percent(fresh));
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
    for (const text of twoSided ? ["base", "new", "delta"] : ["value"]) head.append(element("th", text));
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
      if (twoSided) tr.append(element("td", type().show(edges.base[i])));
      tr.append(element("td", type().show(edges.new[i])));
      if (twoSided) tr.append(element("td", type().delta(delta), sign(delta)));
      table.tBodies[0].append(tr);
    }
    const more = Number(edges.all[row]) - shown.length;
    if (shown.length === 0) return element("div", title === "callers" ? "No callers: it is a root." : "It calls nothing.", "note");
    if (more > 0) table.tBodies[0].append(element("tr")), table.tBodies[0].lastChild.append(element("td", `and ${more} of less cost`, "t note"));
    return table;
  };
  const self = element("div", undefined, "edge-self");
  self.append(element("div", data.names[view.fn], "name"));
  for (const [text, base, fresh] of [["cum ", b.cum_base[row], b.cum_new[row]], ["flat ", b.flat_base[row], b.flat_new[row]]]) {
    const line = element("div");
    line.append(element("span", text, "caption"), pairElement(base, fresh));
    self.append(line);
  }
  place.append(list(b.callers, "callers"), self, list(b.callees, "callees"));
}

// ---------------------------------------------------------------- summary and controls

function showSummary() {
  const sides = [];
  for (const [what, side] of twoSided ? [["base", data.base], ["new", data.new]] : [["", data.new]]) {
    const div = element("div", undefined, "side");
    if (what) div.append(element("b", what));
    const when = [`${side.samples} sample${side.samples === 1 ? "" : "s"}`];
    if (side.duration) when.push(`in ${side.duration}`);
    if (side.time) when.push(`on ${new Date(side.time).toISOString().replace("T", " ").slice(0, 16)} UTC`);
    div.append(element("span", side.paths.join(" + "), "path"), element("span", when.join(" "), "when"));
    sides.push(div);
  }
  $("sides").replaceChildren(...sides);
  const notes = data.settings.map((text) => element("li", text));
  if (type().raw.factor !== 1) notes.push(element("li", `new × ${type().raw.factor}`));
  if (twoSided) notes.push(element("li", "percentages are of the base's total"));
  notes.push(element("li", data.generator));
  for (const text of data.warnings) notes.push(element("li", "Warning: " + text, "warning"));
  $("notes").replaceChildren(...notes);
  $("total").replaceChildren();
  const [base, fresh] = type().total;
  const total = element("span");
  if (twoSided) {
    const delta = fresh - base;
    const percent = base === 0n ? "the base is zero" : type().percent(delta);
    total.append(element("span", `${type().show(base)} → `), element("b", type().show(fresh)),
      element("span", `  ${type().delta(delta)} (${percent})`, sign(delta)));
  } else total.append(element("b", type().show(fresh)));
  $("total").append(total);
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
  if (width) width.textContent = "width: " + WIDTHS[view.width];
  $("inverted").setAttribute("aria-pressed", String(view.inverted));
  $("upward").setAttribute("aria-pressed", String(view.upward));
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
  $("callgraph").lastElementChild.replaceChildren(drawn);
}

/** What the tables were last made for: they are made anew only if that changed. */
let tabled = "";

/** Draws everything as `view` says. */
function show() {
  document.documentElement.dataset.theme = view.theme;
  if (!palette) readPalette();
  const of = `${view.type} ${view.sort} ${view.descending} ${view.filter}`;
  if ($("search").value !== view.search) $("search").value = view.search;
  if (tabled !== of) {
    if ($("filter").value !== view.filter) $("filter").value = view.filter;
    showSummary();
    showTable();
    showCallGraph();
    tabled = of;
  }
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
}

function controls() {
  for (const [i, t] of types.entries()) {
    const option = element("option", `${t.raw.type}${t.raw.unit ? ` (${t.raw.unit})` : ""}`);
    option.value = String(i);
    if (t.raw.error) { option.disabled = true; option.title = t.raw.error; }
    $("type").append(option);
  }
  $("type").onchange = () => changeTree(() => { view.type = Number($("type").value); }, true);
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
  $("back").onclick = back;
  $("reset").onclick = reset;
  $("copy").onclick = copyStack;
  $("theme").onclick = () => {
    view.theme = { "": "dark", dark: "light", light: "" }[view.theme];
    repaint();
  };
  $("search").oninput = () => { view.search = $("search").value; view.find = false; point(); showControls(); redraw(); keepInFragment(); };
  $("filter").oninput = () => { view.filter = $("filter").value; showTable(); keepInFragment(); };
  $("more").onclick = () => moreRows(500);
  for (const place of [$("table").tBodies[0], $("edges")]) {
    place.onclick = (e) => {
      const row = e.target.closest("tr[data-frame]");
      if (row) find(Number(row.dataset.frame));
    };
  }
  $("callgraph").onclick = (e) => {
    const node = e.target.closest("g.node[data-frame]");
    if (node) find(Number(node.dataset.frame));
  };
  $("view").onscroll = redraw;
  canvas.onmousemove = (e) => {
    const spot = canvas.getBoundingClientRect();
    const node = nodeAt(e.clientX - spot.left, e.clientY - spot.top);
    if (node !== hovered) { hovered = node; redraw(); }
    canvas.style.cursor = node < 0 ? "default" : "pointer";
    showTip(e.clientX, e.clientY);
  };
  canvas.onmouseleave = () => { hovered = -1; showTip(); redraw(); };
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
    if (e.target.closest("input, select") || e.ctrlKey || e.metaKey || e.altKey) {
      if (e.key === "Escape" && e.target.id === "search") { view.search = ""; show(); canvas.focus(); }
      return;
    }
    const mode = MODES[Number(e.key) - 1];
    const act = { "/": () => $("search").focus(), Backspace: back, 0: reset, c: copyStack, i: () => $("inverted").click(),
      f: () => $("upward").click(), t: () => $("theme").click() }[e.key] ?? (mode && twoSided && (() => setWidth(mode[0])));
    if (act) { e.preventDefault(); act(); }
  });
  addEventListener("resize", redraw);
  new ResizeObserver(redraw).observe(document.body);
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
    ...key("gone", "vanished (−)"), ...key("came", "appeared (+)"), element("span", "", "width"));
} else $("legend").textContent = "Colours tell packages apart.";
document.body.classList.toggle("bare", !hasTable);
$("source").hidden = !$("source").querySelector("table");
headOfTable();
controls();
fromFragment(location.hash.slice(1));
show();
})();
