// The timelines of a series: the cost over the builds of each frame that changed. Selecting one shows the graphs and
// tables before and after its change.

const courses = data.courses && {
  ...data.courses,
  rows: data.courses.rows.map((row) => ({
    ...row, value: row.value.map(BigInt), total: BigInt(row.total), values: readValues(row.values, data.courses.keys.length),
  })),
};
// A sample type without trees and table, which formats the values of timelines.
const timelineType = courses && new Type({ units: courses.units, total: [courses.total, "0"] });

function drawn(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * Returns functions for the positions of builds (`x`) and values (`y`) in a picture, and the range of values, which
 * includes zero.
 */
function placed(values, width, height, margin) {
  const numbers = Array.from(values, Number);
  // Use reduce, because there may be more builds than a call can have arguments.
  const low = numbers.reduce((low, v) => Math.min(low, v), 0), high = numbers.reduce((high, v) => Math.max(high, v), 0);
  const x = (i) => margin + (width - 2 * margin) * (numbers.length < 2 ? 0.5 : i / (numbers.length - 1));
  const y = (v) => high === low ? height - margin : margin + (height - 2 * margin) * (high - v) / (high - low);
  return { numbers, low, high, x, y };
}

/** Draws a frame's values, the builds that may have introduced its change, and the levels before and after. */
function picture(row, width, height, margin) {
  const { numbers, low, high, x, y } = placed(row.values, width, height, margin), last = numbers.length - 1;
  const svg = drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  const tone = sign(row.value[1] - row.value[0]), half = last > 0 ? (x(1) - x(0)) / 2 : 0;
  if (row.kind && row.kind !== "drift") {
    const [first, end] = row.between.map(x);
    svg.append(drawn("rect", { class: "between", x: first - half, y: 0, width: Math.max(1, end - first + 2 * half), height }));
  }
  // With four or more builds per pixel, draw only the lowest and the highest value of consecutive builds.
  const stride = Math.max(1, Math.floor(numbers.length / (2 * width))), points = [];
  for (let i = 0; i < numbers.length; i += stride) {
    const part = numbers.slice(i, i + stride);
    for (const v of stride === 1 ? part : [Math.min(...part), Math.max(...part)]) points.push(`${x(i).toFixed(1)},${y(v).toFixed(1)}`);
  }
  svg.append(drawn("line", { class: "zero", x1: margin, x2: width - margin, y1: y(0), y2: y(0) }));
  svg.append(drawn("polyline", { class: "course", points: points.join(" ") }));
  const [before, after] = row.value.map(Number);
  if (row.kind === "drift") {
    // A drift starts at the build before the first build with a higher cost.
    const corners = [[0, before], [Math.max(0, row.from - 1), before], [last, after]];
    svg.append(drawn("polyline", { class: `level ${tone}`, points: corners.map(([i, v]) => `${x(i)},${y(v)}`).join(" ") }));
  }
  else if (row.kind) {
    // A level ends at the frame's next change.
    const ends = courses.rows.filter((other) => other.frame === row.frame && other.kind !== "drift")
      .flatMap((other) => [other.to, other.until ?? other.to]);
    const begin = Math.max(0, ...ends.filter((end) => end < row.to)), end = Math.min(last + 1, ...ends.filter((end) => end > row.to));
    for (const [from, to, v] of [[begin, row.to - 1, before], [row.to, end - 1, after]]) {
      if (v >= low && v <= high) svg.append(drawn("line", { class: `level ${tone}`, x1: x(from) - half, x2: x(to) + half, y1: y(v), y2: y(v) }));
    }
  } else if (row.from !== row.to) svg.append(drawn("circle", { class: `dot ${tone}`, cx: x(row.to), cy: y(numbers[row.to]), r: 2.5 }));
  return svg;
}

const buildName = (i) => `${courses.keys[i]} #${courses.numbers[i]}`;

/** Describes when a frame changed. */
function whenOf(row) {
  if (row.kind === "drift" || !row.kind) return row.from === row.to ? "–" : `${buildName(row.from)} → ${buildName(row.to)}`;
  return buildName(row.to);
}

/** Describes the kind of a change, and when a temporary change disappeared. */
function kindOf(row) {
  return row.until === null ? row.kind : `${row.kind}, gone at ${buildName(row.until)}`;
}

/** Shows the selected timeline in large, with the value of the build under the pointer. */
function showCourse() {
  const row = courses.rows[view.course], place = $("course");
  place.hidden = !row;
  if (!row) return;
  const width = Math.max(280, place.clientWidth), height = 150, margin = 8, svg = picture(row, width, height, margin);
  const { x, y, high, low, numbers } = placed(row.values, width, height, margin);
  const scale = timelineType.scaleOf(row.values), show = (v) => timelineType.show(v, scale);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${data.names[row.frame]}: ${show(row.value[0])} before, ${show(row.value[1])} after ${whenOf(row)}`);
  if (high > 0) svg.append(drawn("text", { x: margin, y: y(high) + 11 }, show(BigInt(high))));
  if (low < 0) svg.append(drawn("text", { x: margin, y: y(low) - 3 }, show(BigInt(low))));
  const line = drawn("line", { class: "here", y1: 0, y2: height, visibility: "hidden" });
  svg.append(line);
  const [delta, percent] = [row.value[1] - row.value[0], growth(...row.value)];
  const interval = row.interval ? ` (${timelineType.delta(BigInt(Math.round(row.interval[0])), scale)} to ${timelineType.delta(BigInt(Math.round(row.interval[1])), scale)})` : "";
  const range = row.kind && row.kind !== "drift" && row.between[0] !== row.between[1]
    ? ` (${buildName(row.between[0])} to ${buildName(row.between[1])})` : "";
  const description = element("div"), here = element("div", "", "note");
  description.append(element("span", data.names[row.frame], "name"), element("span", ` ${show(row.value[0])} → ${show(row.value[1])}, `),
    element("b", timelineType.delta(delta, scale), sign(delta)), element("span", `${interval}, ${percent}; ${row.kind === "drift" ? "drift" : row.kind ? "since" : "from"} ${whenOf(row)}${range}${row.until === null ? "" : `; ${kindOf(row)}`}`));
  const ends = element("div", undefined, "ends");
  for (const i of new Set([0, numbers.length - 1])) ends.append(element("span", buildName(i)));
  if (row.part === null) here.textContent = "This page has no graphs of this change, because it is not among the largest.";
  const quiet = here.textContent;
  svg.onpointermove = (e) => {
    const spot = svg.getBoundingClientRect(), pointerX = (e.clientX - spot.left) / spot.width * width;
    const i = Math.max(0, Math.min(numbers.length - 1, Math.round((pointerX - margin) / (width - 2 * margin) * (numbers.length - 1))));
    for (const end of ["x1", "x2"]) line.setAttribute(end, x(i));
    line.setAttribute("visibility", "visible");
    here.textContent = `${buildName(i)}: ${show(row.values[i])}`;
  };
  svg.onpointerleave = () => { line.setAttribute("visibility", "hidden"); here.textContent = quiet; };
  description.setAttribute("aria-live", "polite");
  place.replaceChildren(description, svg, ends, here);
}

/** Creates the rows. Called once. */
function makeCourses() {
  const { rows, lasting, cost } = courses, table = $("courses").querySelector("table");
  $("courses").hidden = false;
  $("courses-title").textContent = lasting ? "Lasting changes" : "Largest changes from one build to another";
  $("courses").querySelector(".note").textContent = `${courses.type}, ${cost}; ${courses.extent}`;
  const head = element("tr"), numbers = (valuesOf) => timelineType.scaleOf(rows.flatMap(valuesOf));
  const sides = numbers((row) => row.value), deltas = numbers((row) => [row.value[1] - row.value[0]]);
  for (const [text, className] of [["frame", "t"], [`${cost} over builds`, "w"], ["before"], ["after"], ["change"], ["growth"], ["of total"],
    [lasting ? "since" : "from → to", "w"], ...lasting ? [["kind", "w"]] : []]) head.append(element("th", text, className));
  table.tHead.replaceChildren(head);
  if (courses.of === 0) {
    const nothing = element("td", lasting ? "No frame's cost changed for three builds or more beyond the noise between builds." : "Nothing changed.", "t");
    nothing.colSpan = head.cells.length;
    table.tBodies[0].append(element("tr"));
    table.tBodies[0].rows[0].append(nothing);
  }
  for (const [i, row] of rows.entries()) {
    const [base, fresh] = row.value, delta = fresh - base, tr = element("tr"), name = element("td", undefined, "t"), line = element("td", undefined, "w");
    const button = element("button", data.names[row.frame]);
    button.type = "button";
    tr.dataset.course = i;
    name.append(button);
    line.append(picture(row, narrow.matches ? 90 : 180, 24, 2));
    line.firstChild.setAttribute("aria-hidden", "true");
    const ofTotal = row.total === 0n ? "–" : timelineType.share(delta, row.total);
    tr.append(name, line, element("td", timelineType.show(base, sides)), element("td", timelineType.show(fresh, sides)),
      element("td", timelineType.delta(delta, deltas), sign(delta)), element("td", growth(base, fresh), sign(delta)), element("td", ofTotal, sign(delta)),
      element("td", whenOf(row), "w"), ...lasting ? [element("td", kindOf(row), "w")] : []);
    table.tBodies[0].append(tr);
  }
  table.tBodies[0].onclick = (e) => {
    const tr = e.target.closest("tr[data-course]");
    if (tr) chooseCourse(Number(tr.dataset.course));
  };
}

/** Selects a timeline, and its frame in the graphs of its change. */
function chooseCourse(index) {
  const row = courses.rows[index];
  view.course = index;
  if (row.part !== null && row.part !== view.type) changeTree(() => { view.type = row.part; view.cause = -1; }, false);
  if (row.part !== null) find(row.frame); else show();
}

function showCourses() {
  for (const tr of $("courses").querySelectorAll("tr[data-course]")) tr.setAttribute("aria-selected", String(Number(tr.dataset.course) === view.course));
  showCourse();
}
