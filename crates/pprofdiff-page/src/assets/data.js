// The data of the page: reads the data block into types, each with its trees and its table as typed arrays.
//
// The page's script is one function. It consists of data.js, names.js, flame.js, zoom.js, timelines.js, view.js,
// choose.js, table.js, summary.js and page.js, in this order.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const twoSided = data.base !== null;
const BASE = 1, NEW = 2;                       // bits of a node's sides
const ROOT = 0, PRUNED = 1, FIRST_FRAME = 2;   // kinds of nodes
const ROW = 20;                                // pixels of a box's height, with the gap below it
const THIN = 0.5;                              // pixels below which boxes are drawn as one strip
const STATUSES = ["added", "removed", "changed", "same"];

// ---------------------------------------------------------------- reading

/** Decodes a base64 column into bytes. */
function bytesOf(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Reads a column of unsigned numbers up to 2^53 (ids, depths, kinds of nodes). */
function readNumbers(text, count) {
  const bytes = bytesOf(text), out = new Float64Array(count);
  for (let i = 0, offset = 0; i < count; i++) {
    let value = 0, factor = 1, byte;
    do { byte = bytes[offset++]; value += (byte & 127) * factor; factor *= 128; } while (byte > 127);
    out[i] = value;
  }
  return out;
}

/**
 * Reads a column of int64 in zigzag encoding. Creating BigInts is slow, so the first 49 bits are summed as an ordinary
 * number, which is exact up to 53 bits.
 */
function readValues(text, count) {
  const bytes = bytesOf(text), out = new BigInt64Array(count);
  for (let i = 0, offset = 0; i < count; i++) {
    let low = 0, factor = 1, n = 0, byte;
    do { byte = bytes[offset++]; low += (byte & 127) * factor; factor *= 128; } while (byte > 127 && ++n < 7);
    if (byte <= 127) {
      out[i] = BigInt(low % 2 ? -(low + 1) / 2 : low / 2);
      continue;
    }
    let whole = BigInt(low), shift = 49n;
    do { byte = bytes[offset++]; whole |= BigInt(byte & 127) << shift; shift += 7n; } while (byte > 127);
    out[i] = (whole >> 1n) ^ -(whole & 1n);
  }
  return out;
}

/** Reads a column of bits, eight per byte. A missing column is all 0. */
function readBits(text, count) {
  const bytes = text ? bytesOf(text) : [];
  return Uint8Array.from({ length: count }, (_, i) => bytes[i >> 3] >> (i & 7) & 1);
}

/**
 * Reads a tree whose nodes are in depth-first order. For each node, `parent` is -1 for the root, and `end` is the first
 * node after its subtree. `width` has the node's width for each mode of the flame graph.
 */
function readTree(raw) {
  const n = raw.nodes, depth = Uint32Array.from(readNumbers(raw.depth, n)), codes = readNumbers(raw.what, n);
  const kind = new Uint32Array(n), sides = new Uint8Array(n), parent = new Int32Array(n), end = new Int32Array(n);
  const path = [];
  for (let i = 0; i < n; i++) {
    kind[i] = Math.floor(codes[i] / 4);
    sides[i] = codes[i] % 4;
    while (path.length > depth[i]) end[path.pop()] = i;
    parent[i] = path.length ? path[path.length - 1] : -1;
    path.push(i);
  }
  while (path.length) end[path.pop()] = n;
  // Values are stored as the difference from the parent's value.
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
    // For non-negative values, the larger is half of the sum of both plus half of their absolute difference.
    width.delta = Float64Array.from(max, (m, i) => Number(2n * m - base[i] - fresh[i]));
  }
  const chance = readBits(raw.chance, n);
  return { n, depth, kind, sides, parent, end, base, new: fresh, width, chance, left: {}, pruned: raw.pruned };
}

/** Returns the left edge of each node, in the same unit as the widths of this mode. Computed once for each mode. */
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

/**
 * Returns a tree in which all runtime functions that a user's frame calls are one box without children, of the frame
 * RUNTIME. Runtime frames above the first user's frame stay, because they started the program.
 */
