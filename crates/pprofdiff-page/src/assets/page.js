// Draws everything from `view`, and sets up the controls: buttons, keys, the pointer.
//
//     data block -> types (trees and table as typed arrays) -> view (the reader's choices) -> drawing

/** The state for which the tables and the call graph were last built. They are rebuilt only if it changes. */
let tableKey = "", graphKey = "";

/** Draws everything from `view`. `field` is the field that the reader is typing into, if any. */
function show(field = "") {
  document.documentElement.dataset.theme = printing ? "light" : view.theme;
  document.documentElement.classList.toggle("printing", printing);
  if (!palette) readPalette();
  const newTableKey = `${view.type} ${view.sort} ${view.descending} ${view.filter} ${view.grey} ${view.columns}`;
  if ($("search").value !== view.search) $("search").value = view.search;
  if (tableKey !== newTableKey) {
    if ($("filter").value !== view.filter) $("filter").value = view.filter;
    showSummary();
    showWhy();
    showMovers();
    showTable();
    tableKey = newTableKey;
  }
  if (courses) showCourses();
  point();
  showControls();
  showTabs();
  // On a phone, a hidden call graph has no size for its layout.
  const newGraphKey = `${view.type} ${narrow.matches && view.tab === "callgraph"}`;
  if (graphKey !== newGraphKey) { showCallGraph(); showControls(); graphKey = newGraphKey; }
  showPruned();
  showEdges();
  showPane();
  for (const node of $("callgraph").querySelectorAll("g.node")) node.classList.toggle("chosen", Number(node.dataset.frame) === view.fn);
  showRest();
  for (const tr of $("table").tBodies[0].querySelectorAll("tr[data-frame]")) tr.setAttribute("aria-selected", String(Number(tr.dataset.frame) === view.fn));
  showDetails();
  layout();
  redraw();
  keepInFragment(field);
  tell();
}

