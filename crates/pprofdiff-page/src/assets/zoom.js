// Zooming and moving by wheel, pinch, drag and keys: the visible part of the flame graph, the map that shows its
// position, and the call graph.

/**
 * Reports gestures on an element: zoom(factor, x, y) around a point of the window, and move(dx, dy, how) in pixels,
 * where `how` is "wheel", "mouse", "touch" or "pinch". `move` returns true if something moved. A wheel alone scrolls
 * the page as usual. With Ctrl it zooms; browsers also report a pinch on a touchpad that way. A drag that moved
 * something is not a click.
 */
function gestures(place, zoom, move) {
  const down = new Map();
  let dragged = false;
  place.addEventListener("wheel", (e) => {
    const line = e.deltaMode === 0 ? 1 : 20, [across, along] = e.shiftKey && !e.deltaX ? [e.deltaY, 0] : [e.deltaX, e.deltaY];
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(-line * e.deltaY / 200), e.clientX, e.clientY);
    else if (Math.abs(across) <= Math.abs(along) || !move(-line * across, 0, "wheel")) return;
    e.preventDefault();
  }, { passive: false });
  place.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    if (down.size === 0) dragged = false;
    down.set(e.pointerId, { x: e.clientX, y: e.clientY });
  });
  place.addEventListener("pointermove", (e) => {
    const last = down.get(e.pointerId), now = { x: e.clientX, y: e.clientY };
    if (!last) return;
    const far = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
    // Ignore the tremor of a hand.
    if (!dragged && down.size === 1 && far(last, now) < 5) return;
    down.set(e.pointerId, now);
    if (down.size === 1) dragged = move(now.x - last.x, now.y - last.y, e.pointerType === "touch" ? "touch" : "mouse") || dragged;
    else {
      const other = [...down].find(([id]) => id !== e.pointerId)[1];
      // Keep the content below the fingers in place.
      if (far(last, other) > 0) zoom(far(now, other) / far(last, other), (last.x + other.x) / 2, (last.y + other.y) / 2);
      move((now.x - last.x) / 2, (now.y - last.y) / 2, "pinch");
      dragged = true;
    }
    if (dragged) place.setPointerCapture(e.pointerId);
  });
  for (const end of ["pointerup", "pointercancel"]) place.addEventListener(end, (e) => down.delete(e.pointerId));
  place.addEventListener("click", (e) => { if (dragged) e.stopImmediatePropagation(); dragged = false; }, true);
}

/** Writes the position to the address once movement ends, because browsers reject 60 changes per second. */
let settling = 0;
function settleAt(field) {
  clearTimeout(settling);
  settling = setTimeout(() => { settling = 0; keepInFragment(field); }, 60);
}

// ---------------------------------------------------------------- the flame graph

const CLOSEST = 1e-6;                          // minimum part of a box that can fill the width

/** Returns the visible part of the zoomed box: its begin and end as fractions of the box's width, by default [0, 1]. */
function span() {
  const [from, to] = view.span.split("_").map(Number);
  return from >= 0 && from < to && to <= 1 ? [from, to] : [0, 1];
}

/** Shows another part of the zoomed box, clamped to the box. Returns true if the part changed. */
function setSpan(from, size) {
  const before = view.span;
  size = Math.max(CLOSEST, Math.min(1, size));
  from = Math.max(0, Math.min(1 - size, from));
  view.span = size > 0.999 ? "" : `${Number(from.toPrecision(9))}_${Number(Math.min(1, from + size).toPrecision(9))}`;
  if (view.span === before) return false;
  layout();
  showControls();
  redraw();
  settleAt("span");
  return true;
}

/** Expresses the visible part relative to the whole graph instead of the zoomed box, so that it can leave the box. */
function leaveBox() {
  if (view.zoom === 0) return;
  const { width, left } = place(), [from, to] = span();
  const [begin, whole] = [left[view.zoom], width[view.zoom]];
  view.zoom = 0;
  view.span = `${(begin + from * whole) / width[0]}_${Math.min(1, (begin + to * whole) / width[0])}`;
}

/** Zooms around a point of the canvas. Zooming out of the zoomed box continues in the whole graph. */
function zoomAt(factor, x) {
  if (tree().width[view.width][view.zoom] <= 0) return;
  if ((span()[1] - span()[0]) / factor > 1) leaveBox();
  const [from, to] = span(), fraction = x / canvas.clientWidth, size = Math.max(CLOSEST, Math.min(1, (to - from) / factor));
  setSpan(from + fraction * (to - from - size), size);
}

/** Moves sideways by a fraction of the visible part. */
function moveAlong(part) {
  const [from, to] = span();
  return setSpan(from + part * (to - from), to - from);
}

/** Zooms by keyboard: around the selected box if it is in sight, otherwise around the middle. */
function zoomByKey(factor) {
  const spot = selected > 0 && spotOf(selected), middle = spot ? spot.x + spot.w / 2 : -1, across = canvas.clientWidth;
  zoomAt(factor, middle >= 0 && middle <= across ? middle : across / 2);
}

