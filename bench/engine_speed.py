"""How quick the native engine is on the machine itself: start-up, tokens a second, memory; dense products beside it.

    python bench/engine_speed.py [--network FILE] [--launches N]

Random launches are run by the interpreter first; the engine then reads each prompt and writes the launch, and its
tokens are compared. Rates are tokens per second of processor time. Each row is a process of its own, so that memory
is its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import numpy as np

from qgpu.foundry.network import Network, Shape

WARM = "import sys; from qgpu.engines.native import NativeEngine; NativeEngine(sys.argv[1]).feed([0])"

sys.path.insert(0, str(Path(__file__).parents[1]))  # the launches are those of the machine's tests


def traces(count: int) -> list[tuple[list[int], list[int]]]:
    """(prompt, tokens written) of random launches."""
    from tests.machine.random_launches import launch

    from qgpu.isa.interpreter import run
    from qgpu.isa.program import prompt

    rng = Random(0)
    launches = [launch(rng) for _ in range(count)]
    return [(list(prompt(one)), list(run(one, 300)[0])) for one in launches]


def measure(path: str, dtype: str, count: int) -> None:
    """One row of the table, printed; run in a process of its own."""
    start = time.perf_counter()
    from qgpu.engines.native import NativeEngine

    network = Network.load(Path(path))
    loaded = time.perf_counter()
    engine = NativeEngine(network, dtype)
    engine.feed([0])
    ready = time.perf_counter()
    engine.generate(1)
    fed = wrote = wrong = 0
    reading = writing = 0.0
    for prompt, written in traces(count):
        engine.reset()
        begin = time.process_time()
        engine.feed(prompt)
        middle = time.process_time()
        answer = engine.generate(len(written))
        writing += time.process_time() - middle
        reading += middle - begin
        fed, wrote, wrong = fed + len(prompt), wrote + len(answer), wrong + (answer != written)
    before = time.perf_counter()
    engine.restore(engine.snapshot())
    snapshot = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    weights = sum(len(m.values) for m in network.sparse.values())
    print(
        f"{dtype:<10} {weights:>9,} {loaded - start:>8.2f} {ready - loaded:>8.2f} {fed / reading:>12,.0f} "
        f"{wrote / writing:>11,.0f} {wrong:>6} of {count} {snapshot * 1000:>12.1f} {peak:>9,.0f}",
        flush=True,
    )


def dense_rate(shape: Shape) -> float:
    """Tokens a second if every matrix of every layer is multiplied: one layer's worth is timed, in float32."""
    rng = np.random.default_rng(0)
    wide = shape.linear_heads * 128
    sizes = [(3 * wide, shape.hidden), (wide, shape.hidden), (shape.hidden, wide)]
    sizes += [(shape.intermediate, shape.hidden)] * 2 + [(shape.hidden, shape.intermediate)]
    matrices = [rng.random(size, np.float32) for size in sizes]
    start = time.perf_counter()
    for matrix in matrices:
        _ = matrix @ np.ones(matrix.shape[1], np.float32)
    return 1 / ((time.perf_counter() - start) * shape.layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", help="a cast network's file; the bare machine if there is none")
    parser.add_argument("--launches", type=int, default=30)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure, options.launches)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(options.network or Path(folder) / "bare.safetensors")
        if not options.network:
            from qgpu.driver.bare import bare

            bare(lambda text: print(text, flush=True))[0].save(path)
        shape = Network.load(path).shape
        print(f"{path.name}: {shape.layers} layers, hidden {shape.hidden}, {shape.vocabulary:,} ids")
        print("dtype        weights   load s  ready s  prefill t/s  decode t/s  wrong      snapshot ms  peak MiB")
        sys.stdout.flush()
        subprocess.run([sys.executable, "-c", WARM, str(path)], check=True)
        for dtype, cold in (("bfloat16", True), ("bfloat16", False), ("float32", False)):
            environment = os.environ | ({"NUMBA_CACHE_DIR": str(Path(folder) / "cold")} if cold else {})
            command = [sys.executable, __file__, "--launches", str(options.launches), "--measure", str(path), dtype]
            subprocess.run(command, env=environment, check=True)
        print(f"dense float32 products of one token, no attention, no head: {dense_rate(shape):.1f} tokens/s")
        print("first row: compiled code not yet in the cache (ready s); the others find it there")


if __name__ == "__main__":
    main()
