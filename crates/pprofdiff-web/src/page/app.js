// The page around the report: files come in, questions go to the engine, and the report that it makes is shown in a frame.

import { Stopped, engine, isServed } from "./engine.js";

const $ = (id) => document.getElementById(id);

// ---------------------------------------------------------------- state

const NOTHING = Object.freeze({ session: null, files: [] });
/**
 * What is open: the name of the engine's session, and files by its numbers, `{name, file}`; those of the command have no
 * `file`. What is dropped gets a session of its own, so that the one before it is there until the new one is shown.
 */
let opened = NOTHING;
/** `{diff: {base, new}}`, `{series: [...]}` or, in this order, `{given: [...]}`, as numbers of files; null if nothing is open. */
let sides = null;
/** What the report in sight is of, `{opened, sides, types, view}`; null without one. */
let shown = null;
/** What is asked, without what is as usual; the fields of the engine's Question. */
let question = { filters: {} };
/** The report's own view: the fragment of its address. */
let view = "";
let choices, types = [];
/** Counts what was begun, so that an answer that nobody waits for any more is dropped. */
let turn = 0;
/** Counts how often all was closed: files that were being taken are then not shown. */
let closings = 0;
let shownAddress = "", nextAddress = "";

const fresh = () => ({ filters: {} });
const isEmpty = (q) => Object.keys(q).every((key) => key === "filters" && Object.keys(q.filters).length === 0);

// ---------------------------------------------------------------- files

/** What adds files, one after the other: their numbers are those of the engine. */
let adding = Promise.resolve();
function inTurn(work) {
  adding = adding.then(work).catch(failed);
}

/** A session's name: nobody else's, of this tab or of another. */
const newName = () => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join("-");

/** Opens a series, two sides or one profile, by how many files there are. */
async function openNew(found) {
  if (found.length === 0) return say("there is no file in what was dropped");
  const own = closings, next = { session: newName(), files: [] };
  try {
    await engine.call("begin", next.session);
    await add(next, found);
  } catch (e) {
    release(next);
    throw e;
  }
  if (own !== closings) return release(next);
  if (shown) unzoom();
  const all = found.map((_, i) => i);
  // The older is the base, where that is known: whoever made both made it first.
  const [base, other] = all.length === 2 && found[0].file.lastModified > found[1].file.lastModified ? [1, 0] : [0, 1];
  turnTo({
    opened: next,
    sides: all.length > 2 ? { series: all } : { diff: all.length === 1 ? { base: [], new: all } : { base: [base], new: [other] } },
  });
  show();
}

/** Looks at something else; without what it says of `types` and `view` these stay. */
function turnTo(what) {
  const before = opened;
  ({ opened, sides, types = types, view = view } = what);
  release(before);
}

/** Ends a session that nobody looks at any more. */
function release(one) {
  if (!one?.session || one === opened || one === shown?.opened) return;
  engine.call("end", one.session).catch(() => { /* it is gone, or its engine */ });
}

/** Puts files on a side in place of those that are there. */
async function replace(place, found) {
  if (found.length === 0) return;
  if (!sides?.diff) return openNew(found);
  const own = opened, first = own.files.length;
  await add(own, found);
  if (own !== opened) return;
  const added = found.map((_, i) => first + i);
  const { base, new: other } = sides.diff;
  unzoom();
  // A profile by itself was looked at as the new side: what comes as new then is compared with it.
  sides = { diff: place === "base" ? { base: added, new: other } : { base: base.length ? base : other, new: added } };
  show();
}

/** Gives files to a session of the engine. */
async function add({ session, files }, found) {
  for (const { name, file } of found) {
    await engine.call("add", session, name, file);
    files.push({ name, file });
  }
}

/** The engine was started anew: it gets its files again, under their numbers, before anything else. */
function addAgain() {
  for (const { session, files } of new Set([opened, shown?.opened ?? NOTHING])) {
    const calls = session ? [["begin", session], ...files.map(({ name, file }) => ["add", session, name, file])] : [];
    for (const call of calls) engine.call(...call).catch(() => { /* the next question says it */ });
  }
}

/** What was zoomed into and chosen has other numbers, of other sides or to another question. */
function unzoom(keepsType = false) {
  const kept = new URLSearchParams(view);
  for (const key of ["zoom", "fn", "cause", "course"]) kept.delete(key);
  // What is chosen in the report stays, unless another one is asked for.
  if (!keepsType) kept.delete("type");
  view = kept.toString();
}

/** The files of what was dropped, with those of folders; the engine tells builds by their paths. */
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ name: file.name, file }));
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ name: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = entry.createReader();
  // A reader gives a hundred at a time, and none at the end.
  for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length > 0;) {
    for (const inner of some.sort((a, b) => a.name.localeCompare(b.name))) await walk(inner, found);
  }
}

