"""Where a token stands: its own fields, the marker before it, its place after the marker, the block and quad that run.

Everything here is known in the first layers. A marker writes its fields into a row that every later token reads; the
last EXEC has a row of its own, since it must survive VAL, MEM and MASK. How many DATA have come since the marker is
told by delays alone: a delay of three tokens on top of another reaches as far as VALW needs. Rows of four DATA are
written with the third and again with the fourth: that there are three is known a layer before which it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import encoding, tokens
from qgpu.machine.parts import Context, Ranks, TokenFields, Writes
from qgpu.machine.readings import cta_index, destination, lane_values, lane_writes, row_data

MARKERS = ("EXEC", "MEM", "READ", "PROGRAM", "ALLOC", "PARAM", "THREADS", "VAL", "VALW", "GRID", "CTA")
POSITIONS = 8


def _field_tables() -> dict[str, dict[str, np.ndarray]]:  # type: ignore[type-arg]
    """kind -> field name -> value at each id of the vocabulary (zero at other kinds)."""
    tables: dict[str, dict[str, np.ndarray]] = {}  # type: ignore[type-arg]
    ids = np.arange(tokens.VOCABULARY)
    for kind in tokens.KINDS:
        inside = (ids >= kind.first) & (ids < kind.first + kind.count)
        index, found = np.where(inside, ids - kind.first, 0), {"": inside.astype(np.int64)}
        for name, size in reversed(kind.fields):
            found[name] = np.where(inside, index % size, 0)
            index = index // size
        tables[kind.name] = found
    return tables


def token_fields(b: Builder) -> TokenFields:
    """The embedding: one dim a field bit."""
    t = _field_tables()
    pairs = np.array(tokens.MASK_PAIRS)
    inside = t["MASK"][""]
    with b.scope("token"):
        kind = {name: b.token(f"is.{name.lower()}", table[""]) for name, table in t.items()}
        return TokenFields(
            kind,
            payload=b.token_word("payload", t["DATA"]["payload"], 16),
            block=b.token_word("block", t["EXEC"]["block"] + t["PROGRAM"]["block"], 8),
            quad=b.token_word("quad", t["EXEC"]["quad"] + t["MASK"]["quad"] + t["THREADS"]["quad"], 5),
            row=b.token_word("row", sum(t[k]["row"] for k in ("MEM", "READ", "ALLOC", "PARAM")), 11),  # type: ignore[arg-type]
            sub=b.token_word("sub", t["MEM"]["lane"] + t["PROGRAM"]["part"] + t["THREADS"]["half"], 2),
            register=b.token_word("register", t["VAL"]["register"] + t["VALW"]["register"], 4),
            mask=b.token_word("mask", inside * pairs[t["MASK"]["pair"], 0], 4),
            leader=b.token_word("leader", inside * pairs[t["MASK"]["pair"], 1], 2),
        )


def _joined(name: str, words: Sequence[Word]) -> Word:
    """Concatenation, first word lowest."""
    return Word(name, tuple(bit for word in words for bit in word))


def taps(payload: Word) -> list[Field]:
    """A 64-bit row from this DATA and the three before it."""
    return [Field(f"word{i}", payload, delay=3 - i) for i in range(4)]


def row64(b: Builder, name: str, payload: Word, write: w.Access, read: w.Access) -> Word:
    """A memory of 64-bit rows that four DATA fill at once, with one read port."""
    found = w.register_file(b, name, taps(payload), write, [read])[0]
    return _joined(name, [found[f"word{i}"] for i in range(4)])


@dataclass(frozen=True, eq=False)
class Positions:
    """``at[d]``: 1 at the d-th DATA after a marker, d = 0..8. ``third``: at the third DATA or a later one.
    ``since[d]``: bits, known before any level, that are all 1 at the d-th DATA, d = 1..3, or (d = 4) at the fourth or a
    later one."""

    at: list[Expr]
    third: Expr
    since: dict[int, tuple[Expr, ...]]


def _positions(b: Builder, marker: Expr) -> Positions:
    ago = [marker, *(b.delay(f"marker.ago{i}", marker, i) for i in (1, 2, 3))]
    since = {d: (ago[d], *(~bit for bit in ago[:d])) for d in (1, 2, 3)} | {4: tuple(~bit for bit in ago)}
    at = [marker, *(b.and_(f"position{d}", *since[d]) for d in (1, 2, 3))]
    third = b.and_("position3.on", *(~bit for bit in ago[:3]))
    for d in range(4, POSITIONS + 1):
        at.append(b.and_(f"position{d}", b.delay(f"position{d - 3}.ago3", at[d - 3], 3), third))
    return Positions(at, third, since)


def context(b: Builder) -> tuple[Context, Writes]:
    """The first part of the machine; see ``parts`` for what comes out."""
    t = token_fields(b)
    data = t.kind["DATA"]
    start = total([t.kind["GO"], t.kind["CTA"]]).assume(0, 1)
    with b.scope("context"):
        position = _positions(b, ~data)
        at = position.at
        payloads = [t.payload, *(b.delay(f"payload.ago{i}", t.payload, i) for i in (1, 2, 3))]
        fields = {"row": t.row, "sub": t.sub, "register": t.register, "block": t.block, "quad": t.quad}
        kinds = Word("kind", tuple(t.kind[name] for name in MARKERS))
        marker = b.memory(
            "marker", [Field("kind", kinds), *(Field(k, v) for k, v in fields.items())], Port((), (~data,)), Port(())
        )
        is_ = dict(zip(MARKERS, marker["kind"], strict=True))
        last = b.memory("exec", [Field("block", t.block), Field("quad", t.quad)], Port((), (t.kind["EXEC"],)), Port(()))
        block, quad = last["block"], last["quad"]
        cta = _cta(b, t, is_, position, payloads)
        rom = _rom(b, t, is_, marker, position, block)
        exists = _exists(b, t, is_, marker, position, quad)
        active, leader, ranks = _mask(b, t, start, quad, exists)
        with b.scope("value"):
            values = lane_values(b, payloads, at, is_["VALW"], ranks)
            carries = b.and_("carries", data, (is_["EXEC"] + is_["VAL"] + is_["VALW"]).assume(0, 1))
            enable = lane_writes(b, at, is_["VALW"], ranks, active, carries)
            register = destination(b, is_, marker["register"], rom["d_e"], rom["d_b"])
        row = row_data(b, payloads, at)
        row_enable = b.and_("row.enable", data, is_["MEM"])
    found = Context(t, is_, marker["row"], marker["sub"], marker["register"], marker["block"], marker["quad"], at,
                    position.third, payloads, block, quad, rom, active, leader, exists, cta, start, ranks)  # fmt: skip
    return found, Writes(values, enable, register, quad, row, marker["row"], row_enable)


def _cta(b: Builder, t: TokenFields, is_: Mapping[str, Expr], position: Positions, p: Sequence[Word]) -> Word:
    """The CTA index row: x low, y, z, x high; zero from GO on, then what the DATA after CTA say."""
    index = cta_index(b, p, {d: (is_["CTA"], *bits) for d, bits in position.since.items()})
    writes = b.sum_of(
        "cta.write", [(t.kind["GO"], lambda n: n), (t.kind["DATA"] + is_["CTA"], lambda n: int(n == 2))], 0, 1
    )
    return b.memory("cta", [Field("index", index)], Port((), (writes,)), Port(()))["index"]


def _rom(
    b: Builder, t: TokenFields, is_: Mapping[str, Expr], marker: Mapping[str, Word], position: Positions, block: Word
) -> dict[str, Word]:
    """The last EXEC's block: field name -> word. A part is written with its third DATA, and with its fourth again."""
    fields: dict[str, Word] = {}
    for part in range(tokens.PARTS):
        sub = marker["sub"]
        chosen = [sub[i] if part >> i & 1 else ~sub[i] for i in range(2)]
        write = w.Access(marker["block"], (is_["PROGRAM"], position.third, *chosen))
        bits = row64(b, f"rom.part{part}", t.payload, write, w.Access(block))
        for field in encoding.FIELDS:
            if field.part == part:
                fields[field.name] = bits[field.shift : field.shift + field.width].named(f"rom.{field.name}")
    return fields