function zoomFlame() {
  gestures(canvas, (factor, x) => zoomAt(factor, x - canvas.getBoundingClientRect().left), (dx, dy, how) => {
    const v = $("view"), before = v.scrollTop;
    if (how !== "touch") v.scrollTop -= dy;
    return moveAlong(-dx / canvas.clientWidth) || v.scrollTop !== before;
  });
  const map = $("map"), seek = (e) => {
    const { left, width, top, height } = map.getBoundingClientRect(), v = $("view");
    leaveBox();
    const [from, to] = span();
    setSpan((e.clientX - left) / width - (to - from) / 2, to - from);
    v.scrollTop = (e.clientY - top) / height * v.scrollHeight - v.clientHeight / 2;
    redraw();
  };
  map.onpointerdown = (e) => { map.setPointerCapture(e.pointerId); seek(e); };
  map.onpointermove = (e) => { if (map.hasPointerCapture(e.pointerId)) seek(e); };
}

// ---------------------------------------------------------------- its map

const MAPPED = 1.5;                            // width in pixels below which the map omits a box
let mapKey = "", mapDepth = 0;

/**
 * Shows the whole graph in small with a frame around the visible part. Hidden if everything is visible, and in print.
 */
function showMap() {
  const map = $("map"), v = $("view"), whole = tree().width[view.width][0];
  const isPart = view.zoom > 0 || view.span !== "", isTall = v.scrollHeight > v.clientHeight + ROW;
  const wasHidden = map.hidden;
  map.hidden = printing || !(isPart || isTall) || whole <= 0;
  // Without a table, the map takes its room from the graph.
  if (map.hidden !== wasHidden && !hasTable) { layout(); redraw(); }
  if (map.hidden) return;
  const newMapKey = [view.type, view.width, view.inverted, view.fold, view.upward, view.grey, palette.text, map.clientWidth, sharpness()].join();
  // Draw the graph first and the map afterwards.
  if (mapKey === newMapKey) frameMap(); else setTimeout(() => { drawMap(); frameMap(); });
  mapKey = newMapKey;
}

function drawMap() {
  const { t, width, left } = place(), w = $("map").clientWidth, h = $("map").clientHeight, ratio = sharpness();
  const boxes = [], scale = w / width[0];
  for (let i = 0; i < t.n;) if (width[i] * scale < MAPPED) i = t.end[i]; else boxes.push(i++);
  mapDepth = boxes.reduce((deepest, i) => Math.max(deepest, t.depth[i]), 0);
  const row = h / (mapDepth + 1), picture = $("map").firstElementChild, small = picture.getContext("2d");
  [picture.width, picture.height] = [w * ratio, h * ratio];
  small.scale(ratio, ratio);
  for (const i of boxes) {
    const box = boxOf(t, i), depth = view.upward ? mapDepth - t.depth[i] : t.depth[i];
    small.fillStyle = box === palette.gone ? palette.less : box.fill;
    small.fillRect(left[i] * scale, depth * row, width[i] * scale, row > 2 ? row - 0.5 : row);
  }
}

/** Places the frame around the visible part. */
function frameMap() {
  const { width, scale, from, across } = place(), v = $("view"), h = $("map").clientHeight, row = h / (mapDepth + 1);
  const first = v.scrollTop / ROW - (view.upward ? rows - 1 - mapDepth : 0), top = Math.max(0, Math.min(h - 4, first * row));
  Object.assign($("map").lastElementChild.style, {
    left: `${100 * from / width[0]}%`,
    width: `max(3px, ${100 * Math.min(1, across / scale / width[0])}%)`,
    top: `${top}px`,
    height: `${Math.max(4, Math.min(h - top, v.clientHeight / ROW * row))}px`,
  });
}

// ---------------------------------------------------------------- the call graph

/** Returns the scale of the call graph; 1 is its natural size. */
function graphScale() {
  const svg = $("callgraph").querySelector("svg");
  return svg ? svg.getBoundingClientRect().width / graphWidth() : 1;
}

/** Sets the size of the call graph: fitted to the page, or by the view's scale. */
function sizeGraph() {
  const svg = $("callgraph").querySelector("svg");
  $("callgraph").classList.toggle("fitted", fitted());
  if (!svg) return;
  svg.style.width = view.scale && `${Number(view.scale) * graphWidth()}px`;
  svg.style.height = view.scale && "auto";
}

/** Zooms around a point of the window, which keeps its position. */
function zoomGraph(factor, x, y) {
  const svg = $("callgraph").querySelector("svg"), scroll = $("callgraph").lastElementChild;
  if (!svg) return;
  const whole = scroll.clientWidth / graphWidth(), before = svg.getBoundingClientRect();
  view.scale = String(Number(Math.max(Math.min(0.2, whole), Math.min(4, graphScale() * factor)).toPrecision(4)));
  sizeGraph();
  const after = svg.getBoundingClientRect();
  scroll.scrollLeft += after.left + (x - before.left) / before.width * after.width - x;
  scroll.scrollTop += after.top + (y - before.top) / before.height * after.height - y;
  showControls();
  settleAt("scale");
}

/** Zooms around the middle of the visible part. */
function zoomGraphBy(factor) {
  const { left, top, width, height } = $("callgraph").lastElementChild.getBoundingClientRect();
  zoomGraph(factor, left + width / 2, top + height / 2);
}

function zoomCallGraph() {
  const scroll = $("callgraph").lastElementChild;
  // Touch and the wheel already scroll the element.
  gestures(scroll, zoomGraph, (dx, dy, how) => {
    if (how !== "mouse" && how !== "pinch") return false;
    const { scrollLeft, scrollTop } = scroll;
    scroll.scrollLeft -= dx;
    scroll.scrollTop -= dy;
    return scroll.scrollLeft !== scrollLeft || scroll.scrollTop !== scrollTop;
  });
  $("larger").onclick = () => zoomGraphBy(1.25);
  $("smaller").onclick = () => zoomGraphBy(0.8);
}
