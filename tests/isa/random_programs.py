"""Random structured kernels whose result does not depend on the schedule: the same for every order of threads.

Threads share memory only through barriers, commutative atomics and locks; registers only through shuffles and ballots
whose sources are there. Everything else, divergence, loops, exits and what a block computes, is random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.isa.random_statements import (
    CELLS,
    COUNTERS,
    DATA,
    FULL,
    LOCK,
    MEMBERS,
    OTHERS,
    OWN,
    POOL,
    SCRATCH,
    SHARED_BASE,
    SLOT_BASE,
    SLOTS,
    THREADS,
    Fields,
    Statements,
    word,
)  # fmt: skip

from qgpu.isa import tokens
from qgpu.isa.program import Launch, Program


@dataclass
class Kernel(Statements):
    """Control flow, and statements that threads do together."""

    def branch_over(self, depth: int) -> None:
        other, end, index = self.label(), self.label(), self.rng.randrange(3)
        two = self.rng.random() < 0.6
        self.emit(**self.test(index), branch="bra", g_branch=1, g_index=index, target=other if two else end)
        self.body(depth + 1)
        if two:
            self.emit(branch="bra", target=end)
            self.place(other)
            self.body(depth + 1)
        self.place(end)

    def loop(self, depth: int) -> None:
        """1 to 4 trips that differ between lanes, with breaks and continues."""
        rng, counter = self.rng, COUNTERS[depth]
        top, latch, end = self.label(), self.label(), self.label()
        source: Fields = (
            {"m1_sel": "A", "ra": rng.choice(DATA)}
            if rng.random() < 0.5
            else {"c_sel": "X", "x": "laneid", "alu_b": "or"}
        )
        self.emit(**source, d_b=counter)
        self.emit(a_sel="A", ra=counter, b_sel="I", imm=3, alu_a="and", d_e=counter)
        self.place(top)
        self.body(depth + 1)
        if rng.random() < 0.4:
            self.emit(**self.test(0), branch="bra", g_branch=1, target=rng.choice((latch, end)))
            self.body(depth + 1)
        self.place(latch)
        self.emit(m1_sel="A", ra=counter, c_sel="I", imm=-1, alu_b="add", d_b=counter)
        # compares the decremented counter: signed, so that 0 trips end as well
        self.emit(
            a_sel="A",
            ra=counter,
            cond="ge.s",
            p_write=1,
            p_index=3,
            g_index=3,
            g_branch=1,
            branch="bra",
            target=top,
            **{"yield": int(self.yields and rng.random() < 0.5)},
        )
        self.place(end)

    def leave(self) -> None:
        """Some threads exit; never lane 0 of a warp, which shuffles ask."""
        self.exited = True
        self.emit(
            **{
                **self.test(1),
                "a_sel": "X",
                "x": "laneid",
                "cond": self.rng.choice(("eq", "gt.s")),
                "b_sel": "I",
                "imm": self.rng.randrange(1, 34),
            },
            branch="exit",
            g_branch=1,
            g_index=1,
        )

    def exchange_shared(self) -> None:
        """Write a word of shared memory, barrier, read a neighbour's, barrier."""
        self.emit(a_sel="P", pa=SHARED_BASE, b_sel="B", rb=15, b_shift=2, d_e=SCRATCH)
        self.emit(sa_sel="A", ra=SCRATCH, store="b32", m1_sel="B", rb=self.rng.choice(DATA), branch="bar")
        distance = self.rng.randrange(self.threads)
        self.emit(a_sel="A", ra=15, b_sel="I", imm=distance, d_e=SCRATCH)
        self.emit(
            a_sel="A",
            ra=SCRATCH,
            b_sel="P",
            pa=THREADS,
            cond="ge.u",
            p_write=1,
            p_index=2,
            g_index=2,
            g_branch=1,
            branch="bra",
            target=(wrap := self.label()),
        )
        self.emit(branch="bra", target=(read := self.label()))
        self.place(wrap)
        self.emit(a_sel="A", ra=SCRATCH, b_sel="P", pa=THREADS, alu_a="sub", d_e=SCRATCH)
        self.place(read)
        self.emit(
            a_sel="P",
            pa=SHARED_BASE,
            b_sel="B",
            rb=SCRATCH,
            b_shift=2,
            load="b32",
            d_e=self.rng.choice(DATA),
            e_sel="L",
            branch="bar",
        )

    def flip(self) -> int:
        self.parity ^= 1
        return self.parity

    def full(self) -> bool:
        """Whether every lane of every warp is there, so that any may be asked."""
        return not self.exited and self.threads % 32 == 0

    def shuffle(self) -> None:
        rng, parity = self.rng, self.flip()
        self.emit(m1_sel="A", ra=rng.choice(DATA), pq=FULL, branch="gather", publish_parity=parity)
        target = rng.choice(DATA)
        f: Fields = {"collect_parity": parity, "m1_sel": "V", "d_b": target}
        if self.full():
            f |= {
                "collect": rng.choice(("shfl.idx", "shfl.up", "shfl.down", "shfl.bfly")),
                "b_sel": "B",
                "rb": rng.choice(DATA),
                "imm": rng.choice((0, 31, 0x101F, 0x1C1F, 0x1800, 0x1E1F, rng.randrange(0x2000))),
                "p_write": 1,
                "p_src": "v",
                "p_index": rng.randrange(4),
            }
        else:
            f |= {"collect": "shfl.idx", "b_sel": "zero", "imm": 31}
        self.emit(**f)

    def reduce(self) -> None:
        """A butterfly in which each block collects, adds and publishes again."""
        value, parity = self.rng.choice(DATA), self.flip()
        self.emit(m1_sel="A", ra=value, pq=FULL, branch="gather", publish_parity=parity)
        for step in range(5):
            f: Fields = {
                "collect": "shfl.bfly",
                "b_sel": "P",
                "imm": 31,
                "pa": POOL + 6 + step,
                "m1_sel": "V",
                "c_sel": "C",
                "rc": value,
                "alu_b": "add",
                "d_b": value,
                "collect_parity": parity,
                "pq": FULL,
            }
            if step < 4:
                parity = self.flip()
                f |= {"branch": "gather", "publish_parity": parity}
            self.emit(**f)

    def ballot(self) -> None:
        parity = self.flip()
        self.emit(
            pq=FULL,
            g_index=self.rng.randrange(4),
            g_neg=self.rng.randrange(2),
            branch="gather",
            publish_parity=parity,
        )
        self.emit(collect="ballot", collect_parity=parity, c_sel="V", alu_b="second", d_b=self.rng.choice(DATA))

    def parts(self) -> None:
        """Both sides of a branch gather among themselves, their members found by ballots."""
        for register, negated in ((MEMBERS, 0), (OTHERS, 1)):
            parity = self.flip()
            self.emit(
                **(self.test(1) if not negated else {}),
                pq=FULL,
                g_index=1,
                g_neg=negated,
                branch="gather",
                publish_parity=parity,
            )
            self.emit(collect="ballot", collect_parity=parity, c_sel="V", alu_b="second", d_b=register)
        other, end = self.label(), self.label()
        self.emit(branch="bra", g_branch=1, g_index=1, g_neg=1, target=other)
        for register, last in ((MEMBERS, False), (OTHERS, True)):
            if self.rng.random() < 0.5:
                self.body(2)
            parity = self.flip()
            # the lowest member speaks
            self.emit(a_sel="A", ra=register, alu_a="brev", d_e=SCRATCH)
            self.emit(a_sel="A", ra=SCRATCH, alu_a="clz", d_e=SCRATCH)
            self.emit(
                m1_sel="B", rb=(value := self.rng.choice(DATA)), d_b=value, ra=register, member="A", branch="gather",
                publish_parity=parity,
            )  # fmt: skip
            self.emit(
                collect="shfl.idx",
                collect_parity=parity,
                b_sel="B",
                rb=SCRATCH,
                imm=31,
                m1_sel="V",
                d_b=self.rng.choice(DATA),
            )
            if not last:
                self.emit(branch="bra", target=end)
                self.place(other)
        self.place(end)

    # -- nesting

    def body(self, depth: int) -> None:
        """Statements that need no other thread."""
        choices: list[Callable[[], None]] = [self.compute, self.compute, self.slot, self.atomic]
        if depth < 3:
            choices.append(lambda: self.branch_over(depth))
        if depth < 2:
            choices.append(lambda: self.loop(depth))
        if self.yields and depth < 2 and not self.locked:
            choices.append(self.lock)
        if self.exits and self.rng.random() < 0.3 and depth < 2:
            choices.append(self.leave)
        for _ in range(self.rng.randrange(1, 3)):
            self.rng.choice(choices)()

    def top(self) -> None:
        """Statements at which all threads of a warp or CTA that are left meet."""
        choices = [self.shuffle, self.ballot, self.exchange_shared]
        if not self.exits:  # nobody leaves between a ballot and those it names
            choices.append(self.parts)
        if self.full():
            choices.append(self.reduce)
        self.rng.choice(choices)()


