"""What a block stores: kept from its EXEC on, and at each MEM taken apart into gates, a byte of the row each.

An EXEC keeps which lanes store and how their addresses meet. At a MEM one level tells which lanes' bytes stay in its
row, the next one which byte of their data goes where. Data are kept as they are and read through those gates, so that
placing and merging costs no level.

All lanes of a block store the same number of bytes, and a store that is done is aligned: two lanes write a common byte
of a row only if their addresses are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of, equals
from qgpu.machine.parts import Bits

BYTES: Mapping[str, int] = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
"""Choice of the field ``store`` -> bytes."""

PAIRS = tuple(combinations(range(4), 2))
ROW_BITS = slice(3, 14)

PLACES = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 2), (3, 0), (3, 1), (3, 3))
"""(byte of a word, byte of the data that can go there)."""

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Kept:
    """Of the last EXEC, its own included. ``store[i]``: lane i stores or does its atomic. ``together[i, j]``: one MEM
    serves lanes i < j. ``hidden[i, j]``: lane j writes over lane i. ``offset[i]`` (3): the place of lane i's bytes in
    its row, in bytes, without the bits that the size makes zero. ``two``, ``two_up``, ``four_up``, ``eight``: the size
    in bytes is that, or at least that. ``atomic`` (4): as the block's field, and ``is_atomic``."""

    store: Bits
    together: Mapping[Pair, Expr]
    hidden: Mapping[Pair, Expr]
    offset: Sequence[Word]
    two: Expr
    two_up: Expr
    four_up: Expr
    eight: Expr
    atomic: Word
    is_atomic: Expr


