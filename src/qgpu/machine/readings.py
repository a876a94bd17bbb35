"""What the DATA since a marker stand for so far: the lanes' values, the memory row, the CTA index.

Readings of a form that is not complete are unspecified (docs/machine.md, "Forms"), so each DATA may write what it
likes, as long as what the last one leaves is right. Lanes' values come from three DATA only: by the fourth, all but
the last lane have their words from the third. Low halves are one of those three; a high half is the DATA before, or
the one before that, the same in all lanes, or else a sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of, possible
from qgpu.machine.parts import Bits, Ranks


def lane_values(b: Builder, p: Sequence[Word], at: Bits, wide: Expr, ranks: Ranks) -> list[Word]:
    """Each lane's word of the DATA since EXEC, VAL or (``wide``) VALW, where ``lane_writes`` lets it be written.

    ``p[t]``: the payload t tokens ago. Two levels: choices, then values. High halves share their bits.
    """
    short, two = ~wide, ranks.two
    by_two = ((wide,), (short, at[2], ~two), (short, at[4], two))  # low half, then high half
    pair = any_of(b, "pair", *by_two)
    first_of_four = b.and_("first.of.four", short, at[3], two)
    values = []
    high = b.mux("high", [(pair, p[0]), (first_of_four, p[1])])
    for lane, rank in enumerate(ranks.of):
        with b.scope(f"lane{lane}"):
            taken = [
                any_of(b, "tap0", (short, at[1]), (short, at[2], two), (short, at[3], rank[2]), (short, at[4], ~two)),
                any_of(b, "tap1", *by_two, (short, at[3], rank[1])),
                any_of(b, "tap2", (short, at[3], rank[0])),
            ]
            low = b.mux("low", list(zip(taken, p[:3], strict=True)))
            extends = ((taken[0],), (taken[1], ~pair), (taken[2], ~first_of_four))
            cases = [(*case, word[15]) for case, word in zip(extends, p[:3], strict=True)]
            # of four DATA for two lanes, the third writes the first lane; the second lane gets its own with the fourth
            sign = any_of(b, "sign", cases[0], (*cases[1], ~first_of_four), cases[2])
            values.append(low + Word("high", tuple((bit + sign).assume(0, 1) for bit in high)))
    return values


def lane_writes(b: Builder, at: Bits, wide: Expr, ranks: Ranks, active: Bits, now: Expr) -> list[Expr]:
    """1 a lane: the DATA (``now``: it carries a destination) writes it. Kept are the lanes whose word is there already,
    while later lanes get theirs."""
    short, two, four = ~wide, ranks.two, ranks.four
    found = []
    for lane, rank in enumerate(ranks.of):
        kept = [
            (short, at[2], two, rank[0]),
            (short, at[4], two, rank[0]),
            *((short, at[4], four, rank[r]) for r in range(3)),
            *((wide, rank[r], ~total(at[1 : 2 * r + 3]).assume(0, 1)) for r in range(3)),
        ]
        terms = [(total([now, active[lane]]), {2: 1})]
        terms += [(total([now, *case]), {len(case) + 1: -1}) for case in kept if possible(case)]
        found.append(b.sum_of(f"lane{lane}.write", terms, 0, 1))
    return found


def row_data(b: Builder, p: Sequence[Word], at: Bits) -> Word:
    """The memory row of the DATA since MEM (isa.values.row_of). One level."""

    def quarter(name: str, choices: Sequence[tuple[Expr, Word]], signs: Sequence[tuple[Expr, Expr]]) -> Word:
        taken = b.mux(name, choices)
        if not signs:
            return taken
        sign = any_of(b, f"{name}.sign", *signs)
        return Word(name, tuple((bit + sign).assume(0, 1) for bit in taken))

    low0 = quarter("row.word0", [(at[d], p[d - 1]) for d in (1, 2, 3, 4)], [])
    low1 = quarter("row.word1", [(at[3], p[1]), (at[4], p[2])], [(at[1], p[0][15]), (at[2], p[1][15])])
    high0 = quarter("row.word2", [(at[2], p[0]), (at[3], p[0]), (at[4], p[1])], [])
    high1 = quarter("row.word3", [(at[4], p[0])], [(at[2], p[0][15]), (at[3], p[0][15])])
    return low0 + low1 + high0 + high1


def cta_index(b: Builder, p: Sequence[Word], at: Mapping[int, tuple[Expr, ...]]) -> Word:
    """The index of the DATA since CTA: x low, y, z, x high. ``at[d]``: all 1 at the d-th of them. One level."""
    low = b.mux("cta.x", [(at[d], p[d - 1]) for d in (1, 2, 3, 4)])
    y = b.mux("cta.y", [(at[d], p[d - 2]) for d in (2, 3, 4)])
    z = b.mux("cta.z", [(at[d], p[d - 3]) for d in (3, 4)])
    return low + y + z + b.mux("cta.x.high", [(at[4], p[0])])


def destination(b: Builder, is_: Mapping[str, Expr], named: Word, early: Word, late: Word) -> Word:
    """The register that DATA write: ``named`` by VAL or VALW (zero after other markers), else the block's ``early``
    destination or, if it has none, the ``late`` one. One level."""
    none = [~bit for bit in early]
    bits = []
    for i, bit in enumerate(named):
        cases = ((is_["EXEC"], early[i]), (is_["EXEC"], late[i], *none))
        bits.append((bit + any_of(b, f"register.bit{i}", *cases)).assume(0, 1))
    return Word("register", tuple(bits))