def launch(rng: Random, circuits: bool = False) -> Launch:
    """A random kernel on a random CTA, full and partial warps alike; ``circuits``: of blocks that circuits have."""
    yields = rng.random() < 0.4
    small, large = (
        ((1, 1, 1), (3, 1, 1), (5, 2, 1), (13, 1, 1)),
        ((8, 2, 2), (32, 1, 1), (33, 1, 1), (32, 2, 1), (37, 1, 1)),
    )
    cta = rng.choice(small if yields else small + large)
    grid = rng.choice(((1, 1, 1), (1, 1, 1), (2, 1, 1), (1, 2, 1)))
    kernel = Kernel(rng, cta, exits=rng.random() < 0.5, yields=yields, circuits=circuits)
    # r15: thread number in the CTA; OWN: its slot. tid.x + tid.y * ntid.x + tid.z * ntid.x * ntid.y
    kernel.emit(a_sel="X", x="tid.z", m1_sel="R", m2_sel="Q", pq=1, m_op="mul.lo", d_b=15)
    kernel.emit(m1_sel="A", ra=15, c_sel="X", x="tid.y", alu_b="add", d_b=15)
    kernel.emit(m1_sel="A", ra=15, m2_sel="Q", pq=0, m_op="mul.lo", c_sel="X", x="tid.x", alu_b="add", d_b=15)
    kernel.emit(m1_sel="A", ra=15, m2_sel="I", imm=4, m_op="shl", c_sel="Q", pq=SLOT_BASE, alu_b="add", d_b=OWN)
    for register in DATA:
        kernel.emit(
            a_sel="P",
            pa=POOL + register - 1,
            x=rng.choice(("tid.x", "laneid")),
            b_sel="X",
            alu_a=rng.choice(("add", "xor", "first")),
            d_e=register,
        )
    for index in range(4):
        kernel.emit(**kernel.test(index))
    for _ in range(rng.randrange(2, 5)):
        kernel.body(0)
        if rng.random() < 0.7:
            kernel.top()
    program = Program(
        "random",
        kernel.finish(),
        0,
        (
            0xFFFFFFFF,
            SLOTS,
            8 * tokens.SHARED_FIRST_ROW,
            kernel.threads,
            *(word(rng) for _ in range(6)),
            16,
            8,
            4,
            2,
            1,
        ),
    )
    end = SLOTS + 16 * kernel.threads
    rows = {row: (word(rng), word(rng)) for row in (*range(CELLS // 8, LOCK // 8), *range(SLOTS // 8, end // 8))}
    allocated = {row: (1 << 64) - 1 for row in (*range(1, -(-end // 64)), *range(192, 256))}
    return Launch(program, grid, cta, (), rows, allocated)
