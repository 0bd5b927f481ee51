// The page around the report. It receives files, sends questions to the engine, and shows the resulting report in a
// frame.

import { Stopped, engine, isServed } from "./engine.js";

const $ = (id) => document.getElementById(id);

// ---------------------------------------------------------------- state

const NOTHING = Object.freeze({ session: null, files: [] });
/**
 * The open files: the name of the engine's session, and the files `{name, file}`, indexed by the engine's file numbers.
 * Files of the command line have no `file`. Dropped files get a new session, so the previous session survives until the
 * new report is shown.
 */
let opened = NOTHING;
/**
 * The sides as file numbers: `{diff: {base, new}}`, `{series: [...]}` for builds sorted by name, or `{given: [...]}`
 * for builds in this order; null if nothing is open.
 */
let sides = null;
/** The state of the visible report, `{opened, sides, types, view}`; null without a report. */
let shown = null;
/** The current question without default values. Its fields are those of the engine's `Question`. */
let question = { filters: {} };
/** The state of the report's own controls: the fragment of its address. */
let view = "";
let choices, types = [];
/** The number of requests so far. A request is outdated if this number has changed since it began. */
let turn = 0;
/** How often the user closed all files. Files that are still being added are then discarded. */
let closings = 0;
let shownAddress = "", nextAddress = "";

const emptyQuestion = () => ({ filters: {} });
const isEmpty = (q) => Object.keys(q).every((key) => key === "filters" && Object.keys(q.filters).length === 0);

// ---------------------------------------------------------------- files

/** The queue of file additions. They run one after another, because the engine numbers files by their order. */
let adding = Promise.resolve();
function enqueue(work) {
  adding = adding.then(work).catch(handleError);
}

/** Returns a new session name, which is unique among all tabs. */
const newName = () => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join("-");

/** Opens a profile, a diff or a series, depending on the number of files. */
async function openNew(incoming) {
  if (incoming.length === 0) return showError("the drop contains no files");
  const closingsAtStart = closings, next = { session: newName(), files: [] };
  try {
    await engine.call("begin", next.session);
    await add(next, incoming);
  } catch (e) {
    release(next);
    throw e;
  }
  if (closingsAtStart !== closings) return release(next);
  if (shown) unzoom();
  const all = incoming.map((_, i) => i);
  // If the modification times are known, the older file is the base: a user who made both files made the base first.
  const [base, other] = all.length === 2 && incoming[0].file.lastModified > incoming[1].file.lastModified ? [1, 0] : [0, 1];
  switchTo({
    opened: next,
    sides: all.length > 2 ? { series: all } : { diff: all.length === 1 ? { base: [], new: all } : { base: [base], new: [other] } },
  });
  show();
}

/** Switches to another state. Keeps `types` and `view` unless the new state sets them. */
function switchTo(next) {
  const previous = opened;
  ({ opened, sides, types = types, view = view } = next);
  release(previous);
}

/** Ends a session unless it is still in use. */
function release(candidate) {
  if (!candidate?.session || candidate === opened || candidate === shown?.opened) return;
  engine.call("end", candidate.session).catch(() => { /* the session or its engine is already gone */ });
}

/** Replaces the files of one side. */
async function replace(place, incoming) {
  if (incoming.length === 0) return;
  if (!sides?.diff) return openNew(incoming);
  const target = opened, first = target.files.length;
  await add(target, incoming);
  if (target !== opened) return;
  const added = incoming.map((_, i) => first + i);
  const { base, new: other } = sides.diff;
  unzoom();
  // A single profile is open as the new side. If the user adds another new side, the profile becomes the base.
  sides = { diff: place === "base" ? { base: added, new: other } : { base: base.length ? base : other, new: added } };
  show();
}

/** Adds files to a session of the engine. */
async function add({ session, files }, incoming) {
  for (const { name, file } of incoming) {
    await engine.call("add", session, name, file);
    files.push({ name, file });
  }
}

/** Adds all files again after the engine was restarted, in the order of their numbers, before any other call. */
function addAgain() {
  for (const { session, files } of new Set([opened, shown?.opened ?? NOTHING])) {
    const calls = session ? [["begin", session], ...files.map(({ name, file }) => ["add", session, name, file])] : [];
    for (const call of calls) engine.call(...call).catch(() => { /* the next question reports the error */ });
  }
}

