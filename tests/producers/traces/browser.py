#!/usr/bin/env python3
"""Records a trace of Chromium with CPU profiles of a page and of its worker, as DevTools' Performance panel does. Usage:
browser.py CHROMIUM ROUNDS OUT, with the Python package playwright. The page is not read from a network."""

import json
import sys

from playwright.sync_api import sync_playwright

PAGE = '<!doctype html><title>press</title><script src="press.js"></script>'

SCRIPT = """
function setLine(length, seed) {
  let line = '';
  for (let i = 0; i < length; i++) {
    seed = (Math.imul(seed ^ i, 16777619) >>> 0) + i;
    line += String.fromCharCode(97 + (seed % 26));
  }
  return line;
}

const sortLine = line => line.split('').sort().join('');

function printSheets(rounds) {
  for (let round = 0; round < rounds; round++) {
    sortLine(setLine(3000, round));
    (() => JSON.parse(JSON.stringify([...'sheet'])))();
  }
}

const rounds = ROUNDS;
const worker = new Worker('worker.js', { name: 'helper' });
worker.onmessage = () => {
  performance.mark('second job');
  printSheets(rounds);
  document.title = 'done';
};
printSheets(2 * rounds);
worker.postMessage(rounds);
"""

WORKER = """
function count(letters) {
  const counts = {};
  for (const letter of letters) {
    counts[letter] = (counts[letter] ?? 0) + 1;
  }
  return counts;
}

onmessage = ({ data }) => {
  for (let round = 0; round < 40 * data; round++) {
    count('a printing press for words'.repeat(9));
  }
  postMessage(1);
};
"""

CATEGORIES = ["-*", "disabled-by-default-v8.cpu_profiler", "blink.user_timing"]


def main(chromium, rounds, out):
    files = {"/": PAGE, "/press.js": SCRIPT.replace("ROUNDS", rounds), "/worker.js": WORKER}
    kinds = {"/": "text/html"}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context()

        def answer(route):
            path = "/" + route.request.url.partition("//")[2].partition("/")[2]
            kind = kinds.get(path, "text/javascript")
            route.fulfill(status=200 if path in files else 404, content_type=kind, body=files.get(path, ""))

        context.route("**/*", answer)
        page = context.new_page()
        browser.start_tracing(page=page, categories=CATEGORIES)
        page.goto("https://press.test/")
        page.wait_for_function("document.title == 'done'")
        trace = browser.stop_tracing()
        browser.close()
    # The metadata of the trace is about the machine.
    with open(out, "w") as file:
        json.dump({"traceEvents": json.loads(trace)["traceEvents"]}, file, separators=(",", ":"))


if __name__ == "__main__":
    main(*sys.argv[1:])
