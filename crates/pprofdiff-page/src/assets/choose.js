// The selection: one selection for all views, scrolling it into sight in each view, and the way back.

// ---------------------------------------------------------------- the way back

/** True if the page owns its window and therefore the history. False in the frame of a notebook or of another page. */
const isWindow = window === parent;
/** The fragments that Back returns to. In a window they are in its history, and only their number matters here. */
const trail = [];
let written = "", typed = "";

/**
 * Writes the view to the fragment. Each choice is a step that Back undoes. Everything typed into one field counts as
 * one choice, and so does a walk along stacks with the keyboard.
 */
function keepInFragment(field = "") {
  clearTimeout(settling);
  const fragment = toFragment();
  if (fragment === written) return;
  const isStep = begun && !(field && field === typed);
  typed = field;
  if (isStep) trail.push(written);
  written = fragment;
  // For a page that embeds this one and listens.
  dispatchEvent(new CustomEvent("view", { detail: fragment }));
  write(isStep && isWindow ? "pushState" : "replaceState", trail.length, fragment);
  $("back").disabled = trail.length === 0;
}
let begun = false;

/**
 * State while the window's history goes back, which is asynchronous: the remaining steps, and what to write afterwards.
 */
let going = false, farther = 0;
const later = [];

function write(how, steps, fragment) {
  if (going) { later.push([how, steps, fragment]); return; }
  // Some environments, such as a notebook's frame, do not let the page change its address.
  try { history[how]({ steps }, "", "#" + fragment); } catch { /* the view is not stored */ }
}

function back() {
  if (settling) keepInFragment("span");
  if (trail.length === 0) return;
  // Steps from before a reload, or reached by going forward, have no text here. Only the history has it.
  const fragment = trail.pop();
  if (fragment !== undefined) restore(fragment);
  if (!isWindow || !(going || history.state?.steps)) return;
  if (going) farther++; else history.back();
  going = fragment !== undefined;
}

addEventListener("popstate", () => {
  if (!going) return;
  if (farther > 0) { history.go(-farther); farther = 0; return; }
  going = false;
  for (const entry of later.splice(0)) write(...entry);
});

/** Restores the view of a fragment without adding a step. */
function restore(fragment) {
  fromFragment(fragment);
  written = fragment;
  typed = "";
  begun = false;
  tableKey = "";
  repaint();
  begun = true;
  follow();
}

addEventListener("hashchange", () => {
  const fragment = location.hash.slice(1);
  if (going || fragment === written) return;
  trail.length = history.state?.steps ?? 0;
  restore(fragment);
});

// ---------------------------------------------------------------- tabs

/** The views. A phone shows one at a time. */
const TABS = [["flame", "Flame graph"], ["functions", "Table"], ["neighbours", "Callers"], ["callgraph", "Call graph"], ["source", "Source"]];

function makeTabs() {
  for (const [tab, text] of TABS) {
    const button = element("button", text);
    button.type = "button";
    button.dataset.tab = tab;
    button.onclick = () => { view.tab = tab; show(); follow(); };
    $("tabs").append(button);
  }
}

function showTabs() {
  for (const button of $("tabs").children) {
    button.hidden = $(button.dataset.tab).hidden;
    button.setAttribute("aria-pressed", String(button.dataset.tab === view.tab));
  }
  document.querySelector("main").dataset.tab = $(view.tab).hidden ? "flame" : view.tab;
}

// ---------------------------------------------------------------- the selection

/** Scrolls the selection into sight in each view. Each view scrolls independently. */
function follow() {
  const within = (place, spot) => {
    const outer = place.getBoundingClientRect(), inner = spot.getBoundingClientRect();
    if (inner.top < outer.top + 50 || inner.bottom > outer.bottom) place.scrollTop += inner.top - outer.top - outer.height / 3;
    if (inner.left < outer.left || inner.right > outer.right) place.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
  };
  if (view.fn < 0) return;
  const position = order.findIndex((i) => type().table.frame[i] === view.fn);
  if (position >= rowsShown) moreRows(position + 1 - rowsShown);
  const row = $("table").querySelector(`tr[data-frame="${view.fn}"]`);
  if (row) within(row.closest(".scroll"), row);
  const node = $("callgraph").querySelector(`g.node[data-frame="${view.fn}"]`);
  if (node) within($("callgraph").lastElementChild, node);
  const listing = listingOf(view.fn);
  if (listing) { listing.open = true; within(listing.closest(".scroll"), listing.firstElementChild); }
}