/** [key, description, action]. Keys without an action are handled by the canvas. */
const KEYS = [
  ["/", "search", () => $("search").focus()],
  ...(twoSided ? MODES.map(([mode], i) => [String(i + 1), `width: ${WIDTHS[mode]}`, () => setWidth(mode)]) : []),
  ["i", "by callee: from the leaf to its callers, or back", () => $("inverted").click()],
  ["f", "root at the bottom, or at the top", () => $("upward").click()],
  ["r", "fold or unfold runtime calls", () => $("fold").click()],
  ["g", "grey out changes within noise, or not", () => $("grey").click()],
  ["Arrows", "walk the stacks after a click on the graph; with Shift, move sideways"],
  ["Enter", "zoom in on the selected box"],
  ["Wheel", "with Ctrl, or pinch: zoom at the pointer; drag to move"],
  ["+", "zoom in: the call graph if it has the focus, otherwise the flame graph", () => zoomFocused(1.5)],
  ["-", "zoom out", () => zoomFocused(1 / 1.5)],
  ["Backspace", "back: undo the last choice", back],
  ["0", "show all", reset],
  ["Esc", "show all; in the search, clear it"],
  ["c", "copy the selected stack", copyStack],
  ["e", "callers, callees and source lines of the selected function", () => $("open").click()],
  ["t", "theme: dark, light or system", () => $("theme").click()],
  ["?", "show these keys", () => $("help").click()],
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
    // For a series: the largest timeline of this change.
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
  $("fold").onclick = () => changeTree(() => { view.fold = !view.fold; view.inverted = false; }, true);
  $("csv").onclick = copyTable;
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
  $("search").oninput = () => { view.search = $("search").value; view.find = false; view.cause = -1; point(); showControls(); redraw(); keepInFragment("search"); };
  $("filter").oninput = () => { view.filter = $("filter").value; showTable(); keepInFragment("filter"); };
  $("more").onclick = () => moreRows(500);
  for (const place of [$("movers"), $("table").tBodies[0], $("edges")]) {
    place.onclick = (e) => {
      const row = e.target.closest("tr[data-frame]");
      if (!row) return;
      find(Number(row.dataset.frame));
      keepAbovePane(row);
    };
  }
  $("callgraph").onclick = (e) => {
    const node = e.target.closest("g.node[data-frame], li[data-frame]");
    if (!node) return;
    find(Number(node.dataset.frame));
    keepAbovePane(node);
  };
  $("open").onclick = () => { view.pane = !view.pane; show(); };
  $("source").onclick = (e) => {
    const other = e.target.closest("button[data-frame]");
    if (other) find(Number(other.dataset.frame));
  };
  $("fit").onclick = () => {
    view.fit = fitted() ? "0" : "1";
    view.scale = "";
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
  // Touch has no hovering. The details of a touched box are shown below the graph.
  canvas.onpointermove = (e) => { if (e.pointerType !== "touch") follow({ x: e.clientX, y: e.clientY }); };
  canvas.onpointerleave = () => follow(null);
  zoomFlame();
  zoomCallGraph();
  canvas.onclick = (e) => {
    const spot = canvas.getBoundingClientRect();
    const node = nodeAt(e.clientX - spot.left, e.clientY - spot.top);
    if (node < 0) return;
    select(node);
    if ((node === view.zoom && !view.span) || tree().kind[node] === PRUNED) show(); else zoomTo(node);
  };
  canvas.onkeydown = (e) => {
    if (e.shiftKey && /^Arrow[LR]/.test(e.key)) { e.preventDefault(); moveAlong(e.key === "ArrowLeft" ? -0.2 : 0.2); }
    else if (e.key.startsWith("Arrow")) { e.preventDefault(); walk(e.key); }
    else if (e.key === "Enter") zoomTo(selected);
    else if (e.key === "Escape") reset();
  };
  document.addEventListener("keydown", (e) => {
    if ($("keys").open) return;
    if (e.key === "Escape") {
      follow(null);
      // The clicked element may no longer be in the pane.
      if (view.pane && (e.target === document.body || $("pane").contains(e.target))) { $("open").click(); $("open").focus(); } else if (view.cause >= 0) choose(-1);
    }
    if (e.target.closest("input, select") || e.ctrlKey || e.metaKey || e.altKey) {
      if (e.key === "Escape" && e.target.id === "search") { view.search = ""; show(); canvas.focus(); }
      return;
    }
    const act = KEYS.find(([key]) => key === (e.key === "=" ? "+" : e.key))?.[2];
    if (act) { e.preventDefault(); act(); }
  });
  addEventListener("resize", () => { showControls(); if (courses) showCourse(); redraw(); });
  new ResizeObserver(redraw).observe(document.body);
  narrow.addEventListener("change", () => { tableKey = ""; show(); });
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      const folds = document.querySelectorAll("#about > details, #why details");
      for (const fold of folds) {
        if (on) fold.dataset.open = fold.open;
        fold.open = on || fold.dataset.open === "true";
      }
      printing = on;
      repaint();
      draw();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}

function setWidth(mode) {
  view.width = mode;
  view.span = "";
  const t = tree();
  while (view.zoom > 0 && t.width[mode][view.zoom] <= 0) view.zoom = t.parent[view.zoom];
  show();
}

/** Zooms the call graph if it has the keyboard focus, otherwise the flame graph. */
const zoomFocused = (factor) => ($("callgraph").contains(document.activeElement) ? zoomGraphBy : zoomByKey)(factor);

function reset() {
  view.zoom = 0;
  view.span = "";
  view.search = "";
  view.find = false;
  view.cause = -1;
  selected = -1;
  show();
}

/** Redraws everything after a change of theme. */
function repaint() {
  palette = null;
  show();
}

for (const name of ["less", "same", "more", "one-a", "one-b", "card", "text", "accent"]) document.body.append(element("i", undefined, "swatch s-" + name));
if (twoSided) {
  const key = (className, text) => [element("i", undefined, className), element("span", text)];
  $("legend").append(element("span", "less"), element("i", undefined, "ramp"), element("span", "more"),
    ...key("gone", "vanished (−)"), ...key("came", "appeared (+)"), ...key("chance", "within noise"), element("span", "", "width"));
} else $("legend").textContent = "Colours distinguish packages.";
document.body.classList.toggle("bare", !hasTable);
$("source").hidden = !$("source").querySelector("table");
if (courses) {
  makeCourses();
  $("type-of").textContent = "change";
}
makeChoice();
$("title").textContent = document.title;
makeTabs();
controls();
fromFragment(location.hash.slice(1));
show();
begun = true;
follow();
