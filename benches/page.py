#!/usr/bin/env python3
"""Measures the page in Chromium and prints Markdown: `.venv/bin/python benches/page.py [SIZE...]`.

For the pair of each size (S, M and L by default) in `target/bench-data`, it measures the time to create the page, the
size of the page, the time from opening the file until the flame graph is painted, and the time to redraw it. It does so
with the default options, and with up to 200,000 frames of any width. For comparison it draws the same boxes as SVG
elements. Needs the release build of the command (`cargo build --release`), the data (`target/release/generate`),
Playwright and Chromium.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "target" / "bench-data"
RUNS = 5

# Records the painted boxes.
NOTE = """
window.boxes = [];
const paint = CanvasRenderingContext2D.prototype, {clearRect, fillRect} = paint;
paint.clearRect = function (...a) { if (this.canvas.id) boxes = []; return clearRect.apply(this, a); };
paint.fillRect = function (...a) {
  if (this.canvas.id) boxes.push([...a, this.fillStyle]);
  return fillRect.apply(this, a);
};
"""
# Returns the milliseconds from an action until its result is on the screen.
UNTIL_PAINTED = """async (act) => {
  const start = performance.now();
  (0, eval)(act);
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""
# Draws the same boxes as SVG elements: a rectangle for each, and a text where there is room.
AS_SVG = """async (all) => {
  const list = all ?? boxes, ns = "http://www.w3.org/2000/svg";
  document.getElementById("svg")?.remove();
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const start = performance.now();
  const svg = document.createElementNS(ns, "svg");
  svg.id = "svg"; svg.setAttribute("width", 1400); svg.setAttribute("height", 2000);
  for (const [x, y, w, h, fill] of list) {
    const r = document.createElementNS(ns, "rect");
    r.setAttribute("x", x); r.setAttribute("y", y); r.setAttribute("width", w); r.setAttribute("height", h);
    r.setAttribute("fill", typeof fill === "string" ? fill : "gray");
    svg.append(r);
    if (w > 26) {
      const t = document.createElementNS(ns, "text");
      t.setAttribute("x", x + 4); t.setAttribute("y", y + 14); t.setAttribute("font-size", 12);
      t.textContent = "package.function";
      svg.append(t);
    }
  }
  document.body.prepend(svg);
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""


def opened(page: Page, file: Path) -> tuple[float, float]:
    """Returns the milliseconds from navigation to the first contentful paint, and to the painted flame graph."""
    page.goto(file.as_uri())
    names = ("first-contentful-paint", "pprofdiff-painted")
    for name in names:
        # wait_for_function does not work here, because the page's content security policy blocks it.
        while not page.evaluate(f"performance.getEntriesByName('{name}').length"):
            page.wait_for_timeout(5)
    return tuple(page.evaluate(f"performance.getEntriesByName('{name}')[0].startTime") for name in names)


def main() -> None:
    """Measures the sizes from the command line."""
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    chromium = found or sys.exit("needs Chromium: apt-get install chromium-headless-shell")
    command = ROOT / "target" / "release" / "pprofdiff"
    head = ["pair", "frames", "page MB", "made in s", "first paint ms", "graph ms", "boxes", "redraw ms", "as SVG ms"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for size in sys.argv[1:] or ["S", "M", "L"]:
            pair = [DATA / f"{size}-1.{side}.pb.gz" for side in ("base", "new")]
            for options in ([], ["--min-width", "0", "--max-frames", "200000"]):
                file = Path(directory) / "page.html"
                start = time.perf_counter()
                subprocess.run([command, *pair, "--format", "html", "-o", file, *options], check=True)
                made = time.perf_counter() - start
                times, redraws = [], []
                for _ in range(RUNS):
                    page = browser.new_page(viewport={"width": 1400, "height": 1000})
                    times.append(opened(page, file))
                    page.close()
                page = browser.new_page(viewport={"width": 1400, "height": 1000})
                page.add_init_script(NOTE)
                opened(page, file)
                for mode in ("base", "new", "delta", "max") * 2:
                    act = f"document.querySelector('[data-mode={mode}]').click()"
                    redraws.append(page.evaluate(UNTIL_PAINTED, act))
                boxes = page.evaluate("boxes.length")
                svg = statistics.median(page.evaluate(AS_SVG) for _ in range(RUNS))
                data = "JSON.parse(document.getElementById('data').textContent)"
                nodes = page.evaluate(f"{data}.types.at(-1).down.nodes")
                first, graph = (statistics.median(t) for t in zip(*times, strict=True))
                size_of = file.stat().st_size / 1e6
                cells = [f"{nodes:,}", f"{size_of:.2f}", f"{made:.2f}", f"{first:.0f}", f"{graph:.0f}"]
                cells += [f"{boxes:,}", f"{statistics.median(redraws):.0f}", f"{svg:.0f}"]
                print(f"| {size} | {' | '.join(cells)} |", flush=True)
                if options:
                    # 50,000 boxes at once, like a renderer that does not skip invisible frames.
                    box = "[i % 1000 * 1.4, Math.floor(i / 1000) * 20, 1.4, 19, 'gray']"
                    grid = f"Array.from({{length: 50000}}, (_, i) => {box})"
                    every = page.evaluate(f"({AS_SVG})({grid})")
                    print(f"\n50,000 SVG rectangles, built and painted once: {every:.0f} ms\n", flush=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
