"""Local variables that are only read and written at known places become registers: no memory for what is no array.

Compilers leave such variables behind where a value's address is taken for a moment, above all for the values of printf.
"""

from dataclasses import replace

from qgpu.cuda.ir import (
    BasicBlock,
    Compute,
    Function,
    Instruction,
    Load,
    Operand,
    Reg,
    Store,
    Type,
    VariableAddress,
    operands,
)

Cell = tuple[str, int, int]
"""A variable, an offset in it, and a width in bytes."""
WORD = 4


def promote_locals(function: Function) -> Function:
    """The function with such variables in registers; the others stay."""
    local = {variable.name for variable in function.variables if variable.space == "local"}
    if not local:
        return function
    cells = _cells(function, local)
    if not cells:
        return function
    names = {name for name, _, _ in cells}
    return replace(
        function,
        variables=tuple(variable for variable in function.variables if variable.name not in names),
        blocks=tuple(_promoted(block, names) for block in function.blocks),
    )


def _pieces(item: Load | Store) -> list[Cell]:
    """The pieces of at most a word that an access at a known place touches."""
    base = item.address.base
    assert isinstance(base, VariableAddress)
    count = len(item.dests) if isinstance(item, Load) else len(item.values)
    start = base.offset + item.address.offset
    if item.width <= WORD:
        return [(base.name, start + item.width * index, item.width) for index in range(count)]
    return [(base.name, start + WORD * index, WORD) for index in range(count * item.width // WORD)]


def _known(item: Instruction) -> bool:
    return (
        isinstance(item, Load | Store)
        and isinstance(item.address.base, VariableAddress)
        and item.address.index is None
        and not item.volatile
    )


def _cells(function: Function, local: set[str]) -> set[Cell]:
    """The cells of all variables that can be promoted: each byte always belongs to the same cell."""
    sizes = {variable.name: variable.size for variable in function.variables}
    found: dict[tuple[str, int], Cell] = {}
    spoiled: set[str] = set()
    for block in function.blocks:
        for item in (*block.instructions, block.terminator):
            read: tuple[Operand, ...] = operands(item)
            if _known(item) and isinstance(item, Load | Store):
                read = item.values if isinstance(item, Store) else ()
                for cell in _pieces(item):
                    name, offset, width = cell
                    for byte in range(offset, offset + width):
                        if found.setdefault((name, byte), cell) != cell or not 0 <= byte < sizes[name]:
                            spoiled.add(name)
            spoiled.update(operand.name for operand in read if isinstance(operand, VariableAddress))
    return {cell for cell in found.values() if cell[0] in local and cell[0] not in spoiled}


def _register(cell: Cell) -> Reg:
    name, offset, width = cell
    return Reg(f"{name}+{offset}", Type.B16 if width < WORD else Type.B32)


def _promoted(block: BasicBlock, names: set[str]) -> BasicBlock:
    items: list[Instruction] = []
    for item in block.instructions:
        base = item.address.base if isinstance(item, Load | Store) else None
        if isinstance(base, VariableAddress) and base.name in names:
            items += _read(item) if isinstance(item, Load) else _written(item) if isinstance(item, Store) else []
        else:
            items.append(item)
    return replace(block, instructions=tuple(items))


def _read(item: Load) -> list[Instruction]:
    made: list[Instruction] = []
    cells = [_register(cell) for cell in _pieces(item)]

    def emit(op: str, type_: Type, dest: Reg, *sources: Operand) -> None:
        made.append(Compute(op, type_, dest, sources, guard=item.guard, origin=item.origin))

    # All cells are read before a result is written, since a result could be what a later cell was made of.
    for index, dest in enumerate(item.dests):
        if item.width > WORD:
            emit("pack", Type.B32, dest, *cells[2 * index : 2 * index + 2])
        elif dest.type == item.width * 8:
            emit("mov", dest.type, dest, cells[index])
        else:
            emit(f"{'sext' if item.signed else 'zext'}{item.width * 8}", dest.type, dest, cells[index])
    return made


def _written(item: Store) -> list[Instruction]:
    made: list[Instruction] = []
    cells = [_register(cell) for cell in _pieces(item)]

    def emit(op: str, type_: Type, dest: Reg, source: Operand) -> None:
        made.append(Compute(op, type_, dest, (source,), guard=item.guard, origin=item.origin))

    for index, value in enumerate(item.values):
        if item.width > WORD:
            emit("zext32", Type.B32, cells[2 * index], value)
            emit("high", Type.B32, cells[2 * index + 1], value)
        elif value.type is cells[index].type:
            emit("mov", value.type, cells[index], value)
        else:
            emit(f"zext{int(cells[index].type)}", cells[index].type, cells[index], value)
    return made
