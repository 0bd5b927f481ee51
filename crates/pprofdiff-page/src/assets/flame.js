// The flame graph: colours, drawing on the canvas, and the positions of nodes.

// ---------------------------------------------------------------- colours

const MODES = [
  ["max", "larger side", "Width: the larger side of each stack; vanished stacks keep their width (1)"],
  ["base", "base", "Width: the base (2)"],
  ["new", "new", "Width: the new side (3)"],
  ["delta", "change", "Width: the change of each stack in either direction (4)"],
];
const WIDTHS = {
  max: "the larger side of each stack", base: "base", new: "new",
  delta: "the change of each stack in either direction; colour: the net direction",
};
const STEPS = 32;
const LETTER = 7;                              // width of a letter in pixels: narrower adjacent boxes look like one box
const FADED = 0.6, DIM = 0.25;                 // opacity of the zoomed box's callers, and of boxes that are not highlighted
const READABLE = 4.5;                          // minimum contrast of text (WCAG 1.4.3)
let palette;

/** Reads the colours of the swatches, which the style sheet defines, and mixes the steps from less to more. */
function readPalette() {
  const colour = (name) => {
    const [r, g, b] = getComputedStyle(document.querySelector(".s-" + name)).backgroundColor.match(/[\d.]+/g).map(Number);
    return [r, g, b];
  };
  const mix = (a, b, t) => a.map((v, i) => v + (b[i] - v) * t);
  const css = (c) => `rgb(${c.map(Math.round).join(",")})`;
  const [less, same, more, card] = ["less", "same", "more", "card"].map(colour);
  const inks = (paper) => {
    const strong = [[0, 0, 0], [255, 255, 255]].sort((a, b) => contrast(b, paper) - contrast(a, paper))[0];
    let quiet = strong;
    for (let part = 0.4; part > 0 && quiet === strong; part -= 0.05) {
      const mixed = mix(strong, paper, part).map(Math.round);
      if (contrast(mixed, paper) > READABLE + 0.1) quiet = mixed;
    }
    return { strong: css(strong), quiet: css(quiet) };
  };
  // A translucent box lets the page's background through.
  const on = (c, part) => inks(mix(card, c, part));
  const box = (c) => ({ fill: css(c), ink: { 1: on(c, 1), [FADED]: on(c, FADED), [DIM]: on(c, DIM) } });
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
    // Text on hatching gets a plate in the colour of the background.
    gone: { ...box(card), fill: context.createPattern(hatch, "repeat") },
  };
}

/** Returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio"). */
function contrast(a, b) {
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

/**
 * Returns the change relative to the larger side, from -1 (vanished) to 1 (appeared). If the width shows change in
 * either direction, returns the net change relative to the width: 1 if all stacks of a box rose. A nearly cancelled
 * change still shows its direction.
 */
function relative(t, node) {
  if (view.width === "delta") {
    const net = Number(t.new[node] - t.base[node]);
    return net === 0 ? 0 : Math.sign(net) * Math.max(0.3, Math.min(1, Math.abs(net) / t.width.delta[node]));
  }
  const base = Number(t.base[node]), fresh = Number(t.new[node]);
  const larger = Math.max(Math.abs(base), Math.abs(fresh));
  return larger === 0 ? 0 : Math.max(-1, Math.min(1, (fresh - base) / larger));
}

/** The shade of each name. A single profile has no change to show, so colours distinguish packages. */
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
  if (isGrey(t.chance[node])) return palette.root;
  if (vanished(t, node)) return palette.gone;
  return palette.change[STEPS + Math.round(relative(t, node) * STEPS)];
}

// ---------------------------------------------------------------- drawing

const canvas = $("canvas"), context = canvas.getContext("2d");
const FONT = "12px system-ui, 'Segoe UI', 'Liberation Sans', sans-serif";
const PRINTED = 4000;                          // maximum height of a printed graph in pixels
let rows = 1, drawing = 0, painted = false, laidOut = "", printing = false;
let pointer = null, hovered = -1;              // the mouse position in the window, and the node under it