/**
 * Removes zoom and selection from the view, because their numbers are only valid for the previous sides and question.
 * Also removes the sample type that was chosen in the report, unless `keepsType`.
 */
function unzoom(keepsType = false) {
  const kept = new URLSearchParams(view);
  for (const key of ["zoom", "fn", "cause", "course"]) kept.delete(key);
  // With other sides the type may not exist, and a type that the question selects takes precedence.
  if (!keepsType) kept.delete("type");
  view = kept.toString();
}

/** Returns the dropped files, including files in folders. The engine recognizes builds by their paths. */
async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ name: file.name, file }));
  const incoming = [];
  for (const entry of entries) await walk(entry, incoming);
  return incoming;
}

async function walk(entry, incoming) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    incoming.push({ name: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = entry.createReader();
  // A reader returns a hundred entries at a time, and an empty list at the end.
  for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length > 0;) {
    for (const inner of some.sort((a, b) => a.name.localeCompare(b.name))) await walk(inner, incoming);
  }
}

// ---------------------------------------------------------------- asking

/** Reads files that have not been read, asks the question, and shows the report. */
async function show() {
  const thisTurn = ++turn, { session, files } = opened;
  const isOutdated = () => thisTurn !== turn;
  let compared = false;
  updateControls();
  showError("");
  $("asked").hidden = true;
  if (!sides) return showStartPage();
  try {
    const report = await withProgress(thisTurn, async (progress) => {
      const needed = sides.diff ? [...sides.diff.base, ...sides.diff.new] : [];
      for (const [i, file] of needed.entries()) {
        progress(`reading ${files[file].name}`, i, needed.length);
        await engine.call("read", session, file);
        if (isOutdated()) return null;
      }
      progress(sides.diff ? "comparing" : `reading ${builds().length} builds`);
      const comparison = await engine.call("compare", session, sides);
      if (isOutdated()) return null;
      if (comparison.names) return askOrder(comparison.names);
      ({ types } = comparison);
      // A series is read together with its question. If reading fails, the previous report stays open.
      compared = Boolean(sides.diff) || !shown || shown.sides === sides;
      // Remove a sample type that was chosen for previous profiles and does not exist any more.
      if (types.length > 0 && !types.some(([name]) => name === question.sample_type)) delete question.sample_type;
      updateControls();
      return engine.call("answer", session, question, "html");
    });
    if (report && !isOutdated()) showReport(report);
  } catch (e) {
    if (!isOutdated()) handleError(e, compared);
  }
}

const builds = () => sides.series ?? sides.given;

/** Asks the user how to compare builds with two names, because such builds have no common order. */
function askOrder([a, b]) {
  const time = (i) => opened.files[i].file?.lastModified ?? 0;
  const history = [...sides.series].sort((i, j) => time(i) - time(j));
  const answers = [
    [`base: ${a.name}`, { diff: { base: a.files, new: b.files } }],
    [`base: ${b.name}`, { diff: { base: b.files, new: a.files } }],
    [`one history, ${history.some(time) ? "oldest file first" : "in the given order"}`, { given: history }],
  ];
  const button = ([textContent, chosen]) => element("button", { type: "button", textContent, onclick: () => { sides = chosen; show(); } });
  $("asked").replaceChildren(element("span", { textContent: `${a.name} and ${b.name} have no order between them:` }), ...answers.map(button));
  $("asked").hidden = false;
}

/** Runs `work` and shows the progress bar if it takes longer than a moment. */
async function withProgress(thisTurn, work) {
  const timer = setTimeout(() => { if (thisTurn === turn) $("state").hidden = false; }, 150);
  $("report").classList.add("stale");
  const progress = (activity, done, total) => {
    $("doing").textContent = activity;
    if (total > 1) Object.assign($("progress"), { max: total, value: done });
    else $("progress").removeAttribute("value");
  };
  try {
    return await work(progress);
  } finally {
    clearTimeout(timer);
    if (thisTurn === turn) {
      $("state").hidden = true;
      $("report").classList.remove("stale");
    }
  }
}

/**
 * Reports an error. If the sides could not be compared, the page returns to the visible report. If only the question
 * failed, it stays in the form, so that the user can correct it.
 */
