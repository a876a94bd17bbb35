"""How an IR operation becomes nodes: directly where the machine has it, else spelled out in operations it has.

One row an operation. What a row needs is asked of the table of what the circuits implement, so that a new circuit
needs no change here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qgpu.cuda.ir import Compute, Type
from qgpu.cuda.lower_nodes import Graph, Node
from qgpu.cuda.translation import Refused

Table = Mapping[str, frozenset[str]]

NARROW = "64-bit arithmetic is not there yet: use int or unsigned"
SHIFT = "shifts to the right are not there yet: compare and subtract, or count in a loop"
DIVIDE = "division is not there yet: count in a loop, or keep a reciprocal's table in an array"

HINTS: dict[str, str] = {
    "shr": SHIFT,
    "div": DIVIDE,
    "rem": DIVIDE,
    "shl": "shifts by amounts known only at run time are not there yet: shift by a constant, or multiply",
    "mulhi": "the high half of a product is not there yet",
    "funnel": "funnel shifts are not there yet",
    "extract": "bit fields are not there yet: use & with a constant",
    "insert": "bit fields are not there yet: use & and | with constants",
    "permute": "byte permutes are not there yet",
    "mulwide": NARROW,
    "pack": NARROW,
    "high": NARROW,
}
"""By the operation's first word."""


TOP_BITS = 4
"""Right shifts that leave no more bits than this are done by comparisons where there is no shifter."""


