"""Which accesses are wrong, and which fault is the first: against the contract's words as plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

from tests.circuit.harness import run
from tests.machine.unit import Inputs, Unit

from qgpu.circuit.builder import Builder
from qgpu.circuit.word import Word
from qgpu.isa.state import State
from qgpu.machine.faults import access_fault, first_fault, sizes

NAMES = ("none", "b8", "b16", "b32", "b64")
BYTES = {"none": 0, "b8": 1, "b16": 2, "b32": 4, "b64": 8}
WIDTHS = {"active": 1, "kind": 5, "wide": 1, "address": 32, "alloc": 1, "fourth": 1, "row": 8, "payload": 16}


def build(b: Builder, i: Inputs) -> dict[str, Any]:
    ctx = SimpleNamespace(
        token=SimpleNamespace(payload=i["payload"]), row=i["row"], marker={"ALLOC": i["alloc"][0]},
        position=[None, None, None, None, i["fourth"][0]],
    )  # fmt: skip
    is_ = {name: i["kind"][n] for n, name in enumerate(NAMES)}
    size = sizes(b, "size", is_, BYTES, i["wide"][0])
    wrong, misaligned = access_fault(b, "access", ctx, i["address"], size, i["active"][0])  # type: ignore[arg-type]
    return {"wrong": wrong, "misaligned": misaligned}


def upload(row: int, bits: int) -> list[dict[str, int]]:
    return [
        {"alloc": 1, "row": row, "fourth": int(n == 3), "payload": bits >> 16 * n & 0xFFFF} for n in range(4)
    ]  # fmt: skip


def test_accesses_against_the_map() -> None:
    rng = Random(3)
    allocated = {0: rng.getrandbits(64), 1: (1 << 64) - 1, 127: 0xFFFF << 48, 128: 0xFF, 200: rng.getrandbits(64),
                 255: ((1 << 64) - 1) ^ 0x100}  # fmt: skip
    runs, wanted = [], []
    for _ in range(1500):
        kind = rng.choice(NAMES)
        address = rng.choice((
            64 * rng.choice([*allocated]) + rng.randrange(64), 64 * rng.choice([*allocated]) + 8 * rng.randrange(8),
            rng.randrange(0x3FF0, 0x4010), rng.choice((-1, -2, -4, -8, -16, 1 << 14, 1 << 31)) & 0xFFFFFFFF,
            (64 + 4 * rng.randrange(16)) | 1 << rng.randrange(14, 32), 64 + rng.randrange(64),
        ))  # fmt: skip
        wide, active = rng.random() < 0.2, rng.random() < 0.9
        queries = {"active": int(active), "kind": 1 << NAMES.index(kind), "wide": int(wide), "address": address}
        runs.append([*(token for row, bits in allocated.items() for token in upload(row, bits)), queries])
        size = BYTES[kind]
        odd = bool(size) and address % (16 if wide else size) != 0
        bad = not State(allocated=allocated).may_touch(address, size)
        wanted.append({"wrong": int(active and bool(size) and (odd or bad)), "misaligned": int(odd)})
    unit = Unit(WIDTHS, build, runs)
    last = {}
    for place, seen in unit:
        last = {place: seen}
    assert last == {4 * len(allocated): wanted}
    assert Counter(w["wrong"] for w in wanted)[1] > 300 < Counter(w["wrong"] for w in wanted)[0]
    assert unit.cost.depth == 4  # granules, alignment, all right before the map; wrong after it


def test_the_first_fault() -> None:
    """Every set of lanes at fault."""
    cases = list(product(range(16), range(16), range(0, 16, 3), (0, 0x5A, 0xFF)))

    def outputs(b: Builder, i: dict[str, Word]) -> dict[str, Any]:
        found = first_fault(b, i["loads"].bits, i["stores"].bits, i["traps"].bits, i["odd"].bits)
        return {"any": found.any, "cause": found.cause, "lane": found.lane}

    columns = list(zip(*cases, strict=True))
    found, cost = run(outputs, {n: (8 if n == "odd" else 4, columns[k])
                                for k, n in enumerate(("loads", "stores", "traps", "odd"))})  # fmt: skip
    assert cost.depth == 1
    for number, (loads, stores, traps, odd) in enumerate(cases):
        listed = [(odd >> i & 1, i) for i in range(4) if loads >> i & 1]
        listed += [(2 + (odd >> 4 + i & 1), i) for i in range(4) if stores >> i & 1]
        listed += [(4, i) for i in range(4) if traps >> i & 1]
        assert found["any"][number] == bool(listed)
        if listed:
            assert (found["cause"][number], found["lane"][number]) == listed[0]