// ---------------------------------------------------------------- asking

/** Reads what was not read, asks, and shows the report. */
async function show() {
  const own = ++turn, { session, files } = opened;
  const isOld = () => own !== turn;
  let compared = false;
  controls();
  say("");
  $("asked").hidden = true;
  if (!sides) return closed();
  try {
    const report = await working(own, async (progress) => {
      const wanted = sides.diff ? [...sides.diff.base, ...sides.diff.new] : [];
      for (const [i, file] of wanted.entries()) {
        progress(`reading ${files[file].name}`, i, wanted.length);
        await engine.call("read", session, file);
        if (isOld()) return null;
      }
      progress(sides.diff ? "comparing" : `reading ${builds().length} builds`);
      const known = await engine.call("compare", session, sides);
      if (isOld()) return null;
      if (known.names) return askOrder(known.names);
      ({ types } = known);
      // A series is read with the question: one that can't be does not take the place of what is in sight.
      compared = Boolean(sides.diff) || !shown || shown.sides === sides;
      // That of profiles before these.
      if (types.length > 0 && !types.some(([name]) => name === question.sample_type)) delete question.sample_type;
      controls();
      return engine.call("answer", session, question, "html");
    });
    if (report && !isOld()) paint(report);
  } catch (e) {
    if (!isOld()) failed(e, compared);
  }
}

const builds = () => sides.series ?? sides.given;

/** Builds of two names have no order between them: what they are is the reader's to say. */
function askOrder([a, b]) {
  const time = (i) => opened.files[i].file?.lastModified ?? 0;
  const history = [...sides.series].sort((i, j) => time(i) - time(j));
  const choices = [
    [`base: ${a.name}`, { diff: { base: a.files, new: b.files } }],
    [`base: ${b.name}`, { diff: { base: b.files, new: a.files } }],
    [`one history, ${history.some(time) ? "oldest file first" : "as they were named"}`, { given: history }],
  ];
  const button = ([textContent, chosen]) => element("button", { type: "button", textContent, onclick: () => { sides = chosen; show(); } });
  $("asked").replaceChildren(element("span", { textContent: `${a.name} and ${b.name} have no order between them:` }), ...choices.map(button));
  $("asked").hidden = false;
}

/** Shows the engine at work, if that takes longer than a moment. */
async function working(own, work) {
  const timer = setTimeout(() => { if (own === turn) $("state").hidden = false; }, 150);
  $("report").classList.add("stale");
  const progress = (what, done, all) => {
    $("doing").textContent = what;
    if (all > 1) Object.assign($("progress"), { max: all, value: done });
    else $("progress").removeAttribute("value");
  };
  try {
    return await work(progress);
  } finally {
    clearTimeout(timer);
    if (own === turn) {
      $("state").hidden = true;
      $("report").classList.remove("stale");
    }
  }
}

/**
 * Says what went wrong. What can't be compared is given up for what is in sight; a question that has no answer stays in its
 * form, to be asked otherwise.
 */
function failed(e, compared = false) {
  if (!compared) turnTo(shown ?? { opened: NOTHING, sides: null, types: [] });
  else if (sides !== shown?.sides) closed();
  if (e instanceof Stopped && !isServed) addAgain();
  controls();
  if (!shown) closed();
  say(e.message);
}

/** The report in its frame: an address of its own, with the view that it is to open with. */
function paint(report) {
  if (nextAddress) URL.revokeObjectURL(nextAddress);
  const address = nextAddress = URL.createObjectURL(new Blob([report], { type: "text/html" }));
  const frame = $("report");
  frame.onload = () => {
    if (address !== nextAddress) return;
    if (shownAddress) URL.revokeObjectURL(shownAddress);
    [shownAddress, nextAddress] = [address, ""];
    const inner = frame.contentWindow;
    document.title = inner.document.title;
    inner.addEventListener("view", ({ detail }) => { shown.view = view = detail; follow(); });
    take(inner);
    follow();
  };
  const before = shown?.opened;
  shown = { opened, sides, types, view };
  release(before);
  $("start").hidden = true;
  frame.hidden = false;
  // Without a trace in the history: going back leaves the page, not a report.
  frame.contentWindow.location.replace(`${address}#${view}`);
}

function closed() {
  const before = shown?.opened;
  shown = null;
  release(before);
  $("report").hidden = true;
  $("start").hidden = false;
  document.title = "pprofdiff";
}

/** The address and the theme are the report's. */
function follow() {
  document.documentElement.dataset.theme = new URLSearchParams(view).get("theme") ?? "";
  history.replaceState(null, "", link());
}