/** Returns the current placement of nodes. Callers of the zoomed node take the whole width. */
function place() {
  const t = tree(), width = t.width[view.width], left = leftOf(t, view.width), [begin, end] = span();
  const across = canvas.clientWidth, whole = width[view.zoom];
  const scale = whole > 0 ? across / whole / (end - begin) : 0;
  return { t, width, left, across, scale, from: left[view.zoom] + begin * whole };
}

/** Returns the y coordinate of a depth in the whole picture. */
const top = (depth) => (view.upward ? rows - 1 - depth : depth) * ROW;

/**
 * Returns the maximum height of the picture: most of the window, or on a page without a table, all of the window that
 * the rest of the page leaves free.
 */
function mostHeight() {
  if (printing) return PRINTED;
  if (hasTable) return Math.max(300, innerHeight * 0.62);
  return Math.max(6 * ROW, innerHeight - (document.body.offsetHeight - $("view").offsetHeight));
}

/** Sets the height of the picture, down to the deepest box that is wide enough to draw. */
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
  const ratio = sharpness(), w = canvas.clientWidth, h = Math.ceil(Math.min(height, most));
  canvas.style.height = h + "px";
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  if (view.upward && rows !== before) $("view").scrollTop = height;
  laidOut = `${canvas.clientWidth} ${innerHeight}`;
}

/** Returns the number of canvas pixels per page pixel. */
const sharpness = () => (printing ? 2 : devicePixelRatio || 1);