function foldTree(t) {
  const isSystem = (i) => Boolean(system[t.kind[i] - FIRST_FRAME]);
  const kind = [], depth = [], boxes = [];       // for each new node; boxes: the old nodes that it replaces
  const todo = [{ nodeKind: ROOT, nodeDepth: 0, parts: [0], inUser: false }];
  while (todo.length > 0) {
    const { nodeKind, nodeDepth, parts, inUser } = todo.pop(), isUser = inUser || (nodeKind >= FIRST_FRAME && !system[nodeKind - FIRST_FRAME]);
    kind.push(nodeKind);
    depth.push(nodeDepth);
    boxes.push(parts);
    if (nodeKind === RUNTIME + FIRST_FRAME) continue;
    const children = [...childrenOf(t, parts[0])], runtime = isUser ? children.filter(isSystem) : [];
    if (runtime.length > 0) todo.push({ nodeKind: RUNTIME + FIRST_FRAME, nodeDepth: nodeDepth + 1, parts: runtime });
    for (const child of children.reverse()) {
      if (!isUser || !isSystem(child)) todo.push({ nodeKind: t.kind[child], nodeDepth: nodeDepth + 1, parts: [child], inUser: isUser });
    }
  }
  const n = kind.length, sum = (column) => boxes.map((parts) => parts.map((i) => column[i]).reduce((a, b) => a + b));
  const parent = new Int32Array(n), end = new Int32Array(n).fill(n), path = [];
  for (let i = 0; i < n; i++) {
    while (path.length > depth[i]) end[path.pop()] = i;
    parent[i] = path.length ? path.at(-1) : -1;
    path.push(i);
  }
  const width = {};
  for (const [mode, column] of Object.entries(t.width)) width[mode] = Float64Array.from(sum(column));
  return {
    n, depth: Uint32Array.from(depth), kind: Uint32Array.from(kind), parent, end, width, left: {}, pruned: t.pruned,
    sides: Uint8Array.from(boxes, (parts) => parts.reduce((sides, i) => sides | t.sides[i], 0)),
    base: BigInt64Array.from(sum(t.base)), new: BigInt64Array.from(sum(t.new)),
    chance: Uint8Array.from(boxes, (parts) => +parts.every((i) => t.chance[i])),
  };
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
    flat_chance: readBits(raw.flat_chance, n), cum_chance: readBits(raw.cum_chance, n),
    callers: edges(raw.callers), callees: edges(raw.callees), rowOf: new Map(),
  };
  for (let i = 0; i < n; i++) table.rowOf.set(table.frame[i], i);
  return table;
}

/**
 * Formats growth relative to the base: `x5.06` from twice the base on, otherwise `+12.3%` or `-30%`; `new` or `gone` if
 * one side is zero; "–" if both are zero or one is negative. The rules equal those of other formats (numbers.rs).
 */
function growth(base, fresh) {
  if (base < 0n || fresh < 0n || (base === 0n && fresh === 0n)) return "–";
  if (base === 0n) return "new";
  if (fresh === 0n) return "gone";
  const cut = (digits) => digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
  const threeDigits = (v) => cut(v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : v.toFixed(0));
  const change = Number(fresh - base) / Number(base), percent = 100 * change, size = Math.abs(percent);
  if (change + 1 >= 2) return "x" + threeDigits(change + 1);
  if (percent === 0) return "0%";
  const sign = percent > 0 ? "+" : "-";
  if (size < 0.005) return sign + "<0.01%";
  return sign + (percent < -99 ? cut(Math.min(size, 99.99).toFixed(2)) : threeDigits(size)) + "%";
}

/** A sample type. Its trees and its table are read on first use. */
class Type {
  constructor(raw) {
    this.raw = raw;
    this.total = raw.total ? raw.total.map(BigInt) : [0n, 0n];
    /** The total of the stacks that filters keep. Without filters, the same array as `total`. */
    this.kept = raw.kept ? raw.kept.map(BigInt) : this.total;
    this.trees = {};
    this.scale = this.scaleOf(this.total);
  }
  tree(direction) { return this.trees[direction] ??= readTree(this.raw[direction]); }
  /** The tree from the root, with all runtime calls of each user frame as one box. */
  get folded() { return this.trees.folded ??= foldTree(this.tree("down")); }
  get table() { return this.raw.table ? this.rows ??= readTable(this.raw.table) : null; }

