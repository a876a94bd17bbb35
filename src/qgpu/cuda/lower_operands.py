"""What operands of instructions are in a region's graph of values: words, predicates, addresses, guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qgpu.cuda.ir import Address, Const, Instruction, Operand, Param, Reg, Special, Type, VariableAddress
from qgpu.cuda.lower_nodes import Graph, Node
from qgpu.cuda.lower_rules import NARROW, Rules, Table
from qgpu.cuda.lower_work import Work
from qgpu.cuda.translation import Refused
from qgpu.isa import program

Refuse = Callable[[Instruction, str], None]
Truth = tuple[Node, bool]
"""A predicate's value: where the node holds; where it does not, if the second is set."""

_X = {"tid.x", "tid.y", "tid.z", "laneid", "warpid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt",
      "lanemask_ge"}  # fmt: skip
_WORDS = {f"{name}.{axis}": words[k] for name, words in (("ntid", program.NTID), ("nctaid", program.NCTAID))
          for k, axis in enumerate("xyz")}  # fmt: skip


@dataclass
class Operands:
    """``uniform``: registers that hold the same in all lanes. ``refuse`` takes what the machine cannot run.
    ``addresses``: of variables. ``predicated``: the last side exit becomes a guard of what follows it.
    ``old_values``: atomics give them."""

    work: Work
    table: Table
    uniform: frozenset[Reg]
    refuse: Refuse
    addresses: Mapping[str, int]
    exits: frozenset[str]
    predicated: bool = False
    old_values: bool = True
    values: dict[Reg, Node] = field(default_factory=dict)
    truths: dict[Reg, Truth] = field(default_factory=dict)
    pairs: dict[Reg, tuple[Node, Node]] = field(default_factory=dict)
    guard_all: Truth | None = None

    @property
    def graph(self) -> Graph:
        return self.work.graph

    @property
    def wide(self) -> bool:
        """Whether the machine has 64-bit memory accesses."""
        return "b64" in self.table["store"]

    def operand(self, operand: Operand) -> Node:
        match operand:
            case Reg(type=Type.B64) | Const(type=Type.B64) | Param(type=Type.B64):
                raise Refused(NARROW)
            case Reg():
                return self.values.setdefault(operand, self.graph.leaf(operand, False, operand in self.uniform))
            case Const(value=value):
                return self.graph.const(value)
            case Param(offset=offset, type=type_):
                if type_ is not Type.B32 and offset % 4:
                    raise Refused("parameters of 8 and 16 bits are not there yet: make the parameter an int")
                word = self.graph.word(program.FIRST_PARAM + offset // 4)
                return Rules(self.graph, self.table).cut(word, int(type_))
            case Special(name=name) if name in _WORDS:
                return self.graph.word(_WORDS[name])
            case Special(name=name) if name.startswith("ctaid"):
                return self.graph.special("y", name)
            case Special(name=name) if name in _X and name in self.table["x"]:
                return self.graph.special("x", name)
            case VariableAddress(name=name, offset=offset) if name in self.addresses:
                return self.graph.const(self.addresses[name] + offset)
            case VariableAddress():
                raise Refused("variables outside of functions are not there yet: pass an array to the kernel")
        raise Refused(f"{operand} is not there yet")

    def truth(self, operand: Operand) -> Truth:
        if isinstance(operand, Const):
            return self.graph.truth(bool(operand.value)), False
        assert isinstance(operand, Reg)
        return self.truths.setdefault(operand, (self.graph.leaf(operand, True, operand in self.uniform), False))

    def number(self, truth: Truth) -> Node:
        """A predicate as 1 or 0."""
        return self.graph.select(self.graph.const(1), self.graph.const(0), *truth)

    def test(self, number: Node) -> Truth:
        return self.graph.compare("ne", number, self.graph.const(0)), False

    def guard(self, item: Instruction) -> Truth | None:
        """What a memory access needs to be done."""
        own = None
        if item.guard is not None:
            node, negated = self.truth(item.guard.register)
            own = node, negated ^ item.guard.negated
        if own is not None and self.guard_all is not None:
            self.work.two_guards = True
            return self.test(self.graph.select(self.number(own), self.graph.const(0), *self.guard_all))
        return own or self.guard_all

    def address(self, address: Address, more: int = 0) -> Node:
        graph = self.graph
        base = self.operand(address.base)
        offset = graph.const(address.offset + more)
        if address.index is None:
            return graph.alu("add", base, offset)
        index = graph.shift_left(self.operand(address.index), address.shift)
        return graph.alu("add", graph.alu("add", base, offset), index)
