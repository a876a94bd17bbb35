"""What ``qgpu bench`` does: the stock kernels on an engine, their tokens and how quick those are written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import typer

from qgpu.cli_terminal import Progress
from qgpu.driver.device import Device
from qgpu.errors import QgpuError

Numbers = Callable[..., np.ndarray[Any, Any]]

# kernel -> (grid, CTA, arguments out of a maker of random arrays); shapes that fill the machine's lanes
ROWS: Mapping[str, tuple[Any, Any, Callable[[Numbers], tuple[Any, ...]]]] = {
    "dot": (1, 128, lambda some: (some(128), some(128), some(1) * 0, 128)),
    "saxpy": (2, 128, lambda some: (3, some(256), some(256), 256)),
    "vector_add": (2, 128, lambda some: (some(256), some(256), some(256), 256)),
    "matvec": (1, 32, lambda some: (some(32, 16), some(16), some(32), 32, 16)),
    "matmul": (1, (8, 8), lambda some: (some(8, 8), some(8, 8), some(8, 8), 8, 8, 8)),
}


def bench(
    names: Sequence[str], engine: str, dtype: str | None, on: str | None, seed: int, check: bool, as_json: bool
) -> None:
    """A row for each kernel: tokens of the launch, its time, and lane instructions a second. on: the device of the
    transformers engine."""
    if unknown := [name for name in names if name not in ROWS]:
        raise QgpuError(f"no such row: {', '.join(unknown)}; there are: {', '.join(ROWS)}")
    found: list[dict[str, Any]] = []
    started = time.perf_counter()
    with Progress() as progress:
        device = Device(engine, dtype, progress.say, progress.count, device=on)
        opened = time.perf_counter() - started
        try:
            for name in names or ROWS:
                progress.end()
                if not as_json and not found:
                    typer.echo(f"{'kernel':12s} {'prompt':>8s} {'tokens':>8s} {'seconds':>8s} {'tokens/s':>9s} "
                               f"{'lane instr/s':>13s}")  # fmt: skip
                found.append(_measured(device, name, seed, check))
                progress.end()
                if not as_json:
                    typer.echo(_line(found[-1]))
        finally:
            progress.end()
            if as_json:
                facts = {"engine": engine, "dtype": dtype, "device": on, "seed": seed, "open_seconds": opened}
                print(json.dumps({**facts, "rows": found}))
    if not as_json:
        typer.echo(f"the {engine} engine was ready after {opened:.2f} s; the times hold the prompt as well")


def _line(row: Mapping[str, Any]) -> str:
    return (
        f"{row['kernel']:12s} {row['prompt_tokens']:8,d} {row['tokens']:8,d} {row['seconds']:8.2f} "
        f"{row['tokens_per_second']:9,.0f} {row['lane_instructions_per_second']:13,.0f}"
    )


def _measured(device: Device, name: str, seed: int, check: bool) -> dict[str, Any]:
    random = np.random.default_rng(seed)

    def some(*shape: int) -> np.ndarray[Any, Any]:
        return random.integers(-100, 101, shape).astype(np.int32)

    grid, cta, arguments = ROWS[name]
    values = [device.array(value) if isinstance(value, np.ndarray) else value for value in arguments(some)]
    kernel = device.kernel(name)[grid, cta]
    start = time.perf_counter()
    launch = kernel(*values)
    seconds = time.perf_counter() - start
    if check:
        kernel(*values, check=True)
    numbers = launch.stats
    return {
        "kernel": name,
        "prompt_tokens": numbers.prompt_tokens,
        "tokens": numbers.tokens,
        "exec_tokens": numbers.exec_tokens,
        "lane_instructions": numbers.lane_instructions,
        "seconds": seconds,
        "tokens_per_second": numbers.tokens / seconds,
        "lane_instructions_per_second": numbers.lane_instructions / seconds,
        "checked": check,
    }
