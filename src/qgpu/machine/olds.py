"""What an atomic found: the old value that goes to a register, and whether a compare-and-swap does its swap.

Each lane has a word: C from the EXEC on, the old word from its own MEM on. So lanes that do no atomic send C again, and
C is there as the high word of stores and atomics of 64 bits, which have no old value to send.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of
from qgpu.machine.parts import Bits, Ranks
from qgpu.machine.results import DATA_BITS, Form, Halves, not_sign_extension
from qgpu.machine.stores import Kept, Turn

HALF = DATA_BITS


def old_values(
    b: Builder, execute: Expr, names: Expr, kept: Kept, turn: Turn, c: Sequence[Word], row: Word, active: Bits,
    ranks: Ranks, mine: Expr, halves: Halves, out: tuple[Word, Word], high_word: Word,
) -> Form:  # fmt: skip
    """``execute``, ``names``: 1 at EXEC, and at MEM or READ. ``c[lane]``: C at an EXEC, zero at MEM; ``row`` (64): the
    row that a MEM names. ``mine``: the token belongs to the old value's destination; there the selected halves are
    added to ``out`` (low and high, buses). Adds to ``high_word`` (32 buses) the turn's C. After the first level of
    ``turn`` one before the words are kept, and two after them."""
    with b.scope("old"):
        words = (turn.first, row[:32]), (turn.second, row[32:])
        word = b.mux("word", list(words))
        terms: list[tuple[Expr, Table]] = []
        for here, found in words:
            terms += b.gated(here, total(found.bits[HALF - 1 :]), lambda n: int(0 < n <= HALF))
        long_word = b.sum_of("long", terms, 0, 1)
        # how many of the active lanes' words have each bit, on one dim a bit
        counts = [b.bus(f"count.bit{k}", 0, 4) for k in range(32)]
        longs = []
        for i in range(4):
            with b.scope(f"lane{i}"):
                long_c = not_sign_extension(b, "long.c", c[i])
                own = any_of(b, "own", (execute,), (names, turn.lane[i], ~kept.eight))
                data = Word("data", tuple((p + q).assume(0, 1) for p, q in zip(c[i], word, strict=True)))
                long = Word("long", ((long_c + long_word).assume(0, 1),))
                low, high = data[:HALF], data[HALF:]
                b.memory(
                    "halves",
                    [Field("low", low, select=halves.low[i]), Field("high", high, select=halves.high[i])],
                    Port((), (own,)), Port((), (mine,)), into={"low": out[0], "high": out[1]},
                )  # fmt: skip
                found = b.memory("long", [Field("long", long, select=active[i])], Port((), (own,)), Port(()))
                longs.append(found["long"][0])
                _counted(b, data, active[i], counts, own)
                # one lane at most: as a number, its reads exclude each other by their ports
                winner = [total(turn.high[k] for k in range(4) if k >> n & 1).assume(0, 1) for n in range(2)]
                wins = (total(turn.high).assume(0, 1), *(bit if i >> n & 1 else ~bit for n, bit in enumerate(winner)))
                b.memory("high", [Field("word", data)], Port((), (own,)), Port((), wins), into={"word": high_word})
        lanes = (ranks.two + ranks.three * 2 + ranks.four * 3 + 1).assume(1, 4)
        terms = []
        for count in counts:
            terms += [(count, lambda n: int(n >= 1)), (count - lanes, lambda n: -int(n >= 0))]
        mixed, long = b.sum_of("mixed", terms, 0, 32), total(longs)
        many = (ranks.three + ranks.four).assume(0, 1)
        neither = [(many - long, {1: -1}), (many - mixed, {1: -1}), (many - long - mixed, {1: 1})]
        return Form(
            b.sum_of("is.long", [(mine, {1: 1}), (mine - long, {1: -1})], 0, 1),
            b.sum_of("is.mixed", [(mine, {1: 1}), (mine - mixed, {1: -1})], 0, 1),
            b.sum_of("wide", [(many, {1: 1}), *neither], 0, 1),
        )


def _counted(b: Builder, data: Word, select: Expr, counts: Sequence[Expr], own: Expr) -> None:
    """Adds a lane's word to the counts, a bit each."""
    fields = [Field(f"bit{k}", Word("bit", (bit,)), select=select) for k, bit in enumerate(data)]
    b.memory("counted", fields, Port((), (own,)), Port(()), into={f"bit{k}": bus for k, bus in enumerate(counts)})


def swap_hit(
    b: Builder, execute: Expr, names: Expr, kept: Kept, turn: Turn, early: Sequence[Word], high: Sequence[Word],
    row: Word,
) -> Expr:  # fmt: skip
    """1 if the memory holds what the MEM's lane compares with: its E, and in 64 bits register B above it. ``early``: E
    at the EXEC; ``high``: B at the MEM; ``row``: the row that a MEM names. Kept from the MEM on."""
    with b.scope("swap"):
        low = b.bus_word("low", 32)
        odd, upper = turn.number
        for pair in range(2):
            fields = [Field(f"lane{2 * pair}", early[2 * pair], select=~odd),
                      Field(f"lane{2 * pair + 1}", early[2 * pair + 1], select=odd)]  # fmt: skip
            read = Port((), (upper if pair else ~upper,))
            b.memory(f"lanes{pair}", fields, Port((), (execute,)), read, into={f.name: low for f in fields})
        above = b.mux("high", [(turn.lane[i], high[i]) for i in range(4)])
        same = {
            name: _equal(b, name, x, y)
            for name, x, y in (("first", low, row[:32]), ("second", low, row[32:]), ("above", above, row[32:]))
        }
        hit = any_of(
            b, "hit", (~kept.eight, ~turn.second, same["first"]), (~kept.eight, turn.second, same["second"]),
            (kept.eight, same["first"], same["above"]),
        )  # fmt: skip
        return b.memory("kept", [Field("hit", Word("hit", (hit,)))], Port((), (names,)), Port(()))["hit"][0]


def _equal(b: Builder, name: str, x: Word, y: Word) -> Expr:
    """Two levels. Groups are small: what reads many ports has to bear their errors."""
    parts = [slice(low, low + 4) for low in range(0, x.width, 4)]
    same = [b.lookup(f"{name}{g}", x[p].value - y[p].value, lambda n: int(n == 0)) for g, p in enumerate(parts)]
    return b.and_(name, *same)