def _exists(
    b: Builder, t: TokenFields, is_: Mapping[str, Expr], marker: Mapping[str, Word], position: Positions, quad: Word
) -> list[Expr]:
    """Which lanes of the quad exist: the top bits of its thread rows. The rest of them is read later."""
    lanes: list[Expr] = []
    for half in range(2):
        which = marker["sub"][0] if half else ~marker["sub"][0]
        top = t.payload[15:16]
        row = w.register_file(
            b, f"exists.half{half}", [Field("lane0", top, delay=2), Field("lane1", top)],
            w.Access(marker["quad"], (is_["THREADS"], position.third, which)), [w.Access(quad)],
        )[0]  # fmt: skip
        lanes += [row["lane0"][0], row["lane1"][0]]
    return lanes


def _mask(
    b: Builder, t: TokenFields, start: Expr, quad: Word, exists: Sequence[Expr]
) -> tuple[list[Expr], Word, Ranks]:
    """The quad's mask, leader and ranks; every lane that exists, led by lane 0, until its first MASK of this CTA.

    The row holds the mask and its complement, and neither before that MASK: so one level sees mask, existing lanes and
    ranks at once. Lanes that exist have no gap, so that their ranks are their numbers.
    """
    row = w.register_file(
        b,
        "mask",
        [Field("lanes", t.mask, complement=True), Field("leader", t.leader)],
        w.Access(t.quad, (t.kind["MASK"],)),
        [w.Access(quad)],
        wipe=start,
    )[0]
    lanes, without = row["lanes"], row["lanes.not"]
    fresh = (~lanes[0] - without[0]).assume(0, 1)
    active, of = [], []
    for i in range(4):
        active.append(b.lookup(f"active{i}", lanes[i] * 2 + exists[i] - without[i], lambda n: int(n > 0)))
        place = lanes[i] * 4 + total(lanes[:i])
        of.append([
            b.sum_of(f"lane{i}.rank{r}", [
                (place, {4 + r: 1}),
                *([(fresh + exists[i], {2: 1})] if r == i else []),
            ], 0, 1) if r <= i else constant(0)
            for r in range(4)
        ])  # fmt: skip
    counts = {}
    for k in (2, 3, 4):
        all_there = [fresh, exists[k - 1], *(~bit for bit in exists[k : k + 1])]
        terms = [(total(lanes), {k: 1}), (total(all_there), {len(all_there): 1})]
        counts[k] = b.sum_of(f"count.is{k}", terms, 0, 1)
    return active, row["leader"], Ranks(of, counts[2], counts[3], counts[4])
