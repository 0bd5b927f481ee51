// Tries a Pyodide wheel under Node: `release/pyodide.mjs NODE_MODULES WHEEL`. NODE_MODULES is the folder in which
// `npm install pyodide` put the package.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, wheel] = process.argv.slice(2).map((path) => resolve(path));
const bytes = (path) => new Uint8Array(readFileSync(path));
const { loadPyodide } = await import(pathToFileURL(`${modules}/pyodide/pyodide.mjs`));
const { info } = JSON.parse(readFileSync(`${modules}/pyodide/pyodide-lock.json`, "utf8"));
if (!wheel.endsWith(`-pyemscripten_${info.abi_version}_wasm32.whl`)) {
    throw new Error(`this Pyodide installs wheels for pyemscripten_${info.abi_version}_wasm32`); // PEP 783
}

const python = await loadPyodide();
python.unpackArchive(bytes(wheel), "whl");
const corpus = new URL("../tests/corpus/", import.meta.url);
python.FS.writeFile("base.pb.gz", bytes(new URL("story-cpu.base.pb.gz", corpus)));
python.FS.writeFile("new.pb.gz", bytes(new URL("story-cpu.new.pb.gz", corpus)));
python.runPython(`
import pickle
import pprofdiff

diff = pprofdiff.diff("base.pb.gz", "new.pb.gz")
print(diff.top(5))
print(diff.explain())
assert "now calls logmill/names.canonical" in str(diff.explain())
assert "<svg" in diff._repr_html_()
assert pickle.loads(pickle.dumps(diff)).top().to_dicts() == diff.top().to_dicts()
# Pyodide has no threads, so the calling thread loads the pairs.
assert [result.error for result in pprofdiff.batch([("base.pb.gz", "new.pb.gz")] * 5)] == [None] * 5
for source, error in (("none", OSError), (b"x", pprofdiff.PprofError)):
    try:
        pprofdiff.load(source)
    except error:
        pass
    else:
        raise AssertionError(source)
`);
console.log(`works in Pyodide ${python.version}`);
