"""The read-modify-write unit against each atomic's definition on Python integers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.circuit.harness import run
from tests.machine.random_launches import word

from qgpu.circuit.builder import Builder
from qgpu.circuit.word import Word
from qgpu.isa import encoding
from qgpu.machine.atomics import modified

OPS = encoding.CHOICES["atomic"]
ONLY_32 = ("inc", "dec")


def as_signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


NEW: dict[str, Callable[[int, int, bool, int], int]] = {
    "none": lambda old, v, hit, bits: old,
    "add": lambda old, v, hit, bits: (old + v) % 2**bits,
    "min.s": lambda old, v, hit, bits: v if as_signed(v, bits) < as_signed(old, bits) else old,
    "max.s": lambda old, v, hit, bits: v if as_signed(v, bits) > as_signed(old, bits) else old,
    "min.u": lambda old, v, hit, bits: v if v < old else old,
    "max.u": lambda old, v, hit, bits: v if v > old else old,
    "inc": lambda old, v, hit, bits: old + 1 if old < v else 0,
    "dec": lambda old, v, hit, bits: old - 1 if 0 < old <= v else v,
    "and": lambda old, v, hit, bits: old & v,
    "or": lambda old, v, hit, bits: old | v,
    "xor": lambda old, v, hit, bits: old ^ v,
    "exch": lambda old, v, hit, bits: v,
    "cas": lambda old, v, hit, bits: v if hit else old,
}


def near(rng: Random, value: int, bits: int) -> int:
    kind = rng.randrange(6)
    if kind == 0:
        return value
    if kind == 1:
        return (value + rng.choice((1, -1, 2, -2))) % 2**bits
    if kind == 2:
        return value ^ 1 << rng.randrange(bits)
    if kind == 3:
        return -value % 2**bits
    return word(rng) | word(rng) << 32 & 2**bits - 1 if bits == 64 else word(rng)


def test_every_atomic_on_either_word_and_on_both() -> None:
    rng = Random(8)
    cases = []
    for op in OPS:
        for place in ("low", "high", "both"):
            if place == "both" and op in ONLY_32:
                continue
            for _ in range(120):
                bits = 64 if place == "both" else 32
                old = word(rng) | (word(rng) << 32 if bits == 64 else 0)
                cases.append((op, place, rng.random() < 0.5, old, near(rng, old, bits), word(rng)))
    columns: dict[str, list[int]] = {name: [] for name in ("op", "hit", "changed", "old", "row")}
    wanted = []
    for op, place, hit, old, v, other in cases:
        shift = 32 if place == "high" else 0
        rest = 0 if place == "both" else other << 32 - shift
        new = NEW[op](old, v, hit, 64 if place == "both" else 32)
        wanted.append(new << shift | rest)
        if op == "none":  # the unit changes nothing, and the old row is not shown to it
            given = (0, 0, old << shift | rest)
        else:
            given = ({"low": 1, "high": 2, "both": 3}[place], old << shift, v << shift | rest)
        for name, value in zip(columns, (1 << OPS.index(op), int(hit), *given), strict=True):
            columns[name].append(value)

    def build(b: Builder, i: dict[str, Word]) -> dict[str, Any]:
        is_ = {name: i["op"][n] for n, name in enumerate(OPS)}
        return {"new": modified(b, is_, i["hit"][0], i["changed"].bits, i["old"], i["row"])}

    widths = {"op": len(OPS), "hit": 1, "changed": 2, "old": 64, "row": 64}
    found, cost = run(build, {name: (widths[name], values) for name, values in columns.items()})
    assert cost.depth == 4  # of which one is beside the row: which word is signed
    wrong = [(case, hex(got)) for case, got, want in zip(cases, found["new"], wanted, strict=True) if got != want]
    assert wrong[:5] == []