/** What is asked and looked at, without any data. */
function link() {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(question)) if (key !== "filters") parts.set(key, value);
  for (const [key, value] of Object.entries(question.filters)) parts.set(key, value);
  if (view) parts.set("view", view);
  return parts.size > 0 ? `#${parts}` : location.pathname + location.search;
}

function fromLink() {
  question = fresh();
  view = "";
  const filters = new Set(choices.filters.map((filter) => filter.name));
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (key === "view") view = value;
    else if (filters.has(key)) question.filters[key] = value;
    else {
      const field = fields.find((known) => known.key === key);
      if (field && (!field.check || value === "true")) question[key] = field.check ? true : value;
    }
  }
}

function say(problem) {
  const text = problem?.message ?? problem ?? "";
  $("error").textContent = text;
  $("error").hidden = !text;
}

// ---------------------------------------------------------------- controls

/** The fields of a question besides filters: those of the engine's table, and one of the page's own. `when` says for which
 * sides one has a meaning. */
let fields = [];

function makeFields() {
  fields = choices.options.map(({ name, about, value, kind, values }) => ({
    key: name, label: name.replace("_", " "), title: about, check: kind === "flag",
    values: name === "sample_type" ? () => types.map(([name]) => name) : kind === "choice" ? () => values : undefined,
    free: value,
  }));
  fields.push({ key: "sum", label: "sum", title: "Add up the files of a side; otherwise they are runs, and values are means", check: true,
    when: () => (sides?.diff?.base.length ?? 0) + (sides?.diff?.new.length ?? 0) > 2 });
}

function element(name, values = {}, ...children) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...children);
  return made;
}

/** Makes the form of a question: a field for each of the engine's choices. */
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
  // Those of frames first: they are asked for most.
  for (const { name, about, value } of choices.filters.toSorted((a, b) => a.name.startsWith("tag") - b.name.startsWith("tag"))) {
    const input = element("input", { name, type: "text", placeholder: value, autocomplete: "off", spellcheck: false });
    input.dataset.filter = "";
    $("question").append(field(name, about, input));
  }
  $("question").onchange = () => {
    const before = question.sample_type;
    question = fresh();
    for (const input of $("question").elements) {
      const value = input.type === "checkbox" ? input.checked : input.value.trim();
      // The first of a list is what is usual.
      if (!value || input.tagName === "SELECT" && input.selectedIndex === 0) continue;
      if ("filter" in input.dataset) question.filters[input.name] = value;
      else question[input.name] = value;
    }
    unzoom(question.sample_type === before);
    show();
  };
  $("question").onsubmit = (e) => e.preventDefault();
}

/** Brings the controls to what is open and asked. */
function controls() {
  $("sides").hidden = $("clear").hidden = $("tools").hidden = !sides;
  if (!sides) return;
  const diff = sides.diff, names = (numbers) => numbers.map((i) => opened.files[i].name).join(", ");
  $("swap").hidden = $("base").hidden = !diff?.base.length;
  const [only, told] = diff ? [diff.base.length ? "new" : "", names(diff.new)] : [`${builds().length} builds`, names(builds())];
  for (const [id, caption, text] of [["base", "base", diff ? names(diff.base) : ""], ["new", only, told]]) {
    const [label, shown] = $(id).children;
    label.textContent = caption;
    shown.textContent = text;
    $(id).title = `${text}: choose others`;
  }
  for (const f of fields) {
    const input = $("question").elements[f.key];
    input.closest("label").hidden = f.when ? !f.when() : false;
    if (input.tagName === "SELECT") {
      const values = f.key === "sample_type" ? ["", ...f.values()] : [...f.values()];
      // Out of a link, perhaps.
      if (question[f.key] && !values.includes(question[f.key])) values.push(question[f.key]);
      input.replaceChildren(...values.map((value) => element("option", { value, textContent: value || "the profile's" })));
      input.value = values.includes(question[f.key]) ? question[f.key] : values[0];
    } else if (f.check) input.checked = question[f.key] ?? false;
    else if (document.activeElement !== input) input.value = question[f.key] ?? "";
  }
  for (const { name } of choices.filters) {
    const input = $("question").elements[name];
    if (document.activeElement !== input) input.value = question.filters[name] ?? "";
    input.closest("label").classList.toggle("set", name in question.filters);
  }
  const asked = Object.keys(question).length - 1 + Object.keys(question.filters).length;
  $("ask").textContent = asked > 0 ? `Filter (${asked})` : "Filter";
  const formats = choices[diff ? "diff" : "series"];
  const chosen = $("format").value;
  $("format").replaceChildren(...formats.map(({ name, about, ending }) =>
    element("option", { value: name, textContent: name === "html" ? "this report, as one file (.html)" : `${about} (.${ending})` })));
  $("format").value = formats.some(({ name }) => name === chosen) ? chosen : "html";
}

