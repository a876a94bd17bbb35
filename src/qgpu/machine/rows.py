"""Memory rows on their way out: which lanes store, what a MEM's row becomes, and how many DATA it takes.

At an EXEC the store lanes, their rows and which of them share a row go into one deep row. At a MEM the old row is
kept in
another, since the first DATA already overwrites it above. Plain stores to one row are merged, the highest lane last;
atomics go one lane at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of
from qgpu.machine.parts import Bits, Context, Datapath
from qgpu.machine.results import not_sign_extension

PAIRS = tuple((i, j) for j in range(4) for i in range(j))


@dataclass(frozen=True, eq=False)
class Rows:
    """``any``: the EXEC has a lane that starts a MEM. ``first``: one-hot, the first such lane; ``next``: one-hot, the
    first
    one above the present MEM's lane. ``row[lane]`` (11). ``data`` (64): the present MEM's or READ's row as it will be.
    ``length[n - 1]``: 1 if n DATA say it all; ``long``: (low word, high word)
    is more than its low half sign-extended."""

    any: Expr
    first: Bits
    next: Bits
    row: Sequence[Word]
    data: Word
    length: Bits
    long: tuple[Expr, Expr]


def rows(b: Builder, ctx: Context, path: Datapath, late: Sequence[Word]) -> Rows:
    """``late``: the late results as the result buffer holds them."""
    with b.scope("rows"):
        kept = _stores(b, ctx, path)
        issue, store, second = kept["issue"], kept["store"], kept["second"]
        same = dict(zip(PAIRS, kept["same"], strict=True))
        row = [kept[f"row{i}"] for i in range(4)]
        lane = w.decode(b, "lane", ctx.sub)
        above = [total(lane[:i]).assume(0, 1) if i else constant(0) for i in range(4)]
        after = [b.and_(f"after{i}", issue[i], above[i]) if i else constant(0) for i in range(4)]
        atomic = b.lookup("atomic", ctx.rom["atomic"].value, lambda n: int(n > 0))
        data = _merged(b, ctx, path, late, lane, atomic, store, second, same)
        low, high = data[0:32], data[32:64]
        long_low, long_high = (not_sign_extension(b, f"long.{n}", x) for n, x in (("low", low), ("high", high)))
        zero = b.nor("high.zero", high)
        length = [
            b.and_("length1", ~long_low, zero),
            b.and_("length2", ~long_low, ~long_high, ~zero),
            b.and_("length3", long_low, ~long_high),
            long_high,
        ]
        return Rows(b.or_("any", issue), w.lowest_set(b, "first", issue.bits), w.lowest_set(b, "next", after), row, data,  # noqa: E501
                    length, (long_low, long_high))  # fmt: skip


def _stores(b: Builder, ctx: Context, path: Datapath) -> dict[str, Word]:
    """What the last EXEC stores: lanes that store, lanes that start a MEM, rows, pairs on one row, word of the row."""
    lane_row = [a[3:14] for a in path.store_address]
    same, blocked = [], []
    for i, j in PAIRS:
        equal = w.equal(b, f"same{i}{j}", lane_row[i], lane_row[j])
        same.append(equal)
        blocked.append(b.and_(f"blocked{i}{j}", equal, path.store_lane[i]))
    atomic = b.lookup("exec.atomic", ctx.rom["atomic"].value, lambda n: int(n > 0))
    issue = []
    for j in range(4):
        lower = total(x for (_, k), x in zip(PAIRS, blocked, strict=True) if k == j)
        issue.append(
            any_of(b, f"issue{j}", (path.store_lane[j], atomic), (path.store_lane[j], ~atomic, *_none(b, j, lower)))
        )
    fields = [
        Field("issue", Word("issue", tuple(issue))),
        Field("store", Word("store", tuple(path.store_lane))),
        Field("same", Word("same", tuple(same))),
        Field("second", Word("second", tuple(a[2] for a in path.store_address))),
        *(Field(f"row{i}", lane_row[i]) for i in range(4)),
    ]
    return b.memory("stores", fields, Port((), (ctx.token.kind["EXEC"],)), Port(()))


def _none(b: Builder, lane: int, count: Expr) -> tuple[Expr, ...]:
    return (b.lookup(f"clear{lane}", count, lambda n: int(n == 0)),) if count.terms else ()


def _merged(
    b: Builder, ctx: Context, path: Datapath, late: Sequence[Word], lane: Bits, atomic: Expr, store: Word,
    second: Word, same: dict[tuple[int, int], Expr],
) -> Word:  # fmt: skip
    """The present MEM's row with its stores done, or READ's row as it is."""
    names = total([ctx.token.kind["MEM"], ctx.token.kind["READ"]]).assume(0, 1)
    old = b.memory("old", [Field("data", path.row)], Port((), (names,)), Port(()))["data"]
    mem = ctx.marker["MEM"]
    hits = []
    for i in range(4):
        others = [(lane[j], same[min(i, j), max(i, j)], store[i], ~atomic, mem) for j in range(4) if j != i]
        hits.append(any_of(b, f"hit{i}", (lane[i], mem), *others))
    with b.scope("atomic"):
        operand = b.mux("operand", [(lane[i], late[i]) for i in range(4)])
        at_second = any_of(b, "second", *((lane[i], second[i]) for i in range(4)))
        before = b.mux("before", [(~at_second, old[0:32]), (at_second, old[32:64])])
        result = w.add(b, "sum", before, operand)
    words = []
    for half in range(2):
        with b.scope(f"word{half}"):
            here = [second[i] if half else ~second[i] for i in range(4)]
            writes = [b.and_(f"writes{i}", hits[i], here[i]) for i in range(4)]
            last = [b.and_(f"last{i}", writes[i], ~atomic, *(~x for x in writes[i + 1 :])) for i in range(4)]
            adds = b.and_("adds", atomic, mem, at_second if half else ~at_second)
            kept = b.nor("kept", *last, adds)
            choices = [(last[i], late[i]) for i in range(4)]
            words.append(b.mux("data", [*choices, (adds, result), (kept, old[32 * half : 32 * half + 32])]))
    return words[0] + words[1]
