// The engine's thread, which keeps the page responsive. It answers messages one after another.
import init, { Engine, choices } from "./pprofdiff_web.js";

/**
 * If the module's memory exceeds this size, a crash is reported as a lack of memory. A 32-bit module has at most 4 GiB,
 * and a large allocation can fail while less is in use.
 */
const NEARLY_ALL = 3.5 * 2 ** 30;

let wasm;
const loaded = init({ module_or_path: new URL("pprofdiff_web_bg.wasm", import.meta.url) }).then((exports) => { wasm = exports; });

/** The sessions, by the names that the page gives them. */
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

/** A queue of messages: while an operation waits for a file, later messages must not overtake it. */
let lastMessage = Promise.resolve();
onmessage = ({ data: { id, operation, values } }) => {
  lastMessage = lastMessage.then(() => answer(id, operation, values));
};
// `answer` reports this error for each message.
loaded.catch(() => {});

async function answer(id, operation, values) {
  try {
    await loaded;
    const result = await OPERATIONS[operation](...values);
    postMessage({ id, result, memory: wasm.memory.buffer.byteLength }, result instanceof Uint8Array ? [result.buffer] : []);
  } catch (e) {
    // The engine reports its own errors as `Error`. A trap (RuntimeError), a failed allocation (RangeError), or a
    // module that was not loaded means that the engine is broken.
    const broken = !wasm || e instanceof WebAssembly.RuntimeError || e instanceof RangeError;
    const full = wasm && wasm.memory.buffer.byteLength > NEARLY_ALL;
    const problem = full ? "the profiles need more than the 4 GiB of memory that a page has; use the pprofdiff command instead" : `the engine stopped: ${e.message}`;
    postMessage({ id, error: broken ? problem : e.message, broken });
  }
}
