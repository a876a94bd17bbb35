"""Random IR functions inside what the machine can run, with branches, loops, guards, early exits, loads and atomics.

Threads share nothing but atomic sums, so that no order of execution shows. Every thread i has four words of input at
``in + 16 * i`` and four of output at ``out + 16 * i``.
"""

import random

from qgpu.cuda.ir import (
    Address,
    Atomic,
    BasicBlock,
    Branch,
    Compute,
    Const,
    Exit,
    Function,
    Guard,
    Instruction,
    Jump,
    KernelParameter,
    Load,
    Param,
    Reg,
    Special,
    Store,
    Switch,
    Type,
)
from qgpu.cuda.verify import verify

IN, OUT, SUM, N = (Param(4 * k, Type.B32) for k in range(4))
PARAMETERS = tuple(KernelParameter(name, "u32", 4 * k, 4, 4, k < 3) for k, name in enumerate(("in", "out", "sum", "n")))
BINARY = ("add", "sub", "mul", "and", "or", "xor", "min.s", "max.s", "min.u", "max.u")
UNARY = ("mov", "neg", "not", "abs", "sext8", "sext16", "zext8", "zext16")
NARROW = ("add", "sub", "mul", "and", "or", "xor", "min.s", "max.u")
CONDITIONS = ("eq", "ne", *(f"{name}.{sign}" for name in ("lt", "le", "gt", "ge") for sign in "su"))
SPECIALS = ("tid.x", "tid.y", "ctaid.x", "ntid.x", "nctaid.x", "laneid")
CONSTANTS = (0, 1, 2, 3, 4, 7, 8, 255, 0x7FFF, 0x8000, 0xFFFF, 0x12345, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF8000)


