"""Folds sums into the addresses of loads, stores and atomics, up to what the machine adds in one block.

The machine's address adder takes two terms, one of them shifted by 0 to 3. Constants that can be added to the address
of a variable at compile time are no term of their own. A sum of two terms is folded only if that makes it dead: where
it has to be computed anyway, reading its result keeps fewer registers alive.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from qgpu.cuda.ir import (
    Address,
    Atomic,
    Compute,
    Const,
    Function,
    Instruction,
    Load,
    Operand,
    Reg,
    Store,
    Type,
    VariableAddress,
    reads,
    writes,
)
from qgpu.cuda.values import values

Access = Load | Store | Atomic
Sum = tuple[Operand, Operand]


def fold_addresses(function: Function) -> Function:
    """The function with address arithmetic moved into addresses of at most two terms."""
    folder = _Folder(dict(values(function)), _foldable(function), Counter())
    for block in function.blocks:
        for item in (*block.instructions, block.terminator):
            folder.read_count.update(reads(item))
    blocks = []
    for block in function.blocks:
        folder.here.clear()
        instructions: list[Instruction] = []
        for item in block.instructions:
            instructions += folder.instruction(item)
        blocks.append(replace(block, instructions=tuple(instructions)))
    return replace(function, blocks=tuple(blocks))


def _foldable(function: Function) -> set[Reg]:
    """Registers that are only read as plain addresses [r], so that folding their sum leaves no reader."""
    plain: Counter[Reg] = Counter()
    every: Counter[Reg] = Counter()
    for block in function.blocks:
        for item in (*block.instructions, block.terminator):
            every.update(reads(item))
            if isinstance(item, Access) and isinstance(item.address.base, Reg):
                if item.address.index is None and item.address.offset == 0:
                    plain[item.address.base] += 1
    return {register for register, count in plain.items() if every[register] == count}


@dataclass
class _Folder:
    known: dict[Reg, Instruction]
    """values and their definitions"""
    foldable: set[Reg]
    read_count: Counter[Reg]
    here: set[Reg] = field(default_factory=set)
    """values of this block whose operands have not been written again since"""

    def instruction(self, item: Instruction) -> list[Instruction]:
        before: list[Instruction] = []
        if isinstance(item, Access):
            address = self.best(item.address)
            shared = self.with_one_shift(address)
            if shared is not None and item.guard is None:
                addition, address = shared
                before.append(replace(addition, origin=item.origin))
            item = replace(item, address=address)
        for dest in writes(item):
            if dest in self.known:
                self.here.add(dest)
            else:
                self.here -= {value for value in self.here if dest in reads(self.known[value])}
        return [*before, item]

    def sum_of(self, operand: Operand, op: str) -> Sum | None:
        """The two sources of the operation that defines an operand, if they still mean here what they meant there."""
        found = self.known.get(operand) if isinstance(operand, Reg) else None
        if isinstance(found, Compute) and found.op == op and found.type is Type.B32:
            steady = all(not isinstance(source, Reg) or source in self.known for source in found.sources)
            if steady or operand in self.here:
                return found.sources[0], found.sources[1]
        return None

    def best(self, address: Address) -> Address:
        for _ in range(8):  # far more than any address has parts
            improved = self.better(address)
            if improved == address:
                break
            address = improved
        return address

    def better(self, address: Address) -> Address:
        """The address with one sum or shift taken in, or as it is."""
        base, index, shift, offset = address.base, address.index, address.shift, address.offset
        if isinstance(base, VariableAddress) and offset:
            return replace(address, base=replace(base, offset=base.offset + offset), offset=0)
        if isinstance(base, Const) and index is None and offset:
            return Address(Const((base.value + offset) & Type.B32.mask, Type.B32))
        parts = self.sum_of(base, "add")
        if parts is not None and isinstance(parts[1], Const):
            signed = parts[1].value - (1 << 32) if parts[1].value >> 31 else parts[1].value
            if index is None or offset + signed == 0 or isinstance(parts[0], VariableAddress):
                return Address(parts[0], index, shift, offset + signed)
        elif parts is not None and index is None:
            has_variable = any(isinstance(part, VariableAddress) for part in parts)
            if has_variable or (offset == 0 and base in self.foldable):
                first, second = parts
                # The shifted term is the index; a variable's address is the base, so that offsets go into it.
                if isinstance(second, VariableAddress) or (
                    self.sum_of(first, "shl") and not self.sum_of(second, "shl")
                ):
                    first, second = second, first
                return Address(first, second, 0, offset)
        moved = None if index is None or shift else self.sum_of(index, "shl")
        if moved is not None and isinstance(moved[1], Const) and moved[1].value <= 3:
            return replace(address, index=moved[0], shift=moved[1].value)
        return address

    def with_one_shift(self, address: Address) -> tuple[Compute, Address] | None:
        """(x + (u << s)) + (v << s) is x + ((u + v) << s): one sum instead of a shift and a sum, if these then die."""
        base, index = address.base, address.index
        if not isinstance(base, Reg) or index is None or address.shift == 0 or address.offset:
            return None
        if self.read_count[base] != 1 or base not in self.here:
            return None
        parts = self.sum_of(base, "add")
        for rest, term in () if parts is None else (parts, parts[::-1]):
            shifted = self.sum_of(term, "shl")
            if shifted is None or shifted[1] != Const(address.shift, Type.B32) or not isinstance(term, Reg):
                continue
            if term in self.here and self.read_count[term] == 1:
                total = Reg(f"{base.name}'", Type.B32)
                return Compute("add", Type.B32, total, (shifted[0], index)), Address(rest, total, address.shift)
        return None