const nameOfListing = (listing) => listing.querySelector("b").textContent;

/** Returns the listing of a function, if the page has one. */
const listingOf = (frame) => [...$("source").querySelectorAll("details")].find((listing) => nameOfListing(listing) === data.names[frame]);

/** Shows the selection in the pane at the lower edge of a desktop window, with its source lines only. */
function showPane() {
  const b = type().table, row = b?.rowOf.get(view.fn), all = printing || narrow.matches;
  $("pane").hidden = !b;
  $("pane").classList.toggle("open", view.pane);
  $("open").setAttribute("aria-expanded", String(view.pane));
  const listings = [...$("source").querySelectorAll("details")], ownListing = view.fn < 0 ? undefined : listingOf(view.fn);
  $("source").hidden = listings.length === 0;
  $("open").textContent = listings.length > 0 ? "Callers, callees, source" : "Callers, callees";
  $("chosen").replaceChildren(element("span", view.fn < 0 ? "No function selected." : data.names[view.fn], view.fn < 0 ? "note" : "name"));
  if (row !== undefined) $("chosen").append(pairElement(b.cum_base[row], b.cum_new[row], b.cum_chance[row]));
  for (const listing of listings) listing.hidden = !all && view.fn >= 0 && listing !== ownListing;
  if (all || view.pane) orderLines();
  if (ownListing && view.pane) ownListing.open = true;
  $("source").querySelector(".others")?.remove();
  if (all || view.fn < 0 || ownListing || listings.length === 0) return;
  const note = element("p", "This page has no source lines for this function, but for these: ", "others note");
  for (const listing of listings) {
    const button = element("button", nameOfListing(listing));
    button.type = "button";
    button.dataset.frame = data.names.indexOf(nameOfListing(listing));
    note.append(button, " ");
  }
  $("source").lastElementChild.append(note);
}

/** Scrolls a clicked element out from behind the pane, which the click may have opened. */
function keepAbovePane(clicked) {
  const pane = $("pane").getBoundingClientRect(), spot = clicked.getBoundingClientRect();
  const isPinned = !narrow.matches && pane.bottom >= innerHeight - 1;
  const isHidden = spot.top < innerHeight && spot.bottom > pane.top;
  if (isPinned && isHidden && !$("pane").contains(clicked)) scrollBy(0, spot.bottom - pane.top + 12);
}

/**
 * Highlights the stacks of a cause in the graph, and its function in all views. A negative cause clears the highlight.
 */
function choose(cause) {
  view.cause = cause;
  view.search = "";
  view.find = false;
  if (cause >= 0) {
    const { functions } = type().raw.causes[cause], row = (frame) => type().table?.rowOf.get(frame) ?? Infinity;
    view.zoom = 0;
    view.span = "";
    view.fn = functions.toSorted((a, b) => row(a) - row(b))[0];
  }
  show();
  if (cause < 0) return;
  const t = tree(), boxes = boxesOf(t, setOf(type().raw.causes[cause].functions));
  const widest = widestOf(t, (i) => boxes[i] && pointed[i]);
  if (widest >= 0) reveal(widest);
  follow();
}

function zoomTo(node) {
  const t = tree();
  if (node < 0 || (node === view.zoom && !view.span) || t.width[view.width][node] <= 0) return;
  view.zoom = node;
  view.span = "";
  show();
}

function select(node) {
  selected = node;
  const t = tree(), frame = node >= 0 ? frameOf(t, node) : -1;
  if (frame >= 0) view.fn = frame;
  view.find = false;
}

/**
 * Runs `change`, which switches to another tree. If `keep`, the zoomed and the selected node become the nodes of the
 * other tree with the longest common path. Otherwise both are cleared.
 */
function changeTree(change, keep) {
  const before = tree(), zoom = view.zoom, chosen = selected;
  change();
  view.span = "";
  view.zoom = keep ? sameNode(before, zoom, tree()) : 0;
  selected = keep && chosen > 0 ? sameNode(before, chosen, tree()) || -1 : -1;
  if (tree().width[view.width][view.zoom] <= 0) view.zoom = 0;
  show();
}

