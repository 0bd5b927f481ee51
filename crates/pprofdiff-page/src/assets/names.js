// Shortens names to fit. Like pprof, it omits the least informative part first.

/** Removes the path. The end of a name is more informative than its beginning (`headers.Classify`). */
const shortName = (name) => name.replace(/^[^\s<([]*\//, "");

/** Removes type parameters and arguments: `slices.Sort[go.shape.int]`, `std::sort<int*>(int*, int*)`. */
function withoutBrackets(name) {
  let depth = 0, out = "";
  for (const c of name) {
    // A leading bracket is part of the name, as in `<T as Trait>::f` or `(*Reader).Next`.
    if ("<[(".includes(c) && (depth > 0 || (out && !/[.:]$/.test(out)))) depth++;
    else if (depth > 0) depth -= +">])".includes(c);
    else out += c;
  }
  return out || name;
}

/**
 * Removes packages and namespaces: `Classify`, `(*Reader).Next`, `push_back`. A closure keeps its owner: `run.func1`.
 */
const NAME = String.raw`[^.:()<>[\]{}]+`, CLOSURE = String.raw`func\d+|\{\{?[^{}]*\}?\}`;
const LAST = new RegExp(String.raw`(?:^|[.:])((?:\(\*?[^()]*\)[.:]+)?(?:${NAME}(?:\{\{[^{}]*\}\})?|(?:${NAME}[.:]+)?(?:${CLOSURE})))$`);
const lastName = (name) => LAST.exec(name)?.[1] ?? name;

/** Returns a name in all its lengths, the full name first. */
const shorterNames = new Map();
function lengthsOf(name) {
  let lengths = shorterNames.get(name);
  if (!lengths) {
    const short = shortName(name), bare = short.length < 1000 ? withoutBrackets(short) : short;
    shorterNames.set(name, lengths = [...new Set([name, short, bare, bare.length < 1000 ? lastName(bare) : bare])]);
  }
  return lengths;
}

