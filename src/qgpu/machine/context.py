"""Where a token stands: its own fields, the marker before it, its place after the marker, the block and quad that run.

Everything here is known in the first layers. A marker writes its fields into a row that every later token reads; the
last
EXEC has a row of its own, since it must survive VAL, MEM and MASK. How many DATA have come since the marker is told by
delays alone: a delay of three tokens on top of another reaches as far as VALW needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import encoding, tokens
from qgpu.machine.parts import Context, Ranks, TokenFields, Writes
from qgpu.machine.results import equals

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


def _positions(b: Builder, marker: Expr) -> list[Expr]:
    """1 at the d-th DATA after a marker, d = 0..8."""
    ago = [marker, *(b.delay(f"marker.ago{i}", marker, i) for i in (1, 2, 3))]
    at = [marker, *(b.and_(f"position{d}", ago[d], *(~ago[i] for i in range(d))) for d in (1, 2, 3))]
    quiet = [~ago[i] for i in range(3)]
    for d in range(4, POSITIONS + 1):
        before = b.delay(f"position{d - 3}.ago3", at[d - 3], 3)
        at.append(b.and_(f"position{d}", before, *quiet))
    return at


def _row_data(b: Builder, p: Sequence[Word], at: Sequence[Expr]) -> Word:
    """The memory row that the DATA since MEM stand for, so far (isa.values.row_of)."""

    def quarter(name: str, choices: Sequence[tuple[Expr, Word]], signs: Sequence[tuple[Expr, Expr]]) -> Word:
        taken = b.mux(name, choices)
        if not signs:
            return taken
        sign = b.sum_of(f"{name}.sign", [(total(pair), lambda n: int(n == 2)) for pair in signs], 0, 1)
        return Word(name, tuple((bit + sign).assume(0, 1) for bit in taken))

    low0 = quarter("row.word0", [(at[d], p[d - 1]) for d in (1, 2, 3, 4)], [])
    low1 = quarter("row.word1", [(at[3], p[1]), (at[4], p[2])], [(at[1], p[0][15]), (at[2], p[1][15])])
    high0 = quarter("row.word2", [(at[2], p[0]), (at[3], p[0]), (at[4], p[1])], [])
    high1 = quarter("row.word3", [(at[4], p[0])], [(at[2], p[0][15]), (at[3], p[0][15])])
    return _joined("row.data", [low0, low1, high0, high1])


def _ranks(b: Builder, active: Sequence[Expr]) -> Ranks:
    count = total(active)
    of = []
    for lane in range(4):
        below = total(active[:lane])
        found = [b.lookup(f"lane{lane}.rank{r}", below, lambda n, r=r: int(n == r)) for r in range(min(lane, 3) + 1)]  # type: ignore[misc]
        of.append(found + [constant(0)] * (4 - len(found)))
    two = b.lookup("count.is2", count, lambda n: int(n == 2))
    return Ranks(of, count, two, b.lookup("count.is4", count, lambda n: int(n == 4)))


def _lane_values(
    b: Builder, p: Sequence[Word], at: Sequence[Expr], wide: Expr, ranks: Ranks
) -> tuple[list[Word], list[Expr]]:
    """Each lane's reading of the DATA since EXEC, VAL or VALW so far (isa.values.lane_form), and whether a VALW's DATA
    completes that lane."""
    two, four = ranks.two, ranks.four
    even = total([at[2], at[4], at[6], at[8]]).assume(0, 1)
    values, complete = [], []
    for lane in range(4):
        rank = ranks.of[lane]
        short = ~wide

        def choose(name: str, *cases: tuple[Expr, ...]) -> Expr:
            return b.sum_of(name, [(total(c), equals(len(c))) for c in cases if _possible(c)], 0, 1)

        with b.scope(f"lane{lane}"):
            low = [
                choose(
                    "low0",
                    (short, at[1]),
                    (short, at[2], two, rank[1]),
                    (short, at[3], rank[2]),
                    (short, at[4], four, rank[3]),
                ),
                choose(
                    "low1",
                    (wide, even),
                    (short, at[2], ~two),
                    (short, at[2], two, rank[0]),
                    (short, at[3], rank[1]),
                    (short, at[4], four, rank[2]),
                    (short, at[4], two, rank[1]),
                ),  # fmt: skip
                choose("low2", (short, at[3], rank[0]), (short, at[4], four, rank[1])),
                choose("low3", (short, at[4], four, rank[0]), (short, at[4], two, rank[0])),
            ]
            high0 = choose("high0", (wide, even), (short, at[2], ~two), (short, at[4], two, rank[1]))
            high2 = choose("high2", (short, at[4], two, rank[0]))
            extend = [
                choose(
                    "sext0",
                    (short, at[1]),
                    (short, at[2], two, rank[1]),
                    (short, at[3], rank[2]),
                    (short, at[4], four, rank[3]),
                ),
                choose("sext1", (short, at[2], two, rank[0]), (short, at[3], rank[1]), (short, at[4], four, rank[2])),
                choose("sext2", (short, at[3], rank[0]), (short, at[4], four, rank[1])),
                choose("sext3", (short, at[4], four, rank[0])),
            ]
            complete.append(choose("complete", *((at[2 * r + 2], rank[r]) for r in range(4))))
            lower = b.mux("low", list(zip(low, p, strict=True)))
            upper = b.mux("high", [(high0, p[0]), (high2, p[2])])
            sign = b.sum_of("sign", [(e + q[15], lambda n: int(n == 2)) for e, q in zip(extend, p, strict=True)], 0, 1)
            values.append(lower + Word("high", tuple((bit + sign).assume(0, 1) for bit in upper)))
    return values, complete


def _possible(bits: Sequence[Expr]) -> bool:
    return all(bit.terms or bit.const for bit in bits)


def context(b: Builder) -> tuple[Context, Writes]:
    """The first part of the machine; see ``parts`` for what comes out."""
    t = token_fields(b)
    data = t.kind["DATA"]
    start = total([t.kind["GO"], t.kind["CTA"]]).assume(0, 1)
    with b.scope("context"):
        position = _positions(b, ~data)
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
        threads, exists = _threads(b, t, is_, marker, position, quad)
        active, leader = _mask(b, t, start, quad, exists)
        with b.scope("value"):
            ranks = _ranks(b, active)
            values, complete = _lane_values(b, payloads, position, is_["VALW"], ranks)
            enable = [
                b.sum_of(f"lane{i}.enable", [
                    (total([data, is_["EXEC"], active[i]]), lambda n: int(n == 3)),
                    (total([data, is_["VAL"], active[i]]), lambda n: int(n == 3)),
                    (total([data, is_["VALW"], active[i], complete[i]]), lambda n: int(n == 4)),
                ], 0, 1)
                for i in range(4)
            ]  # fmt: skip
            early_first = b.or_("first.early", rom["d_e"])
            register = b.mux("register", [
                ((is_["EXEC"], early_first), rom["d_e"]),
                ((is_["EXEC"], ~early_first), rom["d_b"]),
                (is_["VAL"], marker["register"]),
                (is_["VALW"], marker["register"]),
            ])  # fmt: skip
        row_data = _row_data(b, payloads, position)
        row_enable = b.and_("row.enable", data, is_["MEM"])
    found = Context(t, is_, marker["row"], marker["sub"], marker["register"], marker["block"], marker["quad"], position,
                    payloads, block, quad, rom, active, leader, exists, threads, cta, start, ranks)  # fmt: skip
    return found, Writes(values, enable, register, quad, row_data, marker["row"], row_enable)


def _cta(b: Builder, t: TokenFields, is_: Mapping[str, Expr], at: Sequence[Expr], p: Sequence[Word]) -> Word:
    """The CTA index row: x low, y, z, x high; zero from GO on, then what the DATA after CTA say."""
    low = b.mux("cta.x", [((is_["CTA"], at[d]), p[d - 1]) for d in (1, 2, 3, 4)])
    y = b.mux("cta.y", [((is_["CTA"], at[d]), p[d - 2]) for d in (2, 3, 4)])
    z = b.mux("cta.z", [((is_["CTA"], at[d]), p[d - 3]) for d in (3, 4)])
    top = b.mux("cta.x.high", [((is_["CTA"], at[4]), p[0])])
    index = _joined("index", [low, y, z, top])
    writes = b.sum_of(
        "cta.write", [(t.kind["GO"], lambda n: n), (t.kind["DATA"] + is_["CTA"], lambda n: int(n == 2))], 0, 1
    )
    return b.memory("cta", [Field("index", index)], Port((), (writes,)), Port(()))["index"]


def _rom(
    b: Builder, t: TokenFields, is_: Mapping[str, Expr], marker: Mapping[str, Word], at: Sequence[Expr], block: Word
) -> dict[str, Word]:
    """The last EXEC's block: field name -> word."""
    fields: dict[str, Word] = {}
    for part in range(tokens.PARTS):
        sub = marker["sub"]
        chosen = [sub[i] if part >> i & 1 else ~sub[i] for i in range(2)]
        write = w.Access(marker["block"], (is_["PROGRAM"], at[4], *chosen))
        bits = row64(b, f"rom.part{part}", t.payload, write, w.Access(block))
        for field in encoding.FIELDS:
            if field.part == part:
                fields[field.name] = bits[field.shift : field.shift + field.width].named(f"rom.{field.name}")
    return fields


