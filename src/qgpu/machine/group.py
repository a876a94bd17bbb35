"""The group of a quad: the lanes that run next when it is the quad's turn, found at its own EXEC.

By default the lanes at the lowest PC among the runnable ones, or, if there is none, among the live ones. After a
branch back that yields, a *chosen* lane whose PC is another than the leader's, and all that are runnable at its PC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.machine.pairs import leads, pair
from qgpu.machine.parts import Bits, Context
from qgpu.machine.warp import Lanes

FAR = 8  # pushes a comparison of two lanes, -7..7, past zero


@dataclass(frozen=True, eq=False)
class Group:
    """``pair`` (5): of mask and leader; ``masks``: the mask is another than the present one; ``speaks``: which lane's
    PC is the group's."""

    pair: Word
    masks: Expr
    speaks: Bits


def group(b: Builder, ctx: Context, lanes: Lanes, yields: Expr, stuck: Expr) -> Group:
    """``yields``: a lane took a branch back that yields; ``stuck``: no lane of the quad is runnable. Five levels from
    the PCs, of which ``speaks`` takes three."""
    with b.scope("group"):
        order = _order(b, lanes)
        leader = w.decode(b, "leader", ctx.leader)
        # the default
        lower = [b.sum_of(f"lower{i}", [(order[j][i], _negative) for j in _others(i)]) for i in range(4)]
        before = [
            b.sum_of(f"before{i}", [(order[j][i] - (1 if j < i else 0), _negative) for j in _others(i)])
            for i in range(4)
        ]
        alone = [(~yields,), (yields, stuck)]
        among = [_if_none(b, f"among{i}", lower[i], lanes.live[i], alone) for i in range(4)]
        speaks = [_if_none(b, f"speaks{i}", before[i], lanes.live[i], alone) for i in range(4)]
        # a yield
        asked = [(yields, leader[j]) for j in range(4)]
        others = [
            b.sum_of(f"other{i}", [
                term for j in _others(i) for term in
                [(total([*asked[j], lanes.runs[i]]), {3: 1}), (_pushed(order[i][j], *asked[j], lanes.runs[i]), {0: -1})]
            ], 0, 1)
            for i in range(4)
        ]  # fmt: skip
        chosen = [
            b.sum_of(f"chosen{i}", [
                *((total([*asked[j], others[i], *(~others[k] for k in _between(j, i))]), {3 + len(_between(j, i)): 1})
                  for j in _others(i)),
                (total([*asked[i], lanes.runs[i], *(~others[k] for k in _others(i))]), {6: 1}),
            ], 0, 1)
            for i in range(4)
        ]  # fmt: skip
        along = [
            b.sum_of(f"along{i}", [
                (chosen[i], lambda n: n),
                *((_pushed(order[i][j], chosen[j], lanes.runs[i]), {0: 1}) for j in _others(i)),
            ], 0, 1)
            for i in range(4)
        ]  # fmt: skip
        mask = [w.merge(p, q) for p, q in zip(among, along, strict=True)]
        lead = [w.merge(p, q) for p, q in zip(leads(b, "leads", among, ctx.leader), chosen, strict=True)]
        number = Word("mask", tuple(mask)).value
        differs = b.lookup("masks", number - Word("active", tuple(ctx.active)).value, lambda n: int(n != 0))
        speaks = [w.merge(p, q) for p, q in zip(speaks, chosen, strict=True)]
        return Group(pair(b, "pair", mask, lead), differs, speaks)


def _others(lane: int) -> list[int]:
    return [j for j in range(4) if j != lane]


def _between(first: int, last: int) -> list[int]:
    """Lanes cyclically after the first and before the last."""
    return [(first + n) % 4 for n in range(1, (last - first) % 4)]


def _negative(n: int) -> int:
    return int(n < 0)


def _sign(n: int) -> int:
    return (n > 0) - (n < 0)


def _order(b: Builder, lanes: Lanes) -> list[list[Expr]]:
    """[i][j]: -7..7, negative if lane i comes before lane j, 0 if they are equal: runnable lanes first, then live ones,
    by PC."""
    rank = [2 - lanes.live[i] - lanes.runs[i] for i in range(4)]
    order: list[list[Expr]] = [[total([])] * 4 for _ in range(4)]
    for j in range(4):
        for i in range(j):
            p, q = lanes.pcs[i], lanes.pcs[j]
            terms = [(rank[i] - rank[j], lambda n: 4 * _sign(n))]
            terms += [(p[4:8].value - q[4:8].value, lambda n: 2 * _sign(n)), (p[0:4].value - q[0:4].value, _sign)]
            order[i][j] = b.sum_of(f"order{i}{j}", terms)
            order[j][i] = -order[i][j]
    return order


def _pushed(order: Expr, *bits: Expr) -> Expr:
    """Zero where the lanes are equal and all bits are 1."""
    return order + (len(bits) - total(bits)) * FAR


def _if_none(b: Builder, name: str, count: Expr, bit: Expr, cases: Sequence[tuple[Expr, ...]]) -> Expr:
    """1 if the count is 0, the bit is 1, and one of the cases holds."""
    return b.sum_of(name, [(total([bit, *case]) - count, {1 + len(case): 1}) for case in cases], 0, 1)