function handleError(e, compared = false) {
  if (!compared) switchTo(shown ?? { opened: NOTHING, sides: null, types: [] });
  else if (sides !== shown?.sides) showStartPage();
  if (e instanceof Stopped && !isServed) addAgain();
  updateControls();
  if (!shown) showStartPage();
  showError(e.message);
}

/** Shows the report in its frame, at a new address with the view as its fragment. */
function showReport(report) {
  if (nextAddress) URL.revokeObjectURL(nextAddress);
  const address = nextAddress = URL.createObjectURL(new Blob([report], { type: "text/html" }));
  const frame = $("report");
  frame.onload = () => {
    if (address !== nextAddress) return;
    if (shownAddress) URL.revokeObjectURL(shownAddress);
    [shownAddress, nextAddress] = [address, ""];
    const inner = frame.contentWindow;
    document.title = inner.document.title;
    inner.addEventListener("view", ({ detail }) => { shown.view = view = detail; updateAddress(); });
    acceptDrops(inner);
    updateAddress();
  };
  const previous = shown?.opened;
  shown = { opened, sides, types, view };
  release(previous);
  $("start").hidden = true;
  frame.hidden = false;
  // Replace the location, so that the browser's Back button leaves the page instead of returning to an old report.
  frame.contentWindow.location.replace(`${address}#${view}`);
}

function showStartPage() {
  const previous = shown?.opened;
  shown = null;
  release(previous);
  $("report").hidden = true;
  $("start").hidden = false;
  document.title = "pprofdiff";
}

/** Updates the page's address and theme to match the report. */
function updateAddress() {
  document.documentElement.dataset.theme = new URLSearchParams(view).get("theme") ?? "";
  history.replaceState(null, "", link());
}

/** Returns a link to the current question and view, without profile data. */
function link() {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(question)) if (key !== "filters") parts.set(key, value);
  for (const [key, value] of Object.entries(question.filters)) parts.set(key, value);
  if (view) parts.set("view", view);
  return parts.size > 0 ? `#${parts}` : location.pathname + location.search;
}

function fromLink() {
  question = emptyQuestion();
  view = "";
  const filters = new Set(choices.filters.map((filter) => filter.name));
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (key === "view") view = value;
    else if (filters.has(key)) question.filters[key] = value;
    else {
      const field = fields.find((candidate) => candidate.key === key);
      if (field && (!field.check || value === "true")) question[key] = field.check ? true : value;
    }
  }
}

function showError(problem) {
  const text = problem?.message ?? problem ?? "";
  $("error").textContent = text;
  $("error").hidden = !text;
}

// ---------------------------------------------------------------- controls

/**
 * The fields of a question besides filters: the engine's options and the page's own field `sum`. `when` returns whether
 * a field applies to the current sides.
 */
let fields = [];

function makeFields() {
  fields = choices.options.map(({ name, about, value, kind, values }) => ({
    key: name, label: name.replaceAll("_", " "), title: about, check: kind === "flag",
    values: name === "sample_type" ? () => types.map(([name]) => name) : kind === "choice" ? () => values : undefined,
    free: value,
  }));
  fields.push({ key: "sum", label: "sum", title: "Add up the files of each side. Otherwise they are runs, and values are means", check: true,
    when: () => (sides?.diff?.base.length ?? 0) + (sides?.diff?.new.length ?? 0) > 2 });
}

function element(name, values = {}, ...children) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...children);
  return made;
}

/** Builds the form with a field for each of the engine's choices. */
function makeForm() {
  const field = (label, title, input) => {
    const text = element("span", { className: "caption", textContent: label });
    return element("label", { title, className: input.type === "checkbox" ? "check" : "" }, ...(input.type === "checkbox" ? [input, text] : [text, input]));
  };
  makeFields();
  for (const f of fields) {
    let input;
    if (f.check) input = element("input", { type: "checkbox" });
    else if (f.values) input = element("select");
    else input = element("input", { type: "text", placeholder: f.free, autocomplete: "off", spellcheck: false });
    input.name = f.key;
    $("question").append(field(f.label, f.title, input));
  }
  // Filters on frames come first, because they are used most.
  for (const { name, about, value } of choices.filters.toSorted((a, b) => a.name.startsWith("tag") - b.name.startsWith("tag"))) {
    const input = element("input", { name, type: "text", placeholder: value, autocomplete: "off", spellcheck: false });
    input.dataset.filter = "";
    $("question").append(field(name.replaceAll("_", " "), about, input));
  }
  $("question").onchange = () => {
    const previousType = question.sample_type;
    question = emptyQuestion();
    for (const input of $("question").elements) {
      const value = input.type === "checkbox" ? input.checked : input.value.trim();
      // The first item of a list is the default.
      if (!value || input.tagName === "SELECT" && input.selectedIndex === 0) continue;
      if ("filter" in input.dataset) question.filters[input.name] = value;
      else question[input.name] = value;
    }
    unzoom(question.sample_type === previousType);
    show();
  };
  $("question").onsubmit = (e) => e.preventDefault();
}