def _threads(
    b: Builder, t: TokenFields, is_: Mapping[str, Expr], marker: Mapping[str, Word], at: Sequence[Expr], quad: Word
) -> tuple[list[Word], list[Expr]]:
    lanes: list[Word] = []
    for half in range(2):
        which = marker["sub"][0] if half else ~marker["sub"][0]
        row = row64(
            b,
            f"threads.half{half}",
            t.payload,
            w.Access(marker["quad"], (is_["THREADS"], at[4], which)),
            w.Access(quad),
        )
        lanes += [row[0:32], row[32:64]]
    return [lane[0:24] for lane in lanes], [lane[31] for lane in lanes]


def _mask(b: Builder, t: TokenFields, start: Expr, quad: Word, exists: Sequence[Expr]) -> tuple[list[Expr], Word]:
    """The quad's mask and leader; every lane that exists, led by lane 0, until its first MASK of this CTA."""
    row = w.register_file(
        b,
        "mask",
        [Field("lanes", t.mask, complement=True), Field("leader", t.leader)],
        w.Access(t.quad, (t.kind["MASK"],)),
        [w.Access(quad)],
        wipe=start,
    )[0]
    active = []
    for i in range(4):
        fresh = b.and_(f"mask.fresh{i}", exists[i], ~row["lanes"][i], ~row["lanes.not"][i])
        active.append((row["lanes"][i] + fresh).assume(0, 1))
    return active, row["leader"]
