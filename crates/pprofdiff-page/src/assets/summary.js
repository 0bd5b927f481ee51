// Everything around graph and table: summary, causes, largest changes, the state of the controls, the call graph.

// ---------------------------------------------------------------- summary and controls

function showSummary() {
  const sides = [];
  for (const [sideName, side] of twoSided ? ["base", "new"].map((sideName) => [sideName, type().raw[sideName] ?? data[sideName]]) : [["", data.new]]) {
    const div = element("div", undefined, "side");
    if (sideName) div.append(element("b", sideName));
    const when = [side.extent];
    if (side.duration) when.push(`in ${side.duration}`);
    if (side.time) when.push(`on ${new Date(side.time).toISOString().replace("T", " ").slice(0, 16)} UTC`);
    div.append(element("span", side.name, "path"), element("span", when.join(" "), "when"));
    sides.push(div);
  }
  $("sides").replaceChildren(...sides);
  const notes = data.settings.map((text) => element("li", text));
  if (type().raw.factor !== 1) notes.push(element("li", `new × ${type().raw.factor}`));
  $("notes").replaceChildren(...notes, ...data.warnings.map((text) => element("li", "Warning: " + text, "warning")));
  $("about").querySelector("p").textContent = (twoSided ? "Growth is relative to the row's base, “of total” to the base's total. " : "") + data.generator;
  // Omit the folder that both paths share.
  const paths = sides.map((side) => side.querySelector(".path").textContent), folder = /^.*\//.exec(paths[0])?.[0] ?? "";
  const inside = (path) => {
    // For several runs, shorten each path. If all files have the same name, keep the folders that distinguish them.
    if (/^\w+ of \d+ \w+: /.test(path)) {
      const folders = path.match(/[^\s,:]*\//g) ?? [""], bare = path.replace(/[^\s,:]*\//g, "");
      if (new Set(bare.replace(/^.*?: /, "").split(/, | \.\.\. | \+ /)).size > 1) return bare;
      let common = folders[0];
      while (!folders.every((other) => other.startsWith(common))) common = common.replace(/[^/]*\/$/, "");
      return path.replace(/[^\s,:]*\//g, (other) => other.slice(common.length));
    }
    return paths.every((other) => other.startsWith(folder)) ? path.slice(folder.length) : path;
  };
  $("names").replaceChildren(...paths.flatMap((path, i) => [i > 0 ? " → " : "", element("span", inside(path), "path")]));
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

/** Shows the explanation of the current sample type, if there is one. */
function showWhy() {
  const panels = [...$("why").querySelectorAll("[data-type]")];
  for (const panel of panels) panel.hidden = Number(panel.dataset.type) !== view.type;
  $("why").hidden = panels.length === 0;
  // Without explanations the section about the page comes first, so open it.
  if (panels.length === 0) $("about").firstElementChild.open = true;
  $("unexplained").hidden = panels.some((panel) => !panel.hidden);
}

/** Shows the frames that rose and fell most, next to the total. */
function showMovers() {
  const { rose, fell } = type().raw;
  const lists = [[twoSided ? "rose most" : "cost most", rose], ["fell most", fell]].filter(([, rows]) => rows?.length);
  $("movers").hidden = lists.length === 0;
  $("movers").replaceChildren(...lists.map(([title, rows]) => {
    const table = element("table"), head = element("tr"), titleCell = element("th", title, "t");
    titleCell.append(element("span", "flat", "caption"));
    titleCell.colSpan = twoSided ? 2 : 3;
    titleCell.title = COSTS.flat;
    head.append(titleCell);
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
    : `${stacks} of ${of} stacks (${percent(share)} of the width) are in (pruned) boxes: stacks below ${percent(widest)} of the whole are not drawn individually.`;
}

function showControls() {
  $("type").value = String(view.type);
  for (const button of $("width-mode").children) button.setAttribute("aria-pressed", String(button.dataset.mode === view.width));
  const width = document.querySelector("#legend .width");
  if (width) width.textContent = `${view.inverted ? "by callee; " : ""}width: ${WIDTHS[view.width]}`;
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
  sizeGraph();
  $("fold").setAttribute("aria-pressed", String(view.fold && !view.inverted));
  $("back").disabled = trail.length === 0;
  for (const box of $("choice").querySelectorAll("input")) box.checked = shown.includes(box.value);
  $("reset").disabled = view.zoom === 0 && !view.span && !pointed;
  if ($("search").value !== view.search) $("search").value = view.search;
  if ($("filter").value !== view.filter) $("filter").value = view.filter;
  const theme = $("theme");
  theme.textContent = { "": "Theme: system", dark: "Theme: dark", light: "Theme: light" }[view.theme];
}

/** Shows the sample type's call graph. Its SVG is parsed as XML, so scripts in it cannot run. */
function showCallGraph() {
  const graph = type().raw.callgraph;
  $("callgraph").hidden = !graph;
  // On a phone, the graph has no size until its tab is shown.
  showTabs();
  if (!graph) return;
  const parsed = new DOMParser().parseFromString(graph.svg, "image/svg+xml").documentElement;
  const drawn = document.importNode(parsed, true);
  for (const [i, node] of drawn.querySelectorAll("g.node").entries()) node.dataset.frame = graph.frames[i];
  // Use the page's colours, which support light and dark themes.
  for (const part of drawn.querySelectorAll("[data-share]")) {
    const share = Number(part.dataset.share);
    part.style.setProperty("--tone", share < 0 ? "var(--less)" : "var(--more)");
    part.style.setProperty("--part", String(Math.sqrt(Math.min(1, Math.abs(share)))));
  }
  const scroll = $("callgraph").lastElementChild;
  scroll.replaceChildren(drawn);
  // Move the legend into the page, where it stays readable if the graph is small. Skip its first lines (sides and
  // total), which the page already shows.
  const legend = [...drawn.children].filter((e) => e.tagName === "text"), skippedLines = twoSided ? 3 : 2;
  $("callgraph").querySelector(".note").textContent = legend.slice(skippedLines).map((e) => e.textContent).join(" · ");
  const paper = drawn.querySelector(":scope > rect"), content = drawn.querySelector(":scope > g"), margin = 8;
  const { x, y, width, height } = content?.getBBox() ?? { width: 0 };
  if (width > 0 && paper) {
    for (const e of legend) e.remove();
    content.removeAttribute("transform");
    const box = [x - margin, y - margin, width + 2 * margin, height + 2 * margin].map(Math.round);
    drawn.setAttribute("viewBox", box.join(" "));
    for (const [i, name] of ["x", "y", "width", "height"].entries()) {
      if (i > 1) drawn.setAttribute(name, box[i]);
      paper.setAttribute(name, box[i]);
    }
  }
  sizeGraph();
  seekChange();
}

/** Returns the natural width of the call graph. */
const graphWidth = () => Number($("callgraph").querySelector("svg")?.getAttribute("width"));

/**
 * Returns true if the call graph is fitted to the page width. After zooming it never is. Otherwise the reader's choice
 * decides, or by default: true on a phone, and if fitting keeps more than 60% of the natural size, which is readable.
 */
function fitted() {
  if (view.scale) return false;
  if (view.fit !== "") return view.fit === "1";
  return narrow.matches || $("callgraph").lastElementChild.clientWidth > 0.6 * graphWidth();
}

/**
 * Returns the nodes of the heaviest changed path, without the root: from the root to the callee whose stacks changed
 * most, and so on, until no callee has a third of its caller's change. For a single profile, follows cost.
 */
function heaviestPath() {
  const t = type().tree("down"), path = [];
  const size = (i) => Math.abs(Number(t.new[i] - (twoSided ? t.base[i] : 0n)));
  for (let node = 0; ;) {
    let next = -1;
    for (const child of childrenOf(t, node)) if (t.kind[child] >= FIRST_FRAME && (next < 0 || size(child) > size(next))) next = child;
    if (next < 0 || size(next) === 0 || size(next) < size(node) / 3) return path;
    path.push(next);
    node = next;
  }
}

/** Marks the heaviest changed path in the graph, and shows it as a list, which fits on a phone. */
function showPath() {
  const t = type().tree("down"), path = heaviestPath();
  const frames = new Set(path.map((i) => frameOf(t, i)));
  for (const node of $("callgraph").querySelectorAll("g.node")) node.classList.toggle("path", frames.has(Number(node.dataset.frame)));
  $("path").replaceChildren(...path.map((i) => {
    const li = element("li"), button = element("button", nameOf(t, i));
    button.type = "button";
    li.dataset.frame = frameOf(t, i);
    li.append(button, pairElement(t.base[i], t.new[i], t.chance[i]));
    return li;
  }));
  return path.map((i) => frameOf(t, i));
}

/** Scrolls a large call graph to the end of the heaviest changed path and as much above it as fits. */
function seekChange() {
  const path = showPath(), scroll = $("callgraph").lastElementChild;
  const nodes = path.map((frame) => $("callgraph").querySelector(`g.node[data-frame="${frame}"]`)).filter(Boolean);
  const end = nodes.at(-1) ?? $("callgraph").querySelector("g.node");
  if (!end) return;
  const spot = end.getBoundingClientRect(), around = scroll.getBoundingClientRect();
  scroll.scrollLeft += (spot.left + spot.right - around.left - around.right) / 2;
  scroll.scrollTop += spot.bottom - around.bottom + 40;
}