/** Updates the controls to match the open files and the question. */
function updateControls() {
  $("sides").hidden = $("clear").hidden = $("tools").hidden = !sides;
  if (!sides) return;
  const diff = sides.diff, names = (numbers) => numbers.map((i) => opened.files[i].name).join(", ");
  $("swap").hidden = $("base").hidden = !diff?.base.length;
  const [newCaption, newNames] = diff ? [diff.base.length ? "new" : "", names(diff.new)] : [`${builds().length} builds`, names(builds())];
  for (const [id, caption, text] of [["base", "base", diff ? names(diff.base) : ""], ["new", newCaption, newNames]]) {
    const [label, shown] = $(id).children;
    label.textContent = caption;
    shown.textContent = text;
    $(id).title = `${text}: choose other files`;
  }
  for (const f of fields) {
    const input = $("question").elements[f.key];
    input.closest("label").hidden = f.when ? !f.when() : false;
    if (input.tagName === "SELECT") {
      const values = f.key === "sample_type" ? ["", ...f.values()] : [...f.values()];
      // A link may contain a value that is not in the list.
      if (question[f.key] && !values.includes(question[f.key])) values.push(question[f.key]);
      input.replaceChildren(...values.map((value) => element("option", { value, textContent: value || "profile default" })));
      input.value = values.includes(question[f.key]) ? question[f.key] : values[0];
    } else if (f.check) input.checked = question[f.key] ?? false;
    else if (document.activeElement !== input) input.value = question[f.key] ?? "";
  }
  for (const { name } of choices.filters) {
    const input = $("question").elements[name];
    if (document.activeElement !== input) input.value = question.filters[name] ?? "";
    input.closest("label").classList.toggle("set", name in question.filters);
  }
  const count = Object.keys(question).length - 1 + Object.keys(question.filters).length;
  $("ask").textContent = count > 0 ? `Filter (${count})` : "Filter";
  const formats = choices[diff ? "diff" : "series"];
  const chosen = $("format").value;
  $("format").replaceChildren(...formats.map(({ name, about, ending }) =>
    element("option", { value: name, textContent: name === "html" ? "this report, as one file (.html)" : `${about} (.${ending})` })));
  $("format").value = formats.some(({ name }) => name === chosen) ? chosen : "html";
}