@dataclass(frozen=True)
class Rules:
    """Builds nodes in ``graph`` out of what ``table`` says is there."""

    graph: Graph
    table: Table

    def has(self, field: str, *names: str) -> bool:
        return all(name in self.table[field] for name in names)

    def compute(self, item: Compute, sources: Sequence[Node]) -> Node:
        """The value of an operation whose sources are not predicates. Raises Refused with a hint."""
        if Type.B64 in (item.type, item.dest.type):
            raise Refused(NARROW)
        bits = int(item.type)
        row = _ROWS.get(item.op)
        found = None if row is None else row(self, bits, *sources)
        if found is None:
            raise Refused(HINTS.get(item.op.split(".")[0], "this operation is not there yet"))
        return found if item.dest.type is Type.B32 else self.cut(found, int(item.dest.type))

    def condition(self, op: str, bits: int, a: Node, b: Node) -> Node:
        if bits < 32 and op.endswith(".s"):
            a, b = self.extend(a, bits), self.extend(b, bits)
        return self.graph.compare(op, a, b)

    # ---- Small building stones ----

    def carry(self, a: Node, b: Node) -> Node:
        """Of a + b, as a number."""
        if self.has("alu_a", "addc"):
            return self.alu("addc", a, b)
        one, zero = self.const(1), self.const(0)
        return self.graph.select(one, zero, self.graph.compare("lt.u", self.alu("add", a, b), a))

    def alu(self, op: str, a: Node, b: Node) -> Node:
        return self.graph.alu(op, a, b)

    def const(self, value: int) -> Node:
        return self.graph.const(value)

    def cut(self, a: Node, bits: int) -> Node:
        return self.alu("and", a, self.const((1 << bits) - 1)) if bits < 32 else a

    def extend(self, a: Node, bits: int) -> Node:
        """The low bits sign-extended: flip the sign bit and take it away again, where there is no operation for it."""
        if bits >= 32:
            return a
        op = {8: "byte.s", 16: "half.s"}[bits]
        if self.has("alu_a", op):
            return self.alu(op, a, self.const(0))
        sign = self.const(1 << bits - 1)
        return self.alu("sub", self.alu("xor", self.cut(a, bits), sign), sign)

    def bounded(self, op: str, bits: int, a: Node, b: Node) -> Node:
        """min and max: the operation itself, or a comparison and a select."""
        kind, sign = op.split(".")
        if bits < 32 and sign == "s":
            a, b = self.extend(a, bits), self.extend(b, bits)
        if self.has("alu_b", op):
            return self.alu(op, a, b)
        return self.graph.select(a, b, self.graph.compare(f"{'le' if kind == 'min' else 'ge'}.{sign}", a, b))

    def absolute(self, bits: int, a: Node) -> Node:
        a = self.extend(a, bits)
        zero = self.const(0)
        if self.has("alu_a", "sad.s"):
            return self.alu("sad.s", a, zero)
        return self.graph.select(a, self.alu("sub", zero, a), self.graph.compare("ge.s", a, zero))

    def shift_left(self, bits: int, a: Node, amount: Node) -> Node | None:
        if amount.kind == "const":
            return self.cut(self.graph.shift_left(a, amount.value), bits)
        return self.cut(self.graph.m("shl", a, amount), bits) if self.has("m_op", "shl") else None

    def shift_right(self, op: str, bits: int, a: Node, amount: Node) -> Node | None:
        if op == "shr.s":
            a = self.extend(a, bits)
        if a.kind == amount.kind == "const" or self.has("m_op", op):
            return self.graph.m(op, a, amount)
        high = {"shr.u": "mulhi.u", "shr.s": "mulhi.s"}[op]
        if amount.kind == "const" and self.has("m_op", high):
            if amount.value == 0:
                return a
            if op == "shr.u":
                return self.const(0) if amount.value > 31 else self.graph.m(high, a, self.const(1 << 32 - amount.value))
            # By 1 the factor would be -2^31, as a signed number: then the quotient comes out negated.
            count = min(amount.value, 31)
            product = self.graph.m(high, a, self.const(1 << 32 - count))
            return product if count > 1 else None
        if amount.kind == "const" and amount.value >= 32 - TOP_BITS:
            return self.top_bits(op == "shr.s", a, 32 - min(amount.value, 31 if op == "shr.s" else 32))
        return None

    def top_bits(self, signed: bool, a: Node, count: int) -> Node:
        """The highest bits as a number, by comparisons with zero: compilers write a sign test as a shift by 31."""
        zero = self.const(0)
        total = zero
        for place in range(count):
            value = 1 << count - 1 - place
            negative = self.graph.compare("lt.s", self.graph.shift_left(a, place), zero)
            bit = self.const(-value if signed and place == 0 else value)
            total = self.alu("add", total, self.graph.select(bit, zero, negative))
        return total

    def field(self, position: Node, length: Node) -> Node:
        """Place and length of a bit field as bfe and place take them."""
        if position.kind == length.kind == "const":
            return self.const(position.value & 0xFF | (length.value & 0xFF) << 8)
        ends = (self.alu("and", x, self.const(0xFF)) for x in (position, length))
        start, count = ends
        return self.alu("or", self.graph.shift_left(count, 8), start)

    def extract(self, op: str, bits: int, a: Node, position: Node, length: Node) -> Node | None:
        """A bit field: by its own operation, or shifted down and cut; a signed one is shifted to the top and back."""
        if bits == 16 and op == "bfe.s":
            a = self.extend(a, bits)
        if self.has("alu_a", op):
            return self.alu(op, a, self.field(position, length))
        if op == "bfe.s":
            return self.cut(self._signed_field(a, position, length), bits) if self.has("m_op", "shl", "shr.s") else None
        if position.kind != "const" or length.kind != "const":
            if not self.has("m_op", "shl", "shr.u"):
                return None
            moved = self.graph.m("shr.u", a, self.alu("and", position, self.const(0xFF)))
            return self.alu("and", moved, self._ones(length))
        start, count = position.value & 0xFF, length.value & 0xFF
        moved = a if start == 0 else self.shift_right("shr.u", bits, a, self.const(start))
        return None if moved is None else self.cut(moved, min(count, 32)) if count else self.const(0)

    def _ones(self, length: Node) -> Node:
        """As many ones as the low 8 bits of ``length`` say: a shift by 32 or more leaves nothing, so that all are."""
        count = self.alu("and", length, self.const(0xFF))
        return self.alu("sub", self.graph.m("shl", self.const(1), count), self.const(1))

    def _signed_field(self, a: Node, position: Node, length: Node) -> Node:
        """Bits past the top count as the sign, as they do after a signed shift; then the field's own sign fills."""
        start, count = (self.alu("and", x, self.const(0xFF)) for x in (position, length))
        moved = self.graph.m("shr.s", a, start)
        room = self.alu("sub", self.const(32), self.bounded("min.u", 32, count, self.const(32)))
        return self.graph.m("shr.s", self.graph.m("shl", moved, room), room)

    def insert(self, bits: int, a: Node, into: Node, position: Node, length: Node) -> Node | None:
        if position.kind == length.kind == "const":
            start, count = position.value & 0xFF, length.value & 0xFF
            mask = self.const((((1 << count) - 1) << start) & ((1 << bits) - 1))
            moved = self.graph.shift_left(a, start)
        elif self.has("alu_a", "place") and self.has("m_op", "shl"):
            mask = self.alu("place", self.const(-1), self.field(position, length))
            moved = self.graph.m("shl", a, self.alu("and", position, self.const(0xFF)))
        elif self.has("m_op", "shl"):
            start = self.alu("and", position, self.const(0xFF))
            mask, moved = self.graph.m("shl", self._ones(length), start), self.graph.m("shl", a, start)
        else:
            return None
        return self.alu("xor", self.alu("and", self.alu("xor", moved, into), mask), into)

    def find_shift(self, op: str, a: Node) -> Node | None:
        """How far left to shift to bring the highest bit that is found to the top; all ones if there is none."""
        if not self.has("alu_a", op, "clz"):
            return None
        if op == "bfind.u":
            none = self.graph.compare("eq", a, self.const(0))
            return self.graph.select(self.const(-1), self.alu("clz", a, self.const(0)), none)
        place = self.alu(op, a, self.const(0))
        return self.graph.select(
            place, self.alu("sub", self.const(31), place), self.graph.compare("lt.s", place, self.const(0))
        )

    def permute(self, low: Node, high: Node, selector: Node) -> Node | None:
        """Bytes of two words: the machine picks from one, so that each is asked and a mask says which counts."""
        if not self.has("alu_a", "prmt"):
            return None
        if selector.kind == "const":
            nibbles = [selector.value >> 4 * k & 15 for k in range(4)]
            for amount in (8, 16, 24):
                if nibbles == [amount // 8 + k for k in range(4)] and self.has("m_op", "shf.r.wrap"):
                    return self.graph.funnel("shf.r.wrap", low, high, self.const(amount))
            mask = sum(0xFF << 8 * k for k in range(4) if nibbles[k] & 4)
            if low is high:
                mask = 0
            return self.mixed(
                self.alu("prmt", low, selector),
                self.alu("prmt", high, selector),
                self.const(mask),
                mask in (0, 0xFFFFFFFF),
            )
        if low is high:
            return self.alu("prmt", low, selector)
        # The third bit of each nibble, brought to the top of the byte that it stands for, fills that byte.
        spread = self.alu("and", selector, self.const(0x4444))
        for distance, kept in ((8, 0x00440044), (4, 0x04040404)):
            both = self.alu("or", self.graph.shift_left(spread, distance), spread)
            spread = self.alu("and", both, self.const(kept))
        mask_node = self.alu("prmt", self.graph.shift_left(spread, 5), self.const(0xBA98))
        return self.mixed(self.alu("prmt", low, selector), self.alu("prmt", high, selector), mask_node, False)

    def mixed(self, low: Node, high: Node, mask: Node, whole: bool) -> Node:
        """high where the mask is 1, low elsewhere."""
        if whole:
            return high if mask.value else low
        if high.kind == "const" and high.value == 0:
            return self.alu("and", low, self.alu("xor", mask, self.const(-1)))
        return self.alu("xor", self.alu("and", self.alu("xor", low, high), mask), low)

    def logic3(self, a: Node, b: Node, c: Node, table: Node) -> Node | None:
        """Any function of three bits, as a choice by c between two functions of a and b: f0 ^ ((f0 ^ f1) & c)."""
        if table.kind != "const":
            return None
        rows = [(table.value >> row) & 1 for row in range(8)]  # row: a << 2 | b << 1 | c
        f0, f1 = (tuple(rows[2 * k + low] for k in range(4)) for low in (0, 1))
        constant = {(0, 0, 0, 0): 0, (1, 1, 1, 1): 1}
        if f0 in constant and f1 not in constant:
            other, op = self.logic2(f1, a, b), ("and", "orn")[constant[f0]]
            if op == "and" or self.has("alu_b", op):
                return self.alu(op, other, c)
        if f1 in constant and f0 not in constant:
            other, op = self.logic2(f0, a, b), ("andn", "or")[constant[f1]]
            if op == "or" or self.has("alu_b", op):
                return self.alu(op, other, c)
        both = tuple(x ^ y for x, y in zip(f0, f1, strict=True))
        return self.alu("xor", self.logic2(f0, a, b), self.alu("and", self.logic2(both, a, b), c))

    def logic2(self, rows: tuple[int, ...], a: Node, b: Node) -> Node:
        """Any function of two bits from its values at (a, b) = 00, 01, 10, 11."""
        if rows[0]:
            return self.alu("xor", self.logic2(tuple(1 - row for row in rows), a, b), self.const(-1))
        if rows[1:] in ((0, 1, 0), (1, 0, 0)) and self.has("alu_b", "andn"):
            return self.alu("andn", a, b) if rows[2] else self.alu("andn", b, a)
        match rows[1:]:
            case (0, 0, 0):
                return self.const(0)
            case (0, 0, 1):
                return self.alu("and", a, b)
            case (0, 1, 0):
                return self.alu("xor", a, self.alu("and", a, b))
            case (0, 1, 1):
                return a
            case (1, 0, 0):
                return self.alu("xor", b, self.alu("and", a, b))
            case (1, 0, 1):
                return b
            case (1, 1, 0):
                return self.alu("xor", a, b)
        return self.alu("or", a, b)


def _direct(op: str) -> Callable[..., Node]:
    return lambda rules, bits, a, b: rules.cut(rules.alu(op, a, b), bits)


def _single(op: str, correction: int = 0) -> Callable[..., Node | None]:
    """An operation on one operand, where the machine has it. ``correction``: to be added for one of 16 bits."""

    def build(rules: Rules, bits: int, a: Node) -> Node | None:
        if not rules.has("alu_a", op):
            return None
        return rules.alu("add", rules.alu(op, a, rules.const(0)), rules.const(correction if bits == 16 else 0))

    return build


def _multiply(op: str) -> Callable[..., Node | None]:
    def build(rules: Rules, bits: int, a: Node, b: Node) -> Node | None:
        if op != "mul.lo" and bits < 32:
            factors = [rules.extend(x, bits) if op.endswith("s") else x for x in (a, b)]
            return rules.shift_right("shr.u", 32, rules.graph.m("mul.lo", *factors), rules.const(16))
        return rules.cut(rules.graph.m(op, a, b), bits) if rules.has("m_op", op) else None

    return build


def _funnel(op: str) -> Callable[..., Node | None]:
    def build(rules: Rules, bits: int, low: Node, high: Node, n: Node) -> Node | None:
        return rules.graph.funnel(op, low, high, n) if rules.has("m_op", op) else None

    return build


def _wide(signed: bool) -> Callable[..., Node | None]:
    def build(rules: Rules, bits: int, a: Node, b: Node) -> Node | None:
        if bits > 16:
            return None
        return rules.graph.m("mul.lo", *((rules.extend(x, bits) if signed else x) for x in (a, b)))

    return build


def _reverse(rules: Rules, bits: int, a: Node) -> Node | None:
    return rules.alu("brev", a, rules.const(0)) if bits == 32 and rules.has("alu_a", "brev") else None


_ROWS: dict[str, Callable[..., Node | None]] = {
    "mov": lambda rules, bits, a: a,
    "add": _direct("add"),
    "carry": lambda rules, bits, a, b: rules.carry(a, b),
    "sub": _direct("sub"),
    "and": _direct("and"),
    "or": _direct("or"),
    "xor": _direct("xor"),
    "mul": _multiply("mul.lo"),
    "mulhi.s": _multiply("mulhi.s"),
    "mulhi.u": _multiply("mulhi.u"),
    "mulwide.s": _wide(True),
    "mulwide.u": _wide(False),
    "neg": lambda rules, bits, a: rules.cut(rules.alu("sub", rules.const(0), a), bits),
    "not": lambda rules, bits, a: rules.cut(rules.alu("xor", a, rules.const(-1)), bits),
    "abs": lambda rules, bits, a: rules.cut(rules.absolute(bits, a), bits),
    **{
        f"{kind}.{sign}": lambda rules, bits, a, b, op=f"{kind}.{sign}": rules.cut(rules.bounded(op, bits, a, b), bits)
        for kind in ("min", "max")
        for sign in "su"
    },
    "shl": lambda rules, bits, a, n: rules.shift_left(bits, a, n),
    "shr.s": lambda rules, bits, a, n: rules.shift_right("shr.s", bits, a, n),
    "shr.u": lambda rules, bits, a, n: rules.shift_right("shr.u", bits, a, n),
    "extract.u": lambda rules, bits, a, p, n: rules.extract("bfe.u", bits, a, p, n),
    "extract.s": lambda rules, bits, a, p, n: rules.extract("bfe.s", bits, a, p, n),
    "insert": lambda rules, bits, a, into, p, n: rules.insert(bits, a, into, p, n),
    "logic3": lambda rules, bits, a, b, c, table: rules.logic3(a, b, c, table),
    "popc": _single("popc"),
    "clz": _single("clz", -16),
    "reverse": _reverse,
    "find.u": _single("bfind.u"),
    "find.s": lambda rules, bits, a: _single("bfind.s")(rules, bits, rules.extend(a, bits)),
    "findshift.u": lambda rules, bits, a: rules.find_shift("bfind.u", a) if bits == 32 else None,
    "findshift.s": lambda rules, bits, a: rules.find_shift("bfind.s", a) if bits == 32 else None,
    **{f"funnel.{op}": _funnel(f"shf.{op}") for op in ("l.wrap", "l.clamp", "r.wrap", "r.clamp")},
    "permute": lambda rules, bits, low, high, selector: rules.permute(low, high, selector),
    "pack": lambda rules, bits, low, high: rules.alu("or", rules.graph.shift_left(high, bits), rules.cut(low, bits)),
    "high": lambda rules, bits, a: rules.shift_right("shr.u", 32, a, rules.const(bits)),
    **{f"sext{n}": lambda rules, bits, a, n=n: rules.cut(rules.extend(a, n), bits) for n in (8, 16, 32)},
    **{f"zext{n}": lambda rules, bits, a, n=n: rules.cut(rules.cut(a, n), bits) for n in (8, 16, 32)},
}
