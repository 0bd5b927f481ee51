// What people choose: one selection for all views, what brings it into sight in each of them, and the way back.

// ---------------------------------------------------------------- the way back

/** The address of its own that the page has in a window; in a notebook's or another page's frame it has none. */
const isWindow = window === parent;
/** The fragments that Back goes to. A window has them in its history, where only their number counts. */
const trail = [];
let written = "", typed = "";

/**
 * Writes the view to the fragment. Each choice is a step that Back undoes; what is typed into one field is one choice, and
 * so are the stacks that the keyboard walks along.
 */
function keepInFragment(field = "") {
  clearTimeout(settling);
  const fragment = toFragment();
  if (fragment === written) return;
  const isStep = begun && !(field && field === typed);
  typed = field;
  if (isStep) trail.push(written);
  written = fragment;
  // For what frames the page, if it listens.
  dispatchEvent(new CustomEvent("view", { detail: fragment }));
  write(isStep && isWindow ? "pushState" : "replaceState", trail.length, fragment);
  $("back").disabled = trail.length === 0;
}
let begun = false;

/** While the window's history goes back, which takes it a moment: how much farther it has to, and what to write then. */
let going = false, farther = 0;
const later = [];

function write(how, steps, fragment) {
  if (going) { later.push([how, steps, fragment]); return; }
  // Not every place that shows the page lets it touch its address: a notebook's frame, for one.
  try { history[how]({ steps }, "", "#" + fragment); } catch { /* the view is just not kept */ }
}

function back() {
  if (settling) keepInFragment("span");
  if (trail.length === 0) return;
  // What is as before a reload, or was gone forward to, has no text here: only the history has it.
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

/** Brings a view back, without a step of its own. */
function restore(fragment) {
  fromFragment(fragment);
  written = fragment;
  typed = "";
  begun = false;
  tabled = "";
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

/** The views: on a phone one at a time. */
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

/** Brings what is chosen into sight in its places, each of which scrolls by itself. */
function follow() {
  const within = (place, spot) => {
    const outer = place.getBoundingClientRect(), inner = spot.getBoundingClientRect();
    if (inner.top < outer.top + 50 || inner.bottom > outer.bottom) place.scrollTop += inner.top - outer.top - outer.height / 3;
    if (inner.left < outer.left || inner.right > outer.right) place.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
  };
  if (view.fn < 0) return;
  const at = order.findIndex((i) => type().table.frame[i] === view.fn);
  if (at >= rowsShown) moreRows(at + 1 - rowsShown);
  const row = $("table").querySelector(`tr[data-frame="${view.fn}"]`);
  if (row) within(row.closest(".scroll"), row);
  const node = $("callgraph").querySelector(`g.node[data-frame="${view.fn}"]`);
  if (node) within($("callgraph").lastElementChild, node);
  const listing = listingOf(view.fn);
  if (listing) { listing.open = true; within(listing.closest(".scroll"), listing.firstElementChild); }
}

const nameOfListing = (listing) => listing.querySelector("b").textContent;

/** The source lines of a function, if they are here. */
const listingOf = (frame) => [...$("source").querySelectorAll("details")].find((listing) => nameOfListing(listing) === data.names[frame]);

/** What is chosen, at the lower edge of a desk's window, and its source lines alone. */
function showPane() {
  const b = type().table, row = b?.rowOf.get(view.fn), all = printing || narrow.matches;
  $("pane").hidden = !b;
  $("pane").classList.toggle("open", view.pane);
  $("open").setAttribute("aria-expanded", String(view.pane));
  const listings = [...$("source").querySelectorAll("details")], own = view.fn < 0 ? undefined : listingOf(view.fn);
  $("source").hidden = listings.length === 0;
  $("open").textContent = listings.length > 0 ? "Callers, callees, source" : "Callers, callees";
  $("chosen").replaceChildren(element("span", view.fn < 0 ? "No function is chosen." : data.names[view.fn], view.fn < 0 ? "note" : "name"));
  if (row !== undefined) $("chosen").append(pairElement(b.cum_base[row], b.cum_new[row], b.cum_chance[row]));
  for (const listing of listings) listing.hidden = !all && view.fn >= 0 && listing !== own;
  if (all || view.pane) orderLines();
  if (own && view.pane) own.open = true;
  $("source").querySelector(".others")?.remove();
  if (all || view.fn < 0 || own || listings.length === 0) return;
  const note = element("p", "This page has no source lines of it, but of these: ", "others note");
  for (const listing of listings) {
    const button = element("button", nameOfListing(listing));
    button.type = "button";
    button.dataset.frame = data.names.indexOf(nameOfListing(listing));
    note.append(button, " ");
  }
  $("source").lastElementChild.append(note);
}

/** Scrolls what was clicked out from behind the pane that this has opened. */
function keepAbovePane(clicked) {
  const pane = $("pane").getBoundingClientRect(), spot = clicked.getBoundingClientRect();
  const isPinned = !narrow.matches && pane.bottom >= innerHeight - 1;
  const isHidden = spot.top < innerHeight && spot.bottom > pane.top;
  if (isPinned && isHidden && !$("pane").contains(clicked)) scrollBy(0, spot.bottom - pane.top + 12);
}

/** Points out the stacks of a cause in the graph, and its function everywhere; or all again. */
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
  const t = tree(), of = boxesOf(t, setOf(type().raw.causes[cause].functions));
  const widest = widestOf(t, (i) => of[i] && pointed[i]);
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

/** Changes the tree that is looked at, and stays at the same stack if it has it. */
function changeTree(change, keep) {
  const before = tree(), zoom = view.zoom, chosen = selected;
  change();
  view.span = "";
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
  view.pane = true;
  if (view.fold && !tree().kind.includes(frame + FIRST_FRAME)) view.fold = false;
  const t = tree(), width = t.width[view.width];
  const widest = widestOf(t, (i) => frameOf(t, i) === frame);
  let where = 0;
  selected = widest;
  if (widest >= 0) {
    if (!isInSight(widest)) view.span = "";
    const spot = spotOf(widest);
    // A graph that a phone does not show now has no width.
    if (canvas.clientWidth > 0 && (!spot || spot.w < 12)) {
      // As near as it takes to be seen, and no nearer.
      const across = canvas.clientWidth, wide = (in_) => width[widest] / width[in_] * across;
      where = widest;
      while (where > 0 && wide(t.parent[where]) >= 200) where = t.parent[where];
      if (width[where] > 0) view.zoom = where;
    }
  }
  show();
  follow();
  if (widest >= 0) reveal(widest);
  else $("details").replaceChildren(element("div", data.names[frame], "name"),
    element("div", "Only in stacks that are too thin to be drawn.", "note"));
}

/** Whether some of a box is to be seen, as far as the width is concerned. */
function isInSight(node) {
  const spot = spotOf(node);
  return Boolean(spot) && Math.min(spot.x + spot.w, canvas.clientWidth) - Math.max(spot.x, 0) > 2;
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

/** Copies a text, and says so in a place. */
async function copyText(text, what, place) {
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
  place.append(element("div", done ? `Copied: ${what}.` : "The browser does not let this page copy.", "note"));
}

const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

/** The selected stack, a frame a line. */
function copyStack() {
  const names = stackOf(selected >= 0 ? selected : view.zoom);
  return copyText(names.join("\n"), counted(names.length, "frame"), $("details"));
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
  if (!isInSight(node)) view.span = "";
  show("walk");
  follow();
  reveal(node);
}