def keep(
    b: Builder, execute: Expr, size: Mapping[int, Expr], atomic: Word, address: Sequence[Word], store: Bits
) -> Kept:  # fmt: skip
    """``size[n]``: 1 if the block stores n bytes; ``address[i]``: at least 14 bits; ``store[i]``: see ``Kept``. Two
    levels beside ``store``, none after it."""
    with b.scope("kept"):
        alone = b.nor("alone", atomic)  # not an atomic
        one_two, groups = (size[1] + size[2]).assume(0, 1), (slice(0, 3), slice(3, 9), slice(9, 14))
        together, hidden = [], []
        for i, j in PAIRS:
            same = [
                b.lookup(f"same{i}{j}.group{g}", address[i][part].value - address[j][part].value, equals(0))
                for g, part in enumerate(groups)
            ]
            together.append(b.and_(f"together{i}{j}", alone, *same[1:]))
            hidden.append(b.and_(f"hidden{i}{j}", alone, *same))
        offset = [
            Word("offset", (b.and_(f"offset{i}.bit0", a[0], size[1]), b.and_(f"offset{i}.bit1", a[1], one_two),
                            b.and_(f"offset{i}.bit2", a[2], ~size[8])))
            for i, a in enumerate(address)
        ]  # fmt: skip
        four_up = (size[4] + size[8]).assume(0, 1)
        flags = (size[2], (size[2] + four_up).assume(0, 1), four_up, size[8], ~alone)
        words = {
            "store": Word("store", tuple(store)), "together": Word("together", tuple(together)),
            "hidden": Word("hidden", tuple(hidden)), "flags": Word("flags", flags), "atomic": atomic,
            **{f"offset{i}": word for i, word in enumerate(offset)},
        }  # fmt: skip
        found = b.memory("row", [Field(k, v) for k, v in words.items()], Port((), (execute,)), Port(()))
        two, two_up, four_up, eight, is_atomic = found["flags"]
        return Kept(
            found["store"].bits, dict(zip(PAIRS, found["together"], strict=True)),
            dict(zip(PAIRS, found["hidden"], strict=True)), [found[f"offset{i}"] for i in range(4)],
            two, two_up, four_up, eight, found["atomic"], is_atomic,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Turn:
    """What the marker's MEM writes; all zero after other markers. ``data[i][w][place]``: byte place[1] of lane i's data
    goes to byte place[0] of word w (see PLACES), if the size lets it; ``high[i]``: the high word is lane
    i's second one. ``kept[p]``: byte p of the row stays as it was. ``changed[w]``: an atomic changes word w. ``first``,
    ``second``: the lane's own bytes begin in the low word or the high one. ``lane``: one-hot; ``number``: the same
    as a number, whatever the marker is.

    ``next`` (one-hot): the lane of the next MEM: after a MEM the first above its lane, else the first of all.
    """

    lane: Bits
    number: Word
    data: Sequence[Sequence[Mapping[Pair, Expr]]]
    high: Bits
    kept: Bits
    changed: Sequence[Expr]
    first: Expr
    second: Expr
    next: Bits


Terms = list[tuple[Expr, Table]]


def _unless(case: Sequence[Expr], against: Sequence[tuple[Expr, ...]]) -> Terms:
    """Terms that are 1 where all of ``case`` are 1 and no conjunction of ``against`` holds: by inclusion and
    exclusion."""
    terms: Terms = []
    for count in range(len(against) + 1):
        for some in combinations(against, count):
            bits = [*case, *(bit for conjunction in some for bit in conjunction)]
            terms.append((total(bits), {len(bits): (-1) ** count}))
    return terms


def turn(b: Builder, kept: Kept, memory: Expr, number: Word) -> Turn:
    """``memory``: the marker is a MEM; ``number``: of its lane. Two levels, and one beside ``kept``."""
    with b.scope("turn"):
        lane = w.decode(b, "lane", number, enable=(memory,))
        mine, issue = [], []
        any_lane = total(lane).assume(0, 1)
        for i in range(4):
            over = [(kept.store[j], kept.hidden[i, j]) for j in range(i + 1, 4)]
            terms = _unless([lane[i], kept.store[i]], over)
            for j in range(i):
                terms += _unless([lane[j], kept.together[j, i], kept.store[i]], over)
            mine.append(b.sum_of(f"mine{i}", terms, 0, 1))
            before = [(kept.store[j], kept.together[j, i]) for j in range(i)]
            issue.append(b.sum_of(f"issue{i}", _unless([kept.store[i]], before), 0, 1))
        first, second = (
            any_of(b, name, *((lane[i], kept.offset[i][2] if half else ~kept.offset[i][2]) for i in range(4)))
            for half, name in enumerate(("first", "second"))
        )
        data = [[_placed(b, f"lane{i}.word{half}", mine[i], kept, i, half) for half in range(2)] for i in range(4)]
        high = [b.and_(f"lane{i}.high", mine[i], kept.eight) for i in range(4)]
        changed = [
            any_of(b, f"changed{half}", *((lane[i], kept.is_atomic, kept.offset[i][2] if half else ~kept.offset[i][2])
                                          for i in range(4)), *([(kept.is_atomic, kept.eight, any_lane)] * half))
            for half in range(2)
        ]  # fmt: skip
        stays = [_stays(b, f"stays{p}", mine, kept, p) for p in range(8)]
        following = []
        for i in range(4):
            terms = [(total([~any_lane, kept.store[i], *(~kept.store[j] for j in range(i))]), {i + 2: 1})]
            for j in range(i):
                between = [~issue[k] for k in range(j + 1, i)]
                terms.append((total([lane[j], issue[i], *between]), {len(between) + 2: 1}))
            following.append(b.sum_of(f"next{i}", terms, 0, 1))
        return Turn(lane, number, data, high, stays, changed, first, second, following)


def _placed(b: Builder, name: str, mine: Expr, kept: Kept, lane: int, word: int) -> dict[Pair, Expr]:
    """The gates of one lane's data into one word; see ``Turn.data``."""
    a0, a1, a2 = kept.offset[lane]
    here = [mine, a2 if word else ~a2]
    # the size says the rest, see ``placed``
    needs = {(0, 0): [~a0, ~a1], (1, 0): [a0, ~a1], (2, 0): [~a0, a1], (3, 0): [a0, a1], (1, 1): [~a1], (3, 1): [a1],
             (2, 2): []}  # fmt: skip
    gates = {place: b.and_(f"{name}.to{place[0]}.from{place[1]}", *here, *more) for place, more in needs.items()}
    return {**gates, (3, 3): gates[2, 2]}


def _stays(b: Builder, name: str, mine: Bits, kept: Kept, byte: int) -> Expr:
    """1 if no lane of the turn writes a byte of the row. The size makes offset bits zero and says as much as they."""
    terms: Terms = [(total([]), {0: 1})]
    for i, offset in enumerate(kept.offset):
        sizes = (kept.two_up, kept.four_up, kept.eight)
        pairs = enumerate(zip(offset, sizes, strict=True))
        bits = [(place + n).assume(0, 1) if byte >> k & 1 else ~place for k, (place, n) in pairs]
        terms.append((total([mine[i], *bits]), {4: -1}))
    return b.sum_of(name, terms, 0, 1)


def placed(b: Builder, execute: Expr, kept: Kept, turn: Turn, data: Sequence[Word], row: Word) -> None:
    """Keeps the lanes' data from EXEC on, and adds what the turn takes of them to ``row`` (64 buses).

    A memory has what is read for the same sizes: reads of one lane into one byte then exclude each other by their
    ports, and their errors do not add up.
    """
    more, many = kept.two_up, kept.four_up
    when: dict[str, tuple[tuple[Expr, ...], tuple[Pair, ...]]] = {
        "all": ((), ((0, 0),)), "one": ((~more, ~many), ((1, 0), (3, 0))), "two.up": ((more,), ((1, 1),)),
        "two.down": ((~many,), ((2, 0),)), "two": ((more, ~many), ((3, 1),)), "four.up": ((many,), ((2, 2), (3, 3))),
    }  # fmt: skip
    for name, (size, places) in when.items():
        for place in places:
            fields, into = [], {}
            for half, (i, word) in product(range(2), enumerate(data)):
                low, key = 32 * half + 8 * place[0], f"word{half}.lane{i}"
                fields.append(Field(key, word[8 * place[1] : 8 * place[1] + 8], select=turn.data[i][half][place]))
                into[key] = row[low : low + 8]
            b.memory(f"data.{name}.to{place[0]}", fields, Port((), (execute,)), Port((), size), into=into)


def row_of_next(b: Builder, execute: Expr, turn: Turn, address: Sequence[Word]) -> Word:
    """The row (11) of the next MEM's lane."""
    fields = [Field(f"row{i}", address[i][ROW_BITS], select=turn.next[i]) for i in range(4)]
    found = b.bus_word("next.row", 11)
    b.memory("rows", fields, Port((), (execute,)), Port(()), into={field.name: found for field in fields})
    return found


def old_row(b: Builder, names: Expr, turn: Turn, data: Word, row: Word) -> Word:
    """Keeps the memory row from the MEM or READ (``names``) on, since its first DATA already overwrites it above. Adds
    the bytes that stay to ``row``, and returns the words that an atomic changes (64, zero elsewhere)."""
    fields = [Field(f"byte{p}", data[8 * p : 8 * p + 8], select=turn.kept[p]) for p in range(8)]
    into = {f"byte{p}": row[8 * p : 8 * p + 8] for p in range(8)}
    b.memory("old.kept", fields, Port((), (names,)), Port(()), into=into)
    words = [Field(f"word{n}", data[32 * n : 32 * n + 32], select=turn.changed[n]) for n in range(2)]
    found = b.memory("old.changed", words, Port((), (names,)), Port(()))
    return found["word0"] + found["word1"]