async function save() {
  const thisTurn = turn, name = $("format").value, { session } = opened;
  const { ending } = choices[sides.diff ? "diff" : "series"].find((format) => format.name === name);
  try {
    const content = await withProgress(thisTurn, async (progress) => {
      progress(`making ${name}`);
      // Repeats the comparison only if the engine was restarted.
      await engine.call("compare", session, sides);
      return engine.call("answer", session, question, name);
    });
    const address = URL.createObjectURL(new Blob([content]));
    element("a", { href: address, download: `pprofdiff.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  } catch (e) {
    if (thisTurn === turn) handleError(e, true);
  }
}

/** Accepts files that are dropped on a window: this window or the report's. */
function acceptDrops(target) {
  const carries = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  target.addEventListener("dragover", (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    // Offer to replace a single side only if a diff is open.
    for (const place of $("drop").querySelectorAll("[data-place=base], [data-place=new]")) place.hidden = !sides?.diff;
    $("drop").hidden = false;
  });
  target.addEventListener("drop", (e) => { if (carries(e)) handleDrop(e, ""); });
}

/** Handles files that were dropped on a part of the overlay or elsewhere. */
function handleDrop(e, place) {
  e.preventDefault();
  e.stopPropagation();
  $("drop").hidden = true;
  // The browser clears the drop data when this function returns, so read its entries now.
  const incoming = droppedFiles(e.dataTransfer);
  enqueue(async () => (place ? replace(place, await incoming) : openNew(await incoming)));
}

/** Opens the two example profiles. */
async function example() {
  const incoming = [];
  for (const name of ["main.pb.gz", "branch.pb.gz"]) {
    const file = await (await fetch(`example/${name}`)).blob();
    incoming.push({ name, file });
  }
  await openNew(incoming);
}

function addListeners() {
  acceptDrops(window);
  for (const place of $("drop").children) {
    place.ondragover = () => place.classList.add("over");
    place.ondragleave = () => place.classList.remove("over");
    place.ondrop = (e) => { place.classList.remove("over"); handleDrop(e, place.dataset.place); };
  }
  $("drop").ondragleave = (e) => { if (!$("drop").contains(e.relatedTarget)) $("drop").hidden = true; };
  let chosenPlace = "";
  for (const [id, place] of [["zone", ""], ["open", ""], ["base", "base"], ["new", "new"]]) {
    $(id).onclick = () => { chosenPlace = sides?.diff ? place : ""; $("chooser").click(); };
  }
  $("chooser").onchange = () => {
    const incoming = [...$("chooser").files].map((file) => ({ name: file.name, file }));
    $("chooser").value = "";
    // If one profile is open and the user adds one file, that file becomes the other side.
    const isSecond = incoming.length === 1 && !chosenPlace && sides?.diff && sides.diff.base.length === 0;
    const place = isSecond ? "new" : chosenPlace;
    enqueue(() => (place ? replace(place, incoming) : openNew(incoming)));
  };
  $("clear").onclick = () => {
    closings++;
    switchTo({ opened: NOTHING, sides: null, types: [], view: "" });
    question = emptyQuestion();
    show();
    updateAddress();
  };
  $("swap").onclick = () => {
    unzoom();
    sides = { diff: { base: sides.diff.new, new: sides.diff.base } };
    show();
  };
  $("ask").onclick = () => {
    $("question").hidden = !$("question").hidden;
    $("ask").setAttribute("aria-expanded", String(!$("question").hidden));
  };
  $("save").onclick = save;
  if (isServed) $("link").title = "A link to this view of the command line's files; it works on this machine while pprofdiff serve runs";
  $("link").onclick = async () => {
    if (!navigator.clipboard) { prompt("The link", location.href); return; } // not available over plain http
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
    setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
  };
  $("print").onclick = () => $("report").contentWindow.print();
  $("cancel").onclick = () => {
    turn++;
    engine.stop();
    $("state").hidden = true;
    $("report").classList.remove("stale");
    switchTo(shown ?? { opened: NOTHING, sides: null, types: [] });
    if (!isServed) addAgain();
    updateControls();
    if (!shown) showStartPage();
  };
  $("example").onclick = () => enqueue(example);
  // Give the report its full length for printing from the outer window.
  addEventListener("beforeprint", () => { $("report").style.height = `${$("report").contentDocument?.documentElement.scrollHeight ?? 0}px`; });
  addEventListener("afterprint", () => { $("report").style.height = ""; });
  addEventListener("hashchange", () => { fromLink(); show(); });
}

/**
 * The storage key for a tab's session name during a reload. It is removed afterwards, so that a duplicated tab does not
 * share the session.
 */
const SESSION_KEY = "pprofdiff session";

async function start() {
  addListeners();
  const session = (isServed && sessionStorage.getItem(SESSION_KEY)) || newName();
  if (isServed) {
    addEventListener("pageshow", () => sessionStorage.removeItem(SESSION_KEY));
    addEventListener("pagehide", () => { if (opened.session) sessionStorage.setItem(SESSION_KEY, opened.session); });
  }
  if (!isServed) navigator.serviceWorker?.register("sw.js").catch(() => { /* the page needs its server then */ });
  try {
    choices = await engine.call("choices");
    const state = await engine.call("state", session);
    makeForm();
    fromLink();
    opened = { session, files: state.files.map((name) => ({ name })) };
    sides = state.sides;
  } catch (e) {
    return showError(e.message);
  }
  $("linked").hidden = isEmpty(question) && !view;
  $("linked").querySelector("code").textContent = [...Object.entries(question).filter(([key]) => key !== "filters"), ...Object.entries(question.filters)].map(([key, value]) => `${key}=${value}`).join(" ");
  document.documentElement.dataset.ready = "";
  await show();
}

start();
