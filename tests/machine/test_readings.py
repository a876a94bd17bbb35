"""What DATA write, form by form: every mask, every length, after EXEC, VAL and VALW; memory rows and the CTA index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np
import pytest
from tests.machine.random_launches import EDGES

from qgpu.circuit.builder import Builder
from qgpu.circuit.evaluate import RESTS, Simulator
from qgpu.isa import encoding, tokens, values
from qgpu.machine.context import context

QUAD = 5
EARLY, LATE, OTHER = 9, 6, 13
BATCH = 256


@cache
def simulator() -> Simulator:
    b = Builder("context", tokens.VOCABULARY)
    ctx, writes = context(b)
    for lane, value in enumerate(writes.values):
        b.probe(f"value{lane}", value)
    b.probe("enable", writes.enable)
    b.probe("register", writes.register)
    b.probe("row", writes.row_data)
    b.probe("row.enable", writes.row_enable)
    b.probe("cta", ctx.cta)
    b.probe("rom", [bit for field in encoding.FIELDS for bit in ctx.rom[field.name]])
    return Simulator(b.finish([ctx.token.kind["EXEC"]] * tokens.CODE_BITS, range(tokens.VOCABULARY)), BATCH)


def prompt() -> list[int]:
    """Block 1 has both destinations, block 2 the late one alone; the quad has all lanes."""
    ids = []
    for block, fields in ((1, {"d_e": EARLY, "d_b": LATE}), (2, {"d_b": LATE})):
        bits = encoding.encode(dict(fields))[0]
        ids += [tokens.encode("PROGRAM", block, 0), *(bits >> shift & 0xFFFF for shift in range(0, 64, 16))]
    for half in range(2):
        ids += [tokens.encode("THREADS", QUAD, half), 0, 0x8000, 0, 0x8000]
    return [*ids, tokens.encode("GO")]


def feed(columns: Sequence[Sequence[int]]) -> list[dict[int, list[int]]]:
    """For each sequence of tokens: register -> the four lanes' words, as the DATA leave them (None: not written)."""
    sim = simulator()
    sim.reset()
    found: list[dict[int, list[int]]] = [{} for _ in columns]
    for position in range(max(map(len, columns))):
        ids = [column[position] if position < len(column) else RESTS for column in columns]
        sim.step(np.array(ids + [RESTS] * (BATCH - len(ids))))
        enable, register = sim.probe("enable"), sim.probe_word("register")
        lanes = [sim.probe_word(f"value{lane}") for lane in range(4)]
        for i, token in enumerate(ids):
            for lane in range(4):
                if token != RESTS and enable[lane, i]:
                    found[i].setdefault(int(register[i]), [-1] * 4)[lane] = int(lanes[lane][i])
    return found


def shapes(rng: Random, count: int) -> list[int]:
    """Words that agree or not, short or not."""
    pool = [rng.choice(EDGES) for _ in range(2)] + [rng.getrandbits(32), rng.getrandbits(15), -rng.getrandbits(15)]
    one = rng.choice(pool) & 0xFFFFFFFF
    short = rng.random() < 0.4
    words = [one if rng.random() < 0.3 else rng.choice(pool) & 0xFFFFFFFF for _ in range(count)]
    if rng.random() < 0.3:
        words = [one] * count
    return [values.signed(word, 16) & 0xFFFFFFFF for word in words] if short else words


@pytest.mark.parametrize("fresh", [True, False])
def test_every_form_of_a_destination(fresh: bool) -> None:
    rng = Random(7)
    columns, expected, lengths = [], [], set()
    for i in range(BATCH):
        mask = 15 if fresh else 1 + i % 15
        active = [lane for lane in range(4) if mask >> lane & 1]
        leader = tokens.mask(QUAD, mask, active[0])
        block = rng.choice((1, 2))
        ids = [*prompt(), *([] if fresh else [leader]), tokens.encode("EXEC", block, QUAD)]
        want: dict[int, list[int]] = {}
        for number, register in enumerate((EARLY, LATE, OTHER) if block == 1 else (LATE, OTHER)):
            words = shapes(rng, len(active))
            wide, payloads = values.lane_form(words)
            lengths.add((len(active), wide, len(payloads)))
            if wide or number:
                ids.append(tokens.encode("VALW" if wide else "VAL", register))
            ids += payloads
            lanes = [-1] * 4
            for lane, word in zip(active, words, strict=True):
                lanes[lane] = word
            want[register] = lanes
        columns.append(ids)
        expected.append(want)
    assert feed(columns) == expected
    four = {(4, False, 1), (4, False, 2), (4, False, 4), (4, True, 8)}
    fewer = {(1, False, 1), (1, False, 2), (2, False, 1), (2, False, 2), (2, False, 4)}
    three = {(3, False, 1), (3, False, 2), (3, False, 3), (3, True, 6)}
    assert lengths == (four if fresh else four | fewer | three)


def test_every_form_of_a_row() -> None:
    rng = Random(8)
    rows = [tuple(shapes(rng, 2)) for _ in range(BATCH - 1)] + [(5, 0)]
    columns = [[tokens.encode("MEM", 77, 0), *values.row_form(low, high)] for low, high in rows]
    assert {len(column) for column in columns} == {2, 3, 4, 5}
    sim = simulator()
    sim.reset()
    last = [0] * BATCH
    for position in range(5):
        ids = np.array([column[position] if position < len(column) else RESTS for column in columns])
        sim.step(ids)
        assert (sim.probe("row.enable")[0] == (position > 0))[ids != RESTS].all()
        words = sim.probe_word("row")
        last = [int(words[i]) if ids[i] != RESTS else last[i] for i in range(BATCH)]
    assert last == [low | high << 32 for low, high in rows]


INDICES = [(7, 0, 0), (0xFFFF, 3, 0), (5, 0, 9), (1, 2, 3), (0x12345, 0, 0), (0x7FFFFFFE, 4, 5)]


@pytest.mark.parametrize("index", INDICES)
def test_every_form_of_the_cta_index(index: tuple[int, int, int]) -> None:
    sim = simulator()
    sim.reset()
    before = values.cta_form(0x45678, 0xAAAA, 0x5555)
    cta = tokens.encode("CTA")
    for token in [*prompt(), cta, *before, cta, *values.cta_form(*index), tokens.encode("BAR")]:
        sim.step(token)
    x, y, z = index
    assert int(sim.probe_word("cta")[0]) == x & 0xFFFF | y << 16 | z << 32 | (x >> 16) << 48
    sim.step(tokens.encode("GO"))
    assert int(sim.probe_word("cta")[0]) == 0


def test_a_block_of_four_data_a_part() -> None:
    sim = simulator()
    sim.reset()
    rng = Random(9)
    fields = {field.name: rng.getrandbits(field.width) for field in encoding.FIELDS}
    fields["imm"] -= (fields["imm"] & 0x8000) << 1
    for part, bits in enumerate(encoding.encode(dict(fields))):
        for token in [tokens.encode("PROGRAM", 200, part), *(bits >> shift & 0xFFFF for shift in range(0, 64, 16))]:
            sim.step(token)
    sim.step(tokens.encode("EXEC", 200, QUAD))
    read = iter(sim.probe("rom")[:, 0])
    found = {field.name: sum(int(next(read)) << i for i in range(field.width)) for field in encoding.FIELDS}
    assert found == {name: value & 0xFFFF if name == "imm" else value for name, value in fields.items()}