async function save() {
  const own = turn, name = $("format").value, { session } = opened;
  const { ending } = choices[sides.diff ? "diff" : "series"].find((format) => format.name === name);
  try {
    const content = await working(own, async (progress) => {
      progress(`making ${name}`);
      // Nothing to do, unless the engine was started anew.
      await engine.call("compare", session, sides);
      return engine.call("answer", session, question, name);
    });
    const address = URL.createObjectURL(new Blob([content]));
    element("a", { href: address, download: `pprofdiff.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  } catch (e) {
    if (own === turn) failed(e, true);
  }
}

/** Takes what is dropped on a window: this one, or the report's. */
function take(target) {
  const carries = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  target.addEventListener("dragover", (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    // A side of its own is one of two that are open.
    for (const place of $("drop").querySelectorAll("[data-place=base], [data-place=new]")) place.hidden = !sides?.diff;
    $("drop").hidden = false;
  });
  target.addEventListener("drop", (e) => { if (carries(e)) land(e, ""); });
}

/** What was dropped on a place of the cover, or elsewhere. */
function land(e, place) {
  e.preventDefault();
  e.stopPropagation();
  $("drop").hidden = true;
  // What is carried is gone when this function returns: its entries are taken now.
  const found = dropped(e.dataTransfer);
  inTurn(async () => (place ? replace(place, await found) : openNew(await found)));
}

/** The two profiles that the page brings along. */
async function example() {
  const found = [];
  for (const name of ["main.pb.gz", "branch.pb.gz"]) {
    const file = await (await fetch(`example/${name}`)).blob();
    found.push({ name, file });
  }
  await openNew(found);
}

function wire() {
  take(window);
  for (const place of $("drop").children) {
    place.ondragover = () => place.classList.add("over");
    place.ondragleave = () => place.classList.remove("over");
    place.ondrop = (e) => { place.classList.remove("over"); land(e, place.dataset.place); };
  }
  $("drop").ondragleave = (e) => { if (!$("drop").contains(e.relatedTarget)) $("drop").hidden = true; };
  let chosenPlace = "";
  for (const [id, place] of [["zone", ""], ["open", ""], ["base", "base"], ["new", "new"]]) {
    $(id).onclick = () => { chosenPlace = sides?.diff ? place : ""; $("chooser").click(); };
  }
  $("chooser").onchange = () => {
    const found = [...$("chooser").files].map((file) => ({ name: file.name, file }));
    $("chooser").value = "";
    // One more file beside one is the other side.
    const isSecond = found.length === 1 && !chosenPlace && sides?.diff && sides.diff.base.length === 0;
    const place = isSecond ? "new" : chosenPlace;
    inTurn(() => (place ? replace(place, found) : openNew(found)));
  };
  $("clear").onclick = () => {
    closings++;
    turnTo({ opened: NOTHING, sides: null, types: [], view: "" });
    question = fresh();
    show();
    follow();
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
  if (isServed) $("link").title = "A link to this view of the files of the command line, for this machine while pprofdiff serve runs";
  $("link").onclick = async () => {
    if (!navigator.clipboard) { prompt("The link", location.href); return; } // not over plain http
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
    turnTo(shown ?? { opened: NOTHING, sides: null, types: [] });
    if (!isServed) addAgain();
    controls();
    if (!shown) closed();
  };
  $("example").onclick = () => inTurn(example);
  // Printed from the window around it, the report has its whole length.
  addEventListener("beforeprint", () => { $("report").style.height = `${$("report").contentDocument?.documentElement.scrollHeight ?? 0}px`; });
  addEventListener("afterprint", () => { $("report").style.height = ""; });
  addEventListener("hashchange", () => { fromLink(); show(); });
}

/** What a tab has its session's name under while it is loaded anew; not longer, so that a copy of the tab has none. */
const KEPT = "pprofdiff session";

async function begin() {
  wire();
  const session = (isServed && sessionStorage.getItem(KEPT)) || newName();
  if (isServed) {
    addEventListener("pageshow", () => sessionStorage.removeItem(KEPT));
    addEventListener("pagehide", () => { if (opened.session) sessionStorage.setItem(KEPT, opened.session); });
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
    return say(e.message);
  }
  $("linked").hidden = isEmpty(question) && !view;
  $("linked").querySelector("code").textContent = [...Object.entries(question).filter(([key]) => key !== "filters"), ...Object.entries(question.filters)].map(([key, value]) => `${key}=${value}`).join(" ");
  document.documentElement.dataset.ready = "";
  await show();
}

begin();
