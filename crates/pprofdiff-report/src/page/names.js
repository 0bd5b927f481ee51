// Names that fit: what is left out first is what tells least, as pprof does it.

/** A name without its path: where the whole does not fit, its end says more than its beginning (`headers.Classify`). */
const shortName = (name) => name.replace(/^[^\s<([]*\//, "");

/** What stands in brackets, and arguments: `slices.Sort[go.shape.int]`, `std::sort<int*>(int*, int*)`. */
function withoutBrackets(name) {
  let depth = 0, out = "";
  for (const c of name) {
    // A name that begins with one, as `<T as Trait>::f` or `(*Reader).Next`, says something in it.
    if ("<[(".includes(c) && (depth > 0 || (out && !/[.:]$/.test(out)))) depth++;
    else if (depth > 0) depth -= +">])".includes(c);
    else out += c;
  }
  return out || name;
}

/** Without its packages or namespaces: `Classify`, `(*Reader).Next`, `push_back`; a closure with whose it is: `run.func1`. */
const NAME = String.raw`[^.:()<>[\]{}]+`, CLOSURE = String.raw`func\d+|\{\{?[^{}]*\}?\}`;
const LAST = new RegExp(String.raw`(?:^|[.:])((?:\(\*?[^()]*\)[.:]+)?(?:${NAME}(?:\{\{[^{}]*\}\})?|(?:${NAME}[.:]+)?(?:${CLOSURE})))$`);
const lastName = (name) => LAST.exec(name)?.[1] ?? name;

/** A name in all its lengths, the whole first. */
const shorterNames = new Map();
function lengthsOf(name) {
  let lengths = shorterNames.get(name);
  if (!lengths) {
    const short = shortName(name), bare = short.length < 1000 ? withoutBrackets(short) : short;
    shorterNames.set(name, lengths = [...new Set([name, short, bare, bare.length < 1000 ? lastName(bare) : bare])]);
  }
  return lengths;
}