class Maker:
    """``function``: the one of this seed. ``words``: how many 32-bit registers it plays with."""

    def __init__(self, seed: int, words: int = 6, flags: int = 2) -> None:
        self.random = random.Random(seed)
        self.words = [Reg(f"w{k}", Type.B32) for k in range(words)]
        self.halves = [Reg(f"h{k}", Type.B16) for k in range(2)]
        self.flags = [Reg(f"f{k}", Type.PRED) for k in range(flags)]
        self.index = Reg("i", Type.B32)
        self.counters = 0
        self.blocks: list[BasicBlock] = []
        self.label, self.items = "entry", []
        self.start()
        self.body(self.random.randrange(2, 6), 0)
        self.end()
        self.close(Exit())
        self.function = verify(Function("random", PARAMETERS, (), tuple(self.blocks)))

    # ---- Blocks ----

    def emit(self, item: Instruction) -> None:
        self.items.append(item)

    def close(self, terminator: Instruction, label: str = "") -> None:
        self.blocks.append(BasicBlock(self.label, tuple(self.items), terminator))
        self.label, self.items = label, []

    def fresh(self) -> str:
        self.counters += 1
        return f"l{self.counters}"

    # ---- Pieces ----

    def start(self) -> None:
        block, here = Reg("block", Type.B32), Reg("here", Type.B32)
        self.emit(Compute("mul", Type.B32, block, (Special("ctaid.x"), Special("ntid.x"))))
        self.emit(Compute("add", Type.B32, here, (block, Special("tid.x"))))
        self.emit(Compute("mov", Type.B32, self.index, (here,)))
        out_of_range = Reg("outside", Type.PRED)
        self.emit(Compute("ge.s", Type.B32, out_of_range, (self.index, N)))
        rest, leave = self.fresh(), self.fresh()
        self.close(Branch(out_of_range, False, leave, rest), leave)
        self.close(Exit(), rest)
        for position, word in enumerate(self.words):
            if position < 4:
                self.emit(Load((word,), "global", Address(*self.place(IN, position)), 4))
            else:
                self.emit(Compute("mov", Type.B32, word, (Const(position, Type.B32),)))
        for register in (*self.halves, *self.flags):
            self.emit(Compute("mov", register.type, register, (Const(1, register.type),)))

    def place(self, base, position):
        """base + 16 * i + 4 * position, as operands of an address."""
        row = Reg(f"row{self.random.randrange(3)}", Type.B32)
        self.emit(Compute("shl", Type.B32, row, (self.index, Const(4, Type.B32))))
        return base, row, 0, 4 * position

    def end(self) -> None:
        for position, word in enumerate(self.words[:4]):
            self.emit(Store((word,), "global", Address(*self.place(OUT, position)), 4))

    def word(self):
        choice = self.random.random()
        if choice < 0.65:
            return self.random.choice(self.words)
        if choice < 0.8:
            return Const(self.random.choice(CONSTANTS), Type.B32)
        if choice < 0.9:
            return Special(self.random.choice(SPECIALS))
        return self.random.choice([N, self.index])

    def guard(self):
        guarded = self.random.random() < 0.12
        return Guard(self.random.choice(self.flags), self.random.random() < 0.5) if guarded else None

    def body(self, count: int, depth: int) -> None:
        for _ in range(count):
            kind = self.random.random()
            if kind < 0.62:
                self.computation()
            elif kind < 0.72:
                self.memory()
            elif depth < 3 and kind < 0.82:
                self.condition(depth)
            elif depth < 2 and kind < 0.9:
                self.loop(depth)
            elif kind < 0.92:
                self.leave()
            elif kind < 0.94 and depth < 3:
                self.switch(depth)
            else:
                self.computation()

    def computation(self) -> None:
        pick, guard = self.random.choice, self.guard()
        flag = pick(self.flags)
        match self.random.randrange(13):
            case 0 | 1 | 2 | 3:
                self.emit(Compute(pick(BINARY), Type.B32, pick(self.words), (self.word(), self.word()), guard=guard))
            case 4:
                self.emit(Compute(pick(UNARY), Type.B32, pick(self.words), (self.word(),), guard=guard))
            case 5:
                amount = Const(self.random.choice((0, 1, 2, 3, 4, 13, 31, 32)), Type.B32)
                self.emit(Compute("shl", Type.B32, pick(self.words), (self.word(), amount), guard=guard))
            case 6:
                self.emit(Compute("select", Type.B32, pick(self.words), (self.word(), self.word(), flag), guard=guard))
            case 7 | 8:
                self.emit(Compute(pick(CONDITIONS), Type.B32, flag, (self.word(), self.word()), guard=guard))
            case 9:
                op, sources = pick([("mov", 1), ("not", 1), ("and", 2), ("or", 2), ("xor", 2)])
                self.emit(Compute(op, Type.PRED, flag, tuple(pick(self.flags) for _ in range(sources)), guard=guard))
            case 10:
                self.emit(Compute(pick(NARROW), Type.B16, pick(self.halves), (pick(self.halves), pick(self.halves))))
            case 11:
                self.emit(Compute("zext16", Type.B16, pick(self.halves), (self.word(),)))
            case 12:
                self.emit(Compute(pick(("zext16", "sext16")), Type.B32, pick(self.words), (pick(self.halves),)))

    def memory(self) -> None:
        kind, position, guard = self.random.randrange(5), self.random.randrange(4), self.guard()
        if kind < 2:
            dest, base = self.random.choice(self.words), self.random.choice((IN, OUT))
            self.emit(Load((dest,), "global", Address(*self.place(base, position)), 4, guard=guard))
        elif kind == 2:
            self.emit(Store((self.word(),), "global", Address(*self.place(OUT, position)), 4, guard=guard))
        else:
            which = Reg("which", Type.B32)
            self.emit(Compute("and", Type.B32, which, (self.word(), Const(1, Type.B32))))
            self.emit(Atomic("add", None, "global", Address(SUM, which, 2), 4, (self.word(),), guard=guard))

    def test(self) -> Reg:
        flag = Reg(f"test{self.fresh()}", Type.PRED)
        self.emit(Compute(self.random.choice(CONDITIONS), Type.B32, flag, (self.word(), self.word())))
        if self.random.random() < 0.3:
            both, other = Reg(f"both{self.fresh()}", Type.PRED), self.random.choice(self.flags)
            self.emit(Compute(self.random.choice(("and", "or")), Type.PRED, both, (flag, other)))
            return both
        return flag

    def condition(self, depth: int) -> None:
        then, otherwise, after = self.fresh(), self.fresh(), self.fresh()
        two = self.random.random() < 0.5
        self.close(Branch(self.test(), self.random.random() < 0.3, then, otherwise if two else after), then)
        self.body(self.random.randrange(1, 4), depth + 1)
        self.close(Jump(after), otherwise if two else after)
        if two:
            self.body(self.random.randrange(1, 4), depth + 1)
            self.close(Jump(after), after)

    def switch(self, depth: int) -> None:
        index, targets, after = Reg(f"index{self.fresh()}", Type.B32), [self.fresh() for _ in range(3)], self.fresh()
        self.emit(Compute("and", Type.B32, index, (self.word(), Const(1, Type.B32))))
        self.close(Switch(index, tuple(targets)), targets[0])
        for target in (*targets[1:], after):
            self.body(1, depth + 1)
            self.close(Jump(after), target)

    def loop(self, depth: int) -> None:
        """At most three trips, a lane's own number of them."""
        counter, left = Reg(f"count{self.fresh()}", Type.B32), Reg(f"left{self.fresh()}", Type.PRED)
        head, after = self.fresh(), self.fresh()
        self.emit(Compute("and", Type.B32, counter, (self.word(), Const(self.random.choice((1, 3)), Type.B32))))
        self.close(Jump(head), head)
        self.body(self.random.randrange(1, 4), depth + 1)
        if self.random.random() < 0.3:
            rest = self.fresh()
            self.close(Branch(self.test(), False, after, rest), rest)
        self.emit(Compute("add", Type.B32, counter, (counter, Const(0xFFFFFFFF, Type.B32))))
        self.emit(Compute("gt.s", Type.B32, left, (counter, Const(0, Type.B32))))
        self.close(Branch(left, False, head, after), after)

    def leave(self) -> None:
        gone, rest = self.fresh(), self.fresh()
        self.close(Branch(self.test(), False, gone, rest), gone)
        self.close(Exit(), rest)
