"""How quick the native engine writes the launches of the conformance table, on one core and on two threads.

    python bench/native_speed.py [--every N] [--json]

Every N-th launch that is not long is run by the interpreter first; the engine then reads each prompt and writes the
launch, three times, and its tokens are compared. Rates are medians over launches, each of the best of its three runs,
in tokens and lane instructions per second of processor time without the prompt. ``two threads``: how much quicker two
engines in two threads of one process write all launches twice than one engine writes them twice. ``start_s``: a warm
``qgpu eval``; ``peak_mb``: memory of an engine that is loaded and has read something; each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from statistics import median
from threading import Thread
from typing import Any

import numpy as np

from qgpu.conformance.table import Row, table
from qgpu.driver.bare import bare
from qgpu.driver.device import Device
from qgpu.engines.native import NativeEngine
from qgpu.errors import QgpuError
from qgpu.isa.program import prompt

MOST_TOKENS = 2000
RUNS = 3
EVAL = [sys.executable, "-c", "from qgpu.cli import main; main()", "eval", "[1,2,3] @ [4,5,6]"]
PEAK = """
import re
from pathlib import Path
from qgpu.driver.bare import bare
from qgpu.cuda.cache import cache_directory
from qgpu.engines.native import NativeEngine
NativeEngine(bare()[0], folder=cache_directory() / "native").feed([0] * 10)
status = Path("/proc/self/status")
if status.exists():  # what getrusage tells of a child begins with what its parent had
    print(int(re.search("VmHWM:\\s+(\\d+)", status.read_text())[1]) / 1024)
else:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
Trace = tuple[list[int], list[int], int]  # prompt, tokens, lane instructions


def trace_of(row: Row) -> Trace | None:
    """None where the compiler refuses the row, or it ends with a fault, or it is long."""
    device = Device("interpreter", printed=lambda text: None)
    values = [device.array(value) if isinstance(value, np.ndarray) else value for value in row.arguments]
    try:
        launch = device.kernel(row.path, row.kernel)[row.grid, row.cta, row.shared](*values, max_tokens=MOST_TOKENS)
    except QgpuError as error:
        print(f"{row.name} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
        return None
    return list(prompt(launch.request)), list(launch.tokens), launch.stats.lane_instructions


def write(engine: NativeEngine, trace: Trace) -> float:
    """Seconds of processor time of this thread for the tokens after the prompt."""
    fed, wanted, _ = trace
    engine.reset()
    engine.feed(fed)
    start = time.thread_time()
    written = engine.generate(len(wanted))
    seconds = time.thread_time() - start
    if written != wanted:
        raise SystemExit("the engine wrote other tokens than the interpreter")
    return seconds


def write_all(engine: NativeEngine, traces: list[Trace]) -> None:
    for trace in traces:
        write(engine, trace)


def two_threads(engines: list[NativeEngine], traces: list[Trace]) -> float:
    start = time.perf_counter()
    for _ in engines:
        write_all(engines[0], traces)
    one = time.perf_counter() - start
    threads = [Thread(target=write_all, args=(engine, traces)) for engine in engines]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return one / (time.perf_counter() - start)


def measure(every: int) -> dict[str, Any]:
    rows = [row for row in table().values() if not row.full][::every]
    traces = [trace for row in rows if (trace := trace_of(row)) is not None]
    network, _ = bare(lambda text: print(text, file=sys.stderr))
    engine = NativeEngine(network)
    for trace in traces:  # compiles, and lets the engine see which signals are rarely on
        write(engine, trace)
    best = [min(write(engine, trace) for _ in range(RUNS)) for trace in traces]
    subprocess.run(EVAL, check=True, stdout=subprocess.DEVNULL)
    start = time.perf_counter()
    subprocess.run(EVAL, check=True, stdout=subprocess.DEVNULL)
    start_s = time.perf_counter() - start
    peak = subprocess.run([sys.executable, "-c", PEAK], check=True, capture_output=True, text=True).stdout
    other = NativeEngine(network)
    write(other, traces[0])
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load": os.getloadavg()[0],
        "layers": network.shape.layers,
        "launches": len(traces),
        "native.tokens_per_s": median(len(t[1]) / s for t, s in zip(traces, best, strict=True)),
        "native.lane_instructions_per_s": median(t[2] / s for t, s in zip(traces, best, strict=True)),
        "native.two_threads": two_threads([engine, other], traces),
        "start_s": start_s,
        "peak_mb": float(peak),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.every)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:32} {value:,.2f}" if isinstance(value, float) else f"{name:32} {value}")


if __name__ == "__main__":
    main()