function draw() {
  drawing = 0;
  // A frame can be laid out before it has a size, and can get one without an event.
  if (laidOut !== `${canvas.clientWidth} ${innerHeight}`) layout();
  const { t, width, left, across, scale, from } = place();
  const ratio = sharpness(), height = canvas.height / ratio, scrolled = $("view").scrollTop;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, across, height);
  context.font = FONT;
  context.textBaseline = "middle";
  hover();
  if (width[view.zoom] <= 0) {
    context.fillStyle = palette.text;
    context.fillText(view.width === "delta" ? "No stack changed." : "There are no stacks here.", 4, ROW / 2);
    return;
  }
  const edges = new Path2D();
  const strips = [];                    // for each depth: where a strip of thin boxes begins and ends
  const zoomDepth = t.depth[view.zoom];
  const strip = (depth) => {
    const s = strips[depth];
    if (s && s.end - s.start >= 0.2) {
      context.globalAlpha = pointed && !s.pointed ? DIM : 1;
      context.fillStyle = s.pointed ? palette.accent : palette.pruned.fill;
      context.fillRect(s.start, top(depth) - scrolled, s.end - s.start, ROW - 1);
    }
    strips[depth] = null;
  };
  const box = (node, x, w, faded) => {
    const y = top(t.depth[node]) - scrolled;
    if (y > height || y + ROW < 0) return;
    // If a box extends beyond an edge, the visible part gets the name.
    if (x < 0) { w += x; x = 0; }
    w = Math.min(w, across - x + 1);
    const { fill, ink } = boxOf(t, node);
    const alpha = pointed && !pointed[node] ? DIM : faded ? FADED : 1;
    context.globalAlpha = alpha;
    context.fillStyle = fill;
    context.fillRect(x, y, w, ROW - 1);
    if (w > LETTER) { edges.moveTo(x + w - 0.5, y); edges.lineTo(x + w - 0.5, y + ROW - 1); }
    if (vanished(t, node) && w > LETTER) {
      context.strokeStyle = isGrey(t.chance[node]) ? ink[1].quiet : palette.less;
      context.setLineDash([3, 2]);
      context.strokeRect(x + 0.5, y + 0.5, w - 2, ROW - 2);
      context.setLineDash([]);
    }
    if (w <= 26) return;
    context.globalAlpha = 1;
    const { strong, quiet } = ink[alpha];
    label(t, node, x + 4, y + ROW / 2, w - 8, alpha < 1 ? quiet : strong, quiet);
  };
  for (let i = view.zoom, up = t.parent[i]; up >= 0; up = t.parent[up]) box(up, 0, across, true);
  for (let i = view.zoom; i < t.end[view.zoom];) {
    const x = (left[i] - from) * scale, w = width[i] * scale, depth = t.depth[i];
    if (i !== view.zoom && (x > across || x + w < 0)) { i = t.end[i]; continue; }
    if (w < THIN && i !== view.zoom) {
      const hit = Boolean(pointed?.[i]);
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
  showMap();
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

/** Returns where a node is drawn in the whole picture, or null if it is neither in nor above the zoomed box. */
function spotOf(node) {
  const { t, width, left, across, scale, from } = place();
  const z = view.zoom;
  if (node < z && t.end[node] > z) return { x: 0, w: across, y: top(t.depth[node]) };
  if (node < z || node >= t.end[z]) return null;
  return { x: (left[node] - from) * scale, w: width[node] * scale, y: top(t.depth[node]) };
}

const measured = new Map();
/**
 * Returns [the beginning of a text that fits into `room` pixels, its width], or ["", 0] if less than two letters fit.
 * The width of a whole text is measured once, and of a very long text only the beginning.
 */
function fit(text, room) {
  const head = text.length > 400 ? text.slice(0, 400) : text;
  let width = measured.get(head);
  if (width === undefined) measured.set(head, width = context.measureText(head).width);
  if (width <= room && head === text) return [text, width];
  let n = Math.min(head.length, Math.floor(head.length * room / width));
  while (n > 0 && context.measureText(head.slice(0, n) + "…").width > room) n--;
  return n > 1 ? [head.slice(0, n) + "…", room] : ["", 0];
}

/** Draws a box's text: the name, marked if it vanished or appeared, and both values if there is room. */
function label(t, node, x, y, room, strong, quiet) {
  const name = nameOf(t, node);
  const mark = t.kind[node] === ROOT ? "" : vanished(t, node) ? "− " : appeared(t, node) ? "+ " : "";
  let text = "", used = 0;
  for (const short of lengthsOf(name)) {
    [text, used] = fit(mark + short, room);
    if (text === mark + short) break;
  }
  if (!text) return;
  const values = valuesIn(t, node, room - used - 14);
  if (boxOf(t, node) === palette.gone) {
    // Text is hard to read on hatching, so draw a plate below it.
    context.fillStyle = palette.card;
    context.fillRect(x - 2, y - 8, used + 4 + (values ? 10 + context.measureText(values).width : 0), 15);
  }
  context.fillStyle = strong;
  context.fillText(text, x, y);
  context.fillStyle = quiet;
  if (values) context.fillText(values, x + used + 10, y);
}

/** Returns as much of both values and the growth as fits, or "". */
function valuesIn(t, node, room) {
  if (room < 40) return "";
  const base = t.base[node], fresh = t.new[node];
  const { sides } = type().scalesOf([base], [fresh]);
  const both = twoSided ? `${type().show(base, sides)} → ${type().show(fresh, sides)}` : type().show(fresh);
  const all = `${both}  ${twoSided ? growth(base, fresh) : type().share(fresh)}`;
  return [all, both].find((values) => context.measureText(values).width <= room) ?? "";
}

/**
 * Finds the node under the mouse and shows its tooltip. Every redraw, scroll and overlap goes through this function, so
 * a tooltip cannot outlive its node.
 */
function hover() {
  hovered = -1;
  if (pointer && tree().width[view.width][view.zoom] > 0 && document.elementFromPoint(pointer.x, pointer.y) === canvas) {
    const spot = canvas.getBoundingClientRect();
    hovered = nodeAt(pointer.x - spot.left, pointer.y - spot.top);
  }
  canvas.style.cursor = hovered < 0 ? "default" : "pointer";
  showTip();
}

function redraw() { if (!drawing) drawing = requestAnimationFrame(draw); }

/** Returns the node at a point of the canvas, or -1. */
function nodeAt(px, py) {
  const { t, width, left, across, scale, from } = place();
  const row = Math.floor((py + $("view").scrollTop) / ROW), depth = view.upward ? rows - 1 - row : row;
  if (depth < 0 || px < 0 || px > across) return -1;
  let node = view.zoom;
  if (depth <= t.depth[node]) {
    while (t.depth[node] > depth) node = t.parent[node];
    return node;
  }
  const position = from + px / scale;
  while (t.depth[node] < depth) {
    let next = -1;
    for (const child of childrenOf(t, node)) if (left[child] <= position && position < left[child] + width[child]) { next = child; break; }
    if (next < 0) return -1;
    node = next;
  }
  return node;
}
