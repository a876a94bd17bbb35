"""Checks that an IR function keeps its own rules; every fault of a function is reported at once.

It runs between passes: a fault is a mistake in the pass before, never in the user's program.
"""

from qgpu.cuda.ir import (
    TERMINATORS,
    Address,
    Atomic,
    Barrier,
    BasicBlock,
    Branch,
    Compute,
    Const,
    Function,
    Instruction,
    Load,
    Operand,
    Param,
    Print,
    Reg,
    Special,
    Store,
    Type,
    VariableAddress,
    WarpOp,
    operands,
    successors,
    writes,
)
from qgpu.cuda.ir_text import text_of_instruction
from qgpu.cuda.ops import ATOMICS, EXTENSIONS, OPS, SPECIALS, WARP_OPS, typed

SPACES = frozenset({"global", "shared", "local", "const", "generic"})


class VerifyError(Exception):
    """An IR function breaks the rules of the IR; the text lists every fault."""


def verify(function: Function) -> Function:
    """The function itself. Raises VerifyError listing all faults, one a line, when there are any."""
    found = faults(function)
    if found:
        raise VerifyError(f"kernel {function.name}:\n" + "\n".join(found))
    return function


def faults(function: Function) -> list[str]:
    """Every broken rule as "block: instruction: what is wrong"."""
    found: list[str] = []
    labels = [block.label for block in function.blocks]
    if not labels:
        return ["there is no block"]
    found += [f"{label}: there are two blocks of this name" for label in sorted(set(labels)) if labels.count(label) > 1]
    variables = {variable.name for variable in function.variables}
    size = max((parameter.offset + parameter.size for parameter in function.parameters), default=0)
    size = -(-size // 4) * 4  # parameters stand in words: a char at the end is read as one
    types: dict[str, Type] = {}
    for block in function.blocks:
        for target in successors(block):
            if target not in labels:
                found.append(f"{block.label}: goes on to {target}, which does not exist")
            if target == labels[0]:
                found.append(f"{block.label}: goes back to the entry block")
        for item in _items(block, found):
            text = f"{block.label}: {text_of_instruction(item)}: "
            problems = _instruction(item)
            guard = [item.guard.register] if item.guard is not None else []
            for operand in (*operands(item), *writes(item), *guard):
                problems += _operand(operand, variables, size, types)
            if guard and guard[0].type is not Type.PRED:
                problems.append("the guard is no predicate")
            found += [text + problem for problem in problems]
    return found


def _items(block: BasicBlock, found: list[str]) -> list[Instruction]:
    for item in block.instructions:
        if isinstance(item, TERMINATORS):
            found.append(f"{block.label}: {text_of_instruction(item)}: a terminator in the middle of a block")
    if block.terminator.guard is not None:
        found.append(f"{block.label}: {text_of_instruction(block.terminator)}: a terminator has no guard")
    return [*block.instructions, block.terminator]


def _operand(operand: Operand, variables: set[str], parameter_bytes: int, types: dict[str, Type]) -> list[str]:
    match operand:
        case Const(value=value, type=type_) if not 0 <= value <= type_.mask:
            return [f"the constant {value} does not fit {type_}"]
        case Reg(name=name, type=type_) if types.setdefault(name, type_) is not type_:
            return [f"{name} is {type_} here and {types[name]} elsewhere"]
        case Special(name=name) if name not in SPECIALS:
            return [f"there is no special register {name}"]
        case VariableAddress(name=name) if name not in variables:
            return [f"there is no variable {name}"]
        case Param(offset=offset, type=type_):
            width = type_ // 8
            if offset % width or not 0 <= offset <= parameter_bytes - width:
                return [f"{operand} is misaligned or outside the {parameter_bytes} bytes of parameters"]
    return []


def _expect(what: str, actual: Type, expected: Type | None) -> list[str]:
    return [] if expected is None or actual is expected else [f"{what} is {actual}, expected {expected}"]


def _address(address: Address) -> list[str]:
    found = _expect("the address", address.base.type, Type.B32)
    if address.index is not None:
        found += _expect("the index", address.index.type, Type.B32)
    if not 0 <= address.shift <= 3 or (address.index is None and address.shift):
        found.append(f"the index is shifted by {address.shift}, expected 0 to 3")
    return found


def _memory(space: str, width: int, address: Address, count: int) -> list[str]:
    found = _address(address)
    if space not in SPACES:
        found.append(f"there is no space {space}")
    if width not in (1, 2, 4, 8) or count not in (1, 2, 4, 8) or width * count > 16:
        found.append(f"{count} values of {width} bytes are no access")
    return found


def _instruction(item: Instruction) -> list[str]:
    match item:
        case Compute(op=op, type=type_, dest=dest, sources=sources):
            row = OPS.get(op)
            if row is None:
                return [f"there is no operation {op}"]
            if len(sources) != len(row.sources):
                return [f"{len(sources)} sources, expected {len(row.sources)}"]
            found = _expect("the result", dest.type, row.result_type(type_))
            for position, source in enumerate(sources):
                found += _expect(f"source {position + 1}", source.type, row.source_type(position, type_))
            if op in EXTENSIONS and int(op[4:]) > sources[0].type:
                found.append(f"{op} of a source of {sources[0].type}")
            return found
        case Load(dests=dests, space=space, address=address, width=width):
            found = [f"{dest} is narrower than {width} bytes" for dest in dests if dest.type < width * 8]
            return found + _memory(space, width, address, len(dests))
        case Store(values=values, space=space, address=address, width=width):
            found = [f"{value} is narrower than {width} bytes" for value in values if value.type < width * 8]
            return found + _memory(space, width, address, len(values))
        case Atomic(op=op, dest=dest, space=space, address=address, width=width, sources=sources):
            if op not in ATOMICS:
                return [f"there is no atomic {op}"]
            found = _memory(space, width, address, 1)
            if len(sources) != (2 if op == "cas" else 1):
                found.append(f"{len(sources)} sources are too few or too many")
            for value in (*sources, *(() if dest is None else (dest,))):
                found += _expect(str(value), value.type, Type(width * 8) if width > 1 else None)
            return found
        case Barrier(op=op, dest=dest, source=source):
            if op == "sync":
                return [] if dest is None and source is None else ["a plain barrier takes and gives nothing"]
            if op not in ("popc", "and", "or") or dest is None or source is None:
                return [f"no such barrier: {op}"]
            found = _expect("the result", dest.type, Type.B32 if op == "popc" else Type.PRED)
            return found + _expect("the source", source.type, Type.PRED)
        case WarpOp(op=op, type=type_, dests=dests, sources=sources):
            warp_row = WARP_OPS.get(op)
            if warp_row is None:
                return [f"there is no warp operation {op}"]
            most = len(warp_row.results)
            if len(sources) != len(warp_row.sources) or not min(1, most) <= len(dests) <= most:
                return ["a wrong number of sources or results"]
            found = []
            for letter, source in zip(warp_row.sources, sources, strict=True):
                found += _expect(str(source), source.type, typed(letter, type_))
            for letter, dest in zip(warp_row.results, dests, strict=False):
                found += [] if dest is None else _expect(str(dest), dest.type, typed(letter, type_))
            return found
        case Print(format=text, arguments=arguments):
            return _expect("the format", text.type, Type.B32) + _expect("the arguments", arguments.type, Type.B32)
        case Branch(predicate=predicate):
            return _expect("the predicate", predicate.type, Type.PRED)
    return []