/** Highlights the boxes of a function and selects the widest. Zooms if that box would be too narrow to see. */
function find(frame) {
  view.fn = frame;
  view.search = "";
  view.cause = -1;
  view.find = true;
  view.pane = true;
  if (view.fold && !tree().kind.includes(frame + FIRST_FRAME)) view.fold = false;
  const t = tree(), width = t.width[view.width];
  const widest = widestOf(t, (i) => frameOf(t, i) === frame);
  let zoomNode = 0;
  selected = widest;
  if (widest >= 0) {
    if (!isInSight(widest)) view.span = "";
    const spot = spotOf(widest);
    // On a phone, a graph in a hidden tab has width 0.
    if (canvas.clientWidth > 0 && (!spot || spot.w < 12)) {
      // Zoom only as far as needed to make the box visible.
      const across = canvas.clientWidth, wide = (in_) => width[widest] / width[in_] * across;
      zoomNode = widest;
      while (zoomNode > 0 && wide(t.parent[zoomNode]) >= 200) zoomNode = t.parent[zoomNode];
      if (width[zoomNode] > 0) view.zoom = zoomNode;
    }
  }
  show();
  follow();
  if (widest >= 0) reveal(widest);
  else $("details").replaceChildren(element("div", data.names[frame], "name"),
    element("div", "Only in stacks that are too thin to draw.", "note"));
}

/** Returns true if part of a box is horizontally in sight. */
function isInSight(node) {
  const spot = spotOf(node);
  return Boolean(spot) && Math.min(spot.x + spot.w, canvas.clientWidth) - Math.max(spot.x, 0) > 2;
}

/** Scrolls the picture vertically to a node. */
function reveal(node) {
  const spot = spotOf(node), v = $("view");
  if (!spot) return;
  if (spot.y < v.scrollTop) v.scrollTop = Math.max(0, spot.y - ROW);
  else if (spot.y + ROW > v.scrollTop + v.clientHeight) v.scrollTop = spot.y + 2 * ROW - v.clientHeight;
}

/** Returns the names on the stack of a node, root first. */
function stackOf(node) {
  const t = tree(), names = pathTo(t, node).map((i) => nameOf(t, i));
  return view.inverted ? names.reverse() : names;
}

/** True in a notebook's frame, whose document has no URL of its own. */
const inNotebook = location.protocol === "about:";

/**
 * Posts the selected frame and stack to the notebook, which knows the content of its frame, if they changed. A page
 * outside of a notebook posts nothing.
 */
let lastSelection = "";
function tell() {
  if (!inNotebook) return;
  const t = tree(), chosen = selected > 0 && t.kind[selected] >= FIRST_FRAME;
  const choice = chosen ? { frame: nameOf(t, selected), stack: stackOf(selected) } : { frame: null, stack: [] };
  const text = JSON.stringify(choice);
  if (text !== lastSelection && (lastSelection || chosen)) parent.postMessage(choice, "*");
  lastSelection = text;
}

/** Copies a text to the clipboard and reports the result in `place`. */
async function copyText(text, description, place) {
  let done = false;
  // A notebook's frame has no access to the clipboard (and an attempt is logged as an error), but can copy its
  // selection.
  const writing = inNotebook ? Promise.reject() : navigator.clipboard.writeText(text);
  try { await writing; done = true; } catch {
    const area = element("textarea", text, "aside");
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  place.append(element("div", done ? `Copied: ${description}.` : "The browser does not allow this page to copy.", "note"));
}

const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

/** Copies the selected stack, one frame per line. */
function copyStack() {
  const names = stackOf(selected >= 0 ? selected : view.zoom);
  return copyText(names.join("\n"), counted(names.length, "frame"), $("details"));
}

/** Handles arrow keys: moves along the stack and to neighbouring boxes. */
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
  // Walking out of the zoomed box moves the zoom, too.
  if (node < z || node >= t.end[z]) view.zoom = node < z && t.end[node] > z ? node : t.parent[node];
  if (!isInSight(node)) view.span = "";
  show("walk");
  follow();
  reveal(node);
}
