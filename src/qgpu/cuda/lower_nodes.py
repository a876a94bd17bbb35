"""Expression graphs: what a stretch of straight code computes, with no order but that of data.

A node is a value: a constant, a parameter word, a special, what a register held at the start, a load, or an operation
of the machine on other nodes. Equal values are one node, but for loads. Machine blocks are cut from trees of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from qgpu.cuda.ir import Reg
from qgpu.isa.operations import ALU, CONDITION, MASK, UNIT_M

COMMUTED: dict[str, str] = {
    **{op: op for op in ("add", "and", "or", "xor", "min.s", "max.s", "min.u", "max.u", "sad.s", "sad.u", "addc")},
    "sub": "rsub",
    "rsub": "sub",
    "first": "second",
    "second": "first",
}
"""ALU operation -> the one that gives the same with its operands in the other order."""


def _pairs(*pairs: str) -> dict[str, str]:
    """Both ways, for signed and unsigned."""
    both = [pair.split() for pair in pairs] + [pair.split()[::-1] for pair in pairs]
    return {f"{a}.{sign}": f"{b}.{sign}" for sign in "su" for a, b in both}


SWAPPED: dict[str, str] = {"eq": "eq", "ne": "ne", **_pairs("lt gt", "le ge")}
"""Condition -> the one that says the same of the operands in the other order."""
INVERTED: dict[str, str] = {"eq": "ne", "ne": "eq", **_pairs("lt ge", "le gt")}
"""Condition -> its opposite."""
NEUTRAL = frozenset({"add", "sub", "or", "xor"})
"""ALU operations whose second operand changes nothing if it is 0."""
MULTIPLIES = frozenset({"mul.lo", "mulhi.s", "mulhi.u"})
SHIFTS = frozenset({"shl", "shr.s", "shr.u", "shf.l.wrap", "shf.l.clamp", "shf.r.wrap", "shf.r.clamp"})
SMALL_SHIFT = 3


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A value. ``kind``: const, word, x, y, reg, preg (leaves), alu, m, load, high, select, cmp, copy, made, v, range.

    ``name``: the operation, condition or load width, or the special's name. ``value``: the constant, the parameter
    word's number, or 1 for a load that must be aligned to 16 bytes. ``negated``: of a select's or guarded load's
    predicate. ``uniform``: the same in all lanes of a CTA. ``register``: of a leaf, or of what an effect has made. A
    load's arguments: address, and the predicate that allows it to fault, if it has one. high: the upper word of a load
    of 64 bits. copy: its argument in a register of its own. v and range: what a block collects from the warp.
    ``order``: of making. ``size``: of the tree below, itself included.
    """

    kind: str
    name: str = ""
    args: tuple[Node, ...] = ()
    value: int = 0
    negated: bool = False
    register: Reg | None = None
    uniform: bool = False
    number: int = 0
    order: int = 0
    size: int = 1

    @property
    def leaf(self) -> bool:
        return self.kind in LEAVES

    @property
    def test(self) -> bool:
        """Whether it is a predicate that a block can write."""
        return self.kind in ("cmp", "range")

    def __repr__(self) -> str:
        match self.kind:
            case "const":
                return str(self.value if self.value < 1 << 31 else self.value - (1 << 32))
            case "word":
                return f"w{self.value}"
            case "reg" | "preg" | "made":
                return str(self.register)
            case "x" | "y":
                return self.name
        return f"{self.kind}.{self.name}({', '.join(map(repr, self.args))})"


LEAVES = frozenset({"const", "word", "x", "y", "reg", "preg", "made"})


