"""What one thread of a random kernel does by itself: operands of every kind, its own memory, shared cells, a lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.isa.mend import mended

from qgpu.isa import encoding
from qgpu.isa.program import Block

WORDS = (0, 1, 2, 3, 31, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFF8000, 0xFFFFFFFF)
DATA = range(1, 7)  # registers of data
COUNTERS = (7, 8, 9)  # of loops, by depth
SCRATCH, MEMBERS, OTHERS, OWN, OLD = 10, 11, 12, 13, 14
CELLS, SLOTS, LOCK = 64, 256, 128  # addresses: atomics' cells, 16 bytes a thread, a lock and what it guards
CELL_OPS = ("add", "xor", "or", "and", "min.s", "max.s", "min.u", "max.u")

# names of the pool's words, from parameter word 6 on
FULL, SLOT_BASE, SHARED_BASE, THREADS = 6, 7, 8, 9
POOL = 10

Fields = dict[str, int | str]


@dataclass
class Statements:
    """Blocks so far; a branch's target may be a label, which ``place`` puts before the next block."""

    rng: Random
    cta: tuple[int, int, int]
    exits: bool
    yields: bool
    blocks: list[Fields] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    parity: int = 0
    exited: bool = False
    circuits: bool = False  # only what circuits have: see ``mend``
    locked: bool = False  # one lock is enough: 32 threads take thousands of tokens to pass one

    @property
    def threads(self) -> int:
        return self.cta[0] * self.cta[1] * self.cta[2]

    def emit(self, **fields: int | str) -> None:
        self.blocks.append(mended(fields) if self.circuits else fields)

    def label(self) -> str:
        self.labels[name := f"l{len(self.labels)}"] = -1
        return name

    def place(self, name: str) -> None:
        self.labels[name] = len(self.blocks)

    # -- statements

    def compute(self) -> None:
        """One or two blocks of random operands and operations; the second may read the first's stage register."""
        rng = self.rng
        staged = -1
        for _ in range(rng.randrange(1, 3)):
            f: Fields = {
                "ra": rng.choice(DATA),
                "rb": rng.choice(DATA),
                "rc": rng.choice(DATA),
                "imm": rng.choice((rng.randrange(-40, 40), rng.randrange(-32768, 32768))),
                "pa": POOL + rng.randrange(6),
                "pq": POOL + rng.randrange(6),
                "y": rng.choice(encoding.CHOICES["y"]),
                "x": rng.choice([x for x in encoding.CHOICES["x"] if x != "activemask"]),
                "b_shift": rng.randrange(4),
                "a_sel": rng.choice(encoding.CHOICES["a_sel"]),
                "b_sel": rng.choice(encoding.CHOICES["b_sel"]),
                "alu_a": rng.choice(encoding.ALU_OPS),
                "alu_b": rng.choice(encoding.ALU_OPS),
                "m_op": rng.choice(encoding.M_OPS),
                "m1_sel": rng.choice(("zero", "A", "R", "B", "Q")),
                "m2_sel": rng.choice(("zero", "B", "I", "Q", "R", "A")),
                "c_sel": rng.choice(("zero", "C", "X", "I", "Q")),
                "d_b": rng.choice(DATA),
                "cond": rng.choice(encoding.CONDITIONS),
                "p_write": rng.randrange(2),
                "p_index": rng.randrange(4),
                "p_src": rng.choice(("a", "b")),
                "g_sel": rng.randrange(2),
                "g_index": rng.randrange(4),
                "g_neg": rng.randrange(2),
            }
            if rng.random() < 0.4:
                f["d_e"] = rng.choice([r for r in DATA if r != f["d_b"]])
            if staged >= 0:
                f |= rng.choice(({"m1_sel": "S1", "stage_1": staged}, {"c_sel": "S2", "stage_2": staged}))
                staged = -1
            elif not self.yields and rng.random() < 0.5:
                staged = rng.randrange(4)
                f |= {"stage_w": "R", "stage_wi": staged}
            self.emit(**f)

    def slot(self) -> None:
        """Store to or load from the thread's own 16 bytes, or a private atomic with its old value."""
        rng = self.rng
        size = rng.choice(("b8", "b16", "b32", "b64"))
        offset = rng.randrange(0, 16, {"b8": 1, "b16": 2, "b32": 4, "b64": 8}[size])
        guard = {"g_index": rng.randrange(4), "g_neg": rng.randrange(2)}
        here: Fields = {"sa_sel": "A", "ra": OWN, "sb_sel": "I", "imm": offset}
        kind = rng.randrange(3)
        if kind == 0:
            self.emit(
                **here,
                **guard,
                store=size,
                m1_sel="B",
                rb=rng.choice(DATA),
                rc=rng.choice(DATA),
                g_store=rng.randrange(2),
            )
        elif kind == 1:
            load = rng.choice({"b8": ("u8", "s8"), "b16": ("u16", "s16"), "b32": ("b32",), "b64": ("b64",)}[size])
            first, second = rng.sample(DATA, 2)
            # guarded lanes keep what they have: the late result is C there
            self.emit(
                a_sel="A",
                ra=OWN,
                b_sel="I",
                imm=offset,
                load=load,
                m1_sel="L",
                c_sel="C",
                rc=second,
                alu_b="first",
                d_b=second,
                d_e=first if load == "b64" else 0,
                e_sel="H",
                **guard,
                g_sel=1,
                g_load=rng.randrange(2),
            )
        else:
            op = rng.choice(encoding.CHOICES["atomic"][1:])
            size, offset = rng.choice((("b32", rng.randrange(0, 16, 4)), ("b64", rng.randrange(0, 16, 8))))
            here["imm"] = offset
            self.emit(
                **here,
                **guard,
                store=size,
                atomic=op,
                m1_sel="Q",
                pq=POOL + rng.randrange(6),
                rb=rng.choice(DATA),
                rc=rng.choice(DATA),
                a_sel="zero",
                b_sel="B",
                alu_a="second",
                d_o=rng.choice((0, OLD)),
                g_store=rng.randrange(2),
            )

    def atomic(self) -> None:
        """A commutative atomic on a cell that all threads share; each cell has one operation."""
        cell = self.rng.randrange(len(CELL_OPS))
        self.emit(
            sa_sel="zero",
            sb_sel="I",
            imm=CELLS + 4 * cell,
            store="b32",
            atomic=CELL_OPS[cell],
            m1_sel="A",
            ra=self.rng.choice(DATA),
            g_store=self.rng.randrange(2),
            g_index=self.rng.randrange(4),
        )

    def lock(self) -> None:
        """Spin until the lock is taken, change two words that it guards, and release it."""
        self.locked = True
        again = self.label()
        self.place(again)
        self.emit(sb_sel="I", imm=LOCK, store="b32", atomic="cas", m1_sel="Q", pq=FULL, d_o=OLD)
        self.emit(
            a_sel="A",
            ra=OLD,
            cond="ne",
            p_write=1,
            p_index=3,
            g_index=3,
            g_branch=1,
            branch="bra",
            target=again,
            **{"yield": 1},
        )
        self.emit(a_sel="I", imm=LOCK + 4, load="b32", d_e=SCRATCH, e_sel="L")
        self.emit(
            sb_sel="I",
            imm=LOCK + 4,
            store="b32",
            m1_sel="A",
            ra=SCRATCH,
            c_sel="C",
            rc=self.rng.choice(DATA),
            alu_b="add",
        )
        self.emit(sb_sel="I", imm=LOCK, store="b32", atomic="exch", d_e=SCRATCH)  # forgets what depends on the order

    def test(self, index: int) -> Fields:
        """Fields that write predicate ``index`` from random operands which differ between lanes."""
        rng = self.rng
        return {
            "p_write": 1,
            "p_index": index,
            "p_src": "a",
            "cond": rng.choice(encoding.CONDITIONS),
            **rng.choice(
                ({"a_sel": "A", "ra": rng.choice(DATA)}, {"a_sel": "X", "x": rng.choice(("tid.x", "laneid"))})
            ),
            **rng.choice(({"b_sel": "B", "rb": rng.choice(DATA)}, {"b_sel": "I", "imm": rng.randrange(-2, 34)})),
        }

    def finish(self) -> tuple[Block, ...]:
        self.emit(branch="exit")
        found = []
        for index, fields in enumerate(self.blocks):
            numbers = {}
            for name, value in fields.items():
                if name == "target":
                    value = self.labels[str(value)]
                numbers[name] = encoding.CHOICES[name].index(value) if isinstance(value, str) else value
            if numbers.get("branch") == encoding.CHOICES["branch"].index("bra"):
                numbers["back"] = int(numbers.get("target", 0) <= index)
            found.append(Block({name: value for name, value in numbers.items() if value}))
        return tuple(found)


def word(rng: Random) -> int:
    return rng.choice(WORDS) if rng.random() < 0.5 else rng.getrandbits(rng.randrange(1, 33))
