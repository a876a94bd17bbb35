"""How quick the page of a trace is in Chromium, with 50,000 tokens: to write, to load, to step, to search.

Prints medians in milliseconds; a step is from the key to the end of drawing. Needs an installed Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.trace.browser import NAMES  # noqa: E402
from tests.trace.launches import recorded  # noqa: E402

from qgpu.trace import Activity, Trace, load, save  # noqa: E402
from qgpu.trace.page import page  # noqa: E402

TOKENS = 50_000
LAYERS = 28
SOURCE = """__global__ void collatz(const int *start, int *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned value = start[i];
    int count = 0;
    while (value != 1) {
        value = value & 1 ? 3 * value + 1 : value / 2;
        count++;
    }
    steps[i] = count;
}
"""
WALK = """async ({ move, count }) => {
    const { app } = qgpu, times = [];
    for (let i = 0; i < count; i++) {
        const start = performance.now();
        if (move === "jump") app.choose(Math.floor(((i * 0.618034) % 1) * app.model.length));
        else if (move === "search") app.search("nothing of the kind", 1);
        else document.dispatchEvent(new KeyboardEvent("keydown", { key: move }));
        app.draw();
        times.push(performance.now() - start);
        await new Promise(requestAnimationFrame);
    }
    return times.sort((a, b) => a - b)[Math.floor(count / 2)];
}"""


def long_trace() -> Trace:
    """32 threads that diverge, cut off after ``TOKENS`` tokens; an activity as large as a real one."""
    start = np.arange(1, 129, dtype=np.int32) * 4_703 + 77_031
    trace = recorded(SOURCE, 1, 128, start, np.zeros(128, np.int32), 128, file="collatz.cu", max_tokens=TOKENS)
    counts = np.random.default_rng(1).poisson(40, (TOKENS, LAYERS, 2)).astype("<u2")
    return Trace(
        trace.kernel, trace.launch, trace.tokens, trace.file, trace.sources, trace.arrays, trace.message,
        Activity(LAYERS, counts.tobytes()),
    )  # fmt: skip


def main() -> None:
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    if browser is None:
        print("no Chromium is installed: apt-get install chromium")
        return
    from playwright.sync_api import sync_playwright

    trace = long_trace()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        times = [time.perf_counter()]
        save(trace, Path(folder) / "a.jsonl")
        times.append(time.perf_counter())
        trace = load(Path(folder) / "a.jsonl")
        times.append(time.perf_counter())
        (Path(folder) / "a.html").write_text(page(trace), encoding="utf-8")
        times.append(time.perf_counter())
        sizes = [(Path(folder) / name).stat().st_size / 1e6 for name in ("a.jsonl", "a.html")]
        print(f"{len(trace.tokens):,} tokens: trace file {sizes[0]:.1f} MB, page {sizes[1]:.1f} MB")
        for what, start, end in zip(("save", "load", "page"), times, times[1:], strict=False):
            print(f"{what:24s}{1000 * (end - start):10.1f} ms")
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        shown = started.new_page(viewport={"width": 1440, "height": 900})
        start = time.perf_counter()
        shown.goto((Path(folder) / "a.html").as_uri())
        shown.evaluate("qgpu.app.layers.ready.then(() => qgpu.app.draw())")
        print(f"{'open in Chromium':24s}{1000 * (time.perf_counter() - start):10.1f} ms")
        for what, move, count in (
            ("next token", "ArrowRight", 200), ("next EXEC", "ArrowDown", 200), ("EXEC before", "ArrowUp", 200),
            ("any token", "jump", 100), ("fruitless search", "search", 5),
        ):  # fmt: skip
            print(f"{what:24s}{shown.evaluate(WALK, {'move': move, 'count': count}):10.1f} ms")
        print(f"{'script memory':24s}{shown.evaluate('performance.memory.usedJSHeapSize') / 1e6:10.1f} MB")
        started.close()


if __name__ == "__main__":
    main()
