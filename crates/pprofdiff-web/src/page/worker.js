// The engine's thread: it answers one message after another, so that the page never waits.
import init, { Engine, choices } from "./pprofdiff_web.js";

/** What a module of 32 bits can have, less what its allocator can't give in one piece. */
const NEARLY_ALL = 3.5 * 2 ** 30;

let wasm;
const begun = init({ module_or_path: new URL("pprofdiff_web_bg.wasm", import.meta.url) }).then((exports) => { wasm = exports; });

/** Sessions by the names that the page gives them. */
const sessions = new Map();

const OPERATIONS = {
  choices: () => JSON.parse(choices()),
  begin: (id) => { sessions.set(id, new Engine()); },
  state: (id) => { OPERATIONS.begin(id); return { files: [], sides: null }; },
  end: (id) => { sessions.get(id)?.free(); sessions.delete(id); },
  add: async (id, name, file) => sessions.get(id).add(name, new Uint8Array(await file.arrayBuffer())),
  read: (id, file) => sessions.get(id).read(file),
  compare: (id, sides) => JSON.parse(sessions.get(id).compare(JSON.stringify(sides))),
  answer: (id, question, format) => sessions.get(id).answer(JSON.stringify(question), format),
};

/** Messages in turn: an operation that waits for a file must not let the next one overtake it. */
let last = begun;
onmessage = ({ data: { id, operation, values } }) => {
  last = last.then(() => answer(id, operation, values));
};
// Without an engine each message says so.
begun.catch(() => { last = Promise.resolve(); });

async function answer(id, operation, values) {
  try {
    await begun;
    const result = await OPERATIONS[operation](...values);
    postMessage({ id, result, memory: wasm.memory.buffer.byteLength }, result instanceof Uint8Array ? [result.buffer] : []);
  } catch (e) {
    // An error of the engine is a message; what else is thrown has broken it.
    const broken = !wasm || e instanceof WebAssembly.RuntimeError || e instanceof RangeError;
    const full = wasm && wasm.memory.buffer.byteLength > NEARLY_ALL;
    const why = full ? "the profiles need more than the 4 GiB of memory that a page has; the command pprofdiff reads them" : `the engine stopped: ${e.message}`;
    postMessage({ id, error: broken ? why : e.message, broken });
  }
}