@dataclass
class Graph:
    """Makes nodes, folding constants and giving equal values one node. ``shifts``: there are shifts to the left."""

    shifts: bool = False
    nodes: dict[object, Node] = field(default_factory=dict)
    loads: int = 0

    def _make(self, node: Node) -> Node:
        key = (node.kind, node.name, node.args, node.value, node.negated, node.register, node.number)
        if key not in self.nodes:
            size = 1 + sum(arg.size for arg in node.args)
            self.nodes[key] = replace(node, order=len(self.nodes), size=size)
        return self.nodes[key]

    def const(self, value: int) -> Node:
        return self._make(Node("const", value=value & MASK, uniform=True))

    def word(self, number: int) -> Node:
        return self._make(Node("word", value=number, uniform=True))

    def special(self, kind: str, name: str) -> Node:
        return self._make(Node(kind, name, uniform=kind == "y"))

    def leaf(self, register: Reg, predicate: bool, uniform: bool) -> Node:
        return self._make(Node("preg" if predicate else "reg", register=register, uniform=uniform))

    def alu(self, op: str, a: Node, b: Node) -> Node:
        if a.kind == b.kind == "const":
            return self.const(ALU[op](a.value, b.value))
        if a.kind == "const" and op in COMMUTED:
            op, a, b = COMMUTED[op], b, a
        if b.kind == "const":
            if op == "sub":
                return self.alu("add", a, self.const(-b.value))
            if (op in ("add", "or", "xor") and b.value == 0) or (op == "and" and b.value == MASK):
                return a
            if op == "and" and b.value == 0:
                return b
            if op in ("add", "and", "or", "xor") and a.kind == "alu" and a.name == op and a.args[1].kind == "const":
                return self.alu(op, a.args[0], self.const(ALU[op](a.args[1].value, b.value)))
        for value, choice in ((a, b), (b, a)) if op in NEUTRAL and op != "sub" else ((a, b),):
            if op in NEUTRAL and choice.kind == "select" and any(way.kind == "const" for way in choice.args[:2]):
                chosen = self.unless_zero(op, value, choice)
                if chosen is not None:
                    return chosen
        return self._make(Node("alu", op, (a, b), uniform=a.uniform and b.uniform))

    def unless_zero(self, op: str, value: Node, choice: Node) -> Node | None:
        """value op (p ? x : 0) as p ? value op x : value, which unit M, ALU B and a guard do at once."""
        yes, no, predicate = choice.args
        if no.kind == "const" and no.value == 0:
            return self.select(self.alu(op, value, yes), value, predicate, choice.negated)
        if yes.kind == "const" and yes.value == 0:
            return self.select(value, self.alu(op, value, no), predicate, choice.negated)
        return None

    def m(self, op: str, a: Node, b: Node) -> Node:
        if a.kind == b.kind == "const":
            return self.const(UNIT_M[op](a.value, b.value, 0))
        if op in MULTIPLIES and a.kind == "const":
            a, b = b, a
        if op == "mul.lo" and b.kind == "const":
            if b.value == 0:
                return b
            if b.value == 1:
                return a
            if a.kind == "m" and a.name == op and a.args[1].kind == "const":
                return self.m(op, a.args[0], self.const(a.args[1].value * b.value))
            if self.shifts and b.value & (b.value - 1) == 0:
                return self.shift_left(a, b.value.bit_length() - 1)
        if op in SHIFTS and b.kind == "const" and b.value == 0:
            return a
        return self._make(Node("m", op, (a, b), uniform=a.uniform and b.uniform))

    def shift_left(self, a: Node, amount: int) -> Node:
        if amount > 31:
            return self.const(0)
        if not self.shifts:
            return self.m("mul.lo", a, self.const(1 << amount))
        if a.kind == "m" and a.name == "shl" and a.args[1].kind == "const":
            return self.shift_left(a.args[0], a.args[1].value + amount)
        return self.m("shl", a, self.const(amount))

    def funnel(self, op: str, low: Node, high: Node, amount: Node) -> Node:
        """The high word comes as a register of its own."""
        if low.kind == high.kind == amount.kind == "const":
            return self.const(UNIT_M[op](low.value, amount.value, high.value))
        uniform = low.uniform and high.uniform and amount.uniform
        return self._make(Node("m", op, (low, amount, self.as_register(high)), uniform=uniform))

    def as_register(self, a: Node) -> Node:
        """The value as something that can be in a register: 0 is register 0."""
        if a.kind in ("word", "x", "y") or (a.kind == "const" and a.value):
            return self._make(Node("copy", "", (a,), uniform=a.uniform))
        return a

    def own_copy(self, a: Node) -> Node:
        """The value in a register that nothing else counts on."""
        self.loads += 1
        return self._make(Node("copy", "own", (a,), uniform=a.uniform, number=self.loads))

    def made(self, register: Reg) -> Node:
        """What an effect leaves in a register."""
        return self._make(Node("made", "", register=register))

    def collected(self, op: str) -> Node:
        return self._make(Node("v", op, uniform=op == "ballot"))

    def in_range(self) -> Node:
        return self._make(Node("range"))

    def compare(self, condition: str, a: Node, b: Node) -> Node:
        if a.kind == b.kind == "const":
            return self.truth(CONDITION[condition](a.value, b.value))
        return self._make(Node("cmp", condition, (a, b), uniform=a.uniform and b.uniform))

    def truth(self, value: bool) -> Node:
        zero = self.const(0)
        return self._make(Node("cmp", "eq" if value else "ne", (zero, zero), uniform=True))

    def select(self, a: Node, b: Node, predicate: Node, negated: bool = False) -> Node:
        if a is b:
            return a
        known = truth_of(predicate)
        if known is not None:
            return a if known != negated else b
        uniform = a.uniform and b.uniform and predicate.uniform
        return self._make(Node("select", "", (a, b, predicate), negated=negated, uniform=uniform))

    def load(self, width: str, address: Node, guard: Node | None, negated: bool, wide: bool = False) -> Node:
        """A load of its own: two loads of one address are two nodes."""
        self.loads += 1
        args = (address,) if guard is None else (address, guard)
        return self._make(
            Node("load", width, args, int(wide), negated=negated, uniform=address.uniform, number=self.loads)
        )

    def high(self, load: Node) -> Node:
        """The upper word of a load of 64 bits."""
        return self._make(Node("high", "", (load,), uniform=load.uniform))

    def invert(self, predicate: Node) -> tuple[Node, bool]:
        """The opposite of a predicate as (node, negated)."""
        if predicate.kind == "cmp":
            return self.compare(INVERTED[predicate.name], *predicate.args), False
        return predicate, True


def truth_of(predicate: Node) -> bool | None:
    """The value of a predicate that is a constant."""
    if predicate.kind == "cmp" and predicate.args[0] is predicate.args[1]:
        return predicate.name[:2] in ("eq", "le", "ge")
    return None


def small_shift(node: Node) -> tuple[Node, int] | None:
    """(x, n) if the node is x << n with n in 1..3, which ALU A's second operand can be as it comes."""
    if node.kind == "m" and node.name == "shl" and node.args[1].kind == "const":
        return (node.args[0], node.args[1].value) if node.args[1].value <= SMALL_SHIFT else None
    if node.kind == "m" and node.name == "mul.lo" and node.args[1].kind == "const":
        amount = node.args[1].value.bit_length() - 1
        if node.args[1].value == 1 << amount and 1 <= amount <= SMALL_SHIFT:
            return node.args[0], amount
    return None
