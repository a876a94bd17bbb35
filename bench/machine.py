"""What the machine is, beside what it is meant to be; and what casting it takes, for a base as wide as 2B and as 0.8B.

    python bench/machine.py [--json]

Every cast is a process of its own, from the circuit's source to the network in memory: wall time, processor time, and
the most memory it held.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

SHAPES = {"2B: 6,144 neurons a layer": 6144, "0.8B: 3,584 neurons a layer": 3584}
AT_MOST = {"layers": 28, "machine_dims": 704, "neurons_a_layer": 6144, "cast_s": 60, "cast_mb": 4096}
AT_LEAST = {
    "rom_blocks": 256, "memory_words": 4096, "threads_per_cta": 128, "warp_size": 32, "min_margin_bf16": 0.25,
    "min_margin_float32": 1 / 16, "min_gap_float32": 40,
}  # fmt: skip


def cast(neurons: int) -> dict[str, float]:
    """Cast the machine here and measure it."""
    from qgpu.cli_model import facts
    from qgpu.foundry import Options, cast_with_report
    from qgpu.machine.machine import machine_circuit

    began, busy = time.perf_counter(), time.process_time()
    network, report = cast_with_report(machine_circuit(), Options(max_intermediate=neurons))
    found = facts(network, {"peak": report.peak, "nonzeros": report.nonzeros})
    return {
        **found,
        "cast_s": round(time.perf_counter() - began, 1),
        "cast_processor_s": round(time.process_time() - busy, 1),
        "cast_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cast", type=int, help="cast here, for MLPs of that many neurons, and print the figures")
    options = parser.parse_args()
    if options.cast:
        print(json.dumps(cast(options.cast)))
        return
    found = {
        name: json.loads(subprocess.check_output([sys.executable, __file__, "--cast", str(neurons)], text=True))
        for name, neurons in SHAPES.items()
    }
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'':22s}" + "".join(f"{name:>30s}" for name in found) + f"{'wanted':>20s}")
    for key in next(iter(found.values())):
        goals = (("at most", AT_MOST), ("at least", AT_LEAST))
        wanted = "".join(f"{words} {bounds[key]:,}" for words, bounds in goals if key in bounds)
        print(f"{key:22s}" + "".join(f"{shape[key]:>30,}" for shape in found.values()) + f"{wanted:>20s}")


if __name__ == "__main__":
    main()