  /** Returns the unit for a value: the largest unit in which the value is at least 1, or else the smallest unit. */
  suited(value) {
    const [units, smallest] = this.raw.units;
    return units.findLast(([, factor]) => value / factor >= 1) ?? units[smallest];
  }
  /** Returns the unit of a column, which suits the largest magnitude. Null if the sample type's unit is unknown. */
  scaleOf(values) {
    let largest = 0;
    for (const v of values) largest = Math.max(largest, Math.abs(Number(v)));
    return this.raw.units ? this.suited(largest) : null;
  }
  /** The units of the table, for its sides and its deltas. Text uses the same rules (`CostFormat`). */
  get scales() {
    const b = this.table, of = (name) => [...b["flat_" + name], ...b["cum_" + name]];
    return this.ofTable ??= this.scalesOf(of("base"), of("new"));
  }
  scalesOf(bases, news) {
    const sides = this.scaleOf([...bases, ...news]), deltas = news.map((v, i) => v - bases[i]);
    const own = sides && deltas.every((d, i) => Math.abs(Number(d)) / sides[1] < 0.1 && (d === 0n || ![bases[i], news[i]].some((v) => v === d || v === -d)));
    return { sides, delta: own ? this.scaleOf(deltas) : sides };
  }
  /**
   * Formats a value in a column's unit (by default the total's), or in a smaller unit if it would read as zero. A value
   * in an unknown unit keeps all its digits.
   */
  show(value, scale = this.scale) {
    if (!scale) return value.toString();
    const number = Number(value);
    if (number === 0) return "0";
    const fits = Math.abs(number) / scale[1] >= 0.005;
    const [symbol, factor] = fits ? scale : this.suited(Math.abs(number));
    const scaled = number / factor, size = Math.abs(scaled);
    const digits = scaled.toFixed(size < 0.01 ? 5 : size < 0.1 ? 4 : size < 1 ? 3 : 2);
    return digits.replace(/\.00$|(?<=\.\d\d\d*)0+$/, "") + symbol;
  }
  delta(value, scale = this.scale) { return (value > 0n ? "+" : "") + this.show(value, scale); }
  /**
   * Formats a change's signed share of the base's total, or a value's share of a single profile's total; "–" if that
   * total is 0.
   */
  share(value, whole = twoSided ? this.total[0] : this.total[1]) {
    if (whole === 0n) return "–";
    const percent = 100 * Number(value) / Number(whole), size = Math.abs(percent);
    if (percent === 0) return "0%";
    const sign = percent < 0 ? "-" : twoSided ? "+" : "";
    return sign + (size < 0.005 ? "<0.01" : size.toFixed(size < 99.995 ? 2 : size < 999.95 ? 1 : 0)) + "%";
  }
  /** Returns a change in words: [both sides, the change with growth and share]. */
  change(base, fresh) {
    const delta = fresh - base, share = this.total[0] === 0n ? "" : `, ${this.share(delta)} of total`;
    const scales = this.scalesOf([base], [fresh]);
    return [`${this.show(base, scales.sides)} → ${this.show(fresh, scales.sides)}`, `${this.delta(delta, scales.delta)}, ${growth(base, fresh)}${share}`];
  }
  /**
   * Explains why a change is within noise, by the size of the frame: its value in the base, or if that is 0, its value
   * on the new side, without normalization and at the base's amount of work.
   */
  chance(base, fresh) {
    const { event, least, work } = this.raw.chance;
    const size = base > 0n ? Number(base) : Number(fresh) / (this.raw.factor * work);
    const factor = least[Math.max(0, Math.min(least.length - 1, Math.floor(Math.log2(size / event))))];
    // There are no thresholds if the base's total is at most one event. A threshold of null means that no growth would
    // be significant.
    if (!factor) return `${this.delta(fresh - base)}: these samples cannot distinguish it from noise`;
    const figure = (v) => String(Number(v.toPrecision(2)));
    const where = Math.abs(work - 1) < 1e-6 ? "" : `, given that the work is x${Number(work.toPrecision(3))}`;
    const more = factor < 2 ? `a change by more than ±${figure(100 * (factor - 1))}%` : `growth beyond x${figure(factor)}`;
    return `${this.delta(fresh - base)}: within noise${where}; for a frame of this size, only ${more} is significant`;
  }
  /** Formats both sides of a value in words, or the value of a single profile with its share. */
  pair(base, fresh) {
    if (twoSided && base === 0n && fresh === 0n) return "0";
    return twoSided ? this.change(base, fresh).join(", ") : `${this.show(fresh)} (${this.share(fresh)})`;
  }
}

/** For each name, 1 if it belongs to the language's runtime. */
const system = readBits(data.system, data.names.length);
/** The index of the name of a box that stands for folded runtime calls. */
const RUNTIME = data.names.push("(runtime)") - 1;
const types = data.types.map((raw) => new Type(raw));
const hasTable = types.some((t) => t.raw.table);

// ---------------------------------------------------------------- the nodes of a tree

function nameOf(t, node) {
  const kind = t.kind[node];
  return kind === ROOT ? "all" : kind === PRUNED ? "(pruned)" : data.names[kind - FIRST_FRAME];
}
const frameOf = (t, node) => t.kind[node] - FIRST_FRAME;

/** Returns the nodes from the root's child down to a node. */
function pathTo(t, node) {
  const path = [];
  for (let i = node; i > 0; i = t.parent[i]) path.push(i);
  return path.reverse();
}

function* childrenOf(t, node) {
  for (let i = node + 1; i < t.end[node]; i = t.end[i]) yield i;
}

/** Returns the cost of the stacks that end at a node: its value minus its children's values. 0 for a (pruned) box. */
function flatOf(t, node) {
  let base = t.base[node], fresh = t.new[node];
  if (t.kind[node] === PRUNED) return [0n, 0n];
  for (const child of childrenOf(t, node)) { base -= t.base[child]; fresh -= t.new[child]; }
  return [base, fresh];
}

/** Returns the node of another tree with the same path, or with the longest common part of it. */
function sameNode(from, node, to) {
  let current = 0;
  for (const step of pathTo(from, node)) {
    let next = -1;
    for (const child of childrenOf(to, current)) if (to.kind[child] === from.kind[step]) next = child;
    if (next < 0) break;
    current = next;
  }
  return current;
}

const vanished = (t, node) => twoSided && t.sides[node] === BASE;
const appeared = (t, node) => twoSided && t.sides[node] === NEW;
