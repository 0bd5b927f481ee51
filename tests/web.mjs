// The page's engine without a browser. Reads requests from standard input, one JSON object per line ({files, sides,
// question, format}), and answers each with a line ({answer} in base64, or {error}). test_web_engine.py checks the
// answers. Argument: the folder that crates/pprofdiff-web/make created.

import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

globalThis.crypto ??= webcrypto; // Browsers have it, and Node from version 20 on.
const folder = pathToFileURL(`${process.argv[2]}/`);
const { default: init, Engine, choices } = await import(new URL("pprofdiff_web.js", folder));
await init({ module_or_path: readFileSync(new URL("pprofdiff_web_bg.wasm", folder)) });

for await (const line of createInterface({ input: process.stdin })) {
  const { files, sides, question, format } = JSON.parse(line);
  let told;
  // A trap is not an error of the engine, and ends this program.
  const engine = new Engine();
  try {
    for (const [name, content] of files) engine.add(name, Buffer.from(content, "base64"));
    engine.compare(JSON.stringify(sides));
    told = { answer: Buffer.from(engine.answer(JSON.stringify(question), format)).toString("base64") };
  } catch (e) {
    if (e instanceof WebAssembly.RuntimeError) throw e;
    told = { error: e.message };
  }
  engine.free();
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
