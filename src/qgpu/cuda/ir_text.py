"""The IR as text: for people, tests and messages; nothing reads it back."""

from collections import Counter

from qgpu.cuda.ir import (
    Atomic,
    Barrier,
    BasicBlock,
    Branch,
    Compute,
    Exit,
    Fence,
    Function,
    Instruction,
    Jump,
    Load,
    Print,
    Store,
    Switch,
    Trap,
    Type,
    WarpOp,
)


def _listed(items: tuple[object, ...]) -> str:
    return ", ".join("_" if item is None else str(item) for item in items)


def _suffix(type_: Type) -> str:
    return "" if type_ is Type.B32 else f".{type_}"


def _line(instruction: Instruction) -> str:
    match instruction:
        case Compute(op=op, type=type_, dest=dest, sources=sources):
            return f"{dest} = {op}{_suffix(type_)} {_listed(sources)}"
        case Load(dests=dests, space=space, address=address, width=width, signed=signed, volatile=volatile):
            kind = f"{'volatile ' if volatile else ''}load.{space}.{'s' if signed else 'u'}{width * 8}"
            return f"{_listed(dests)} = {kind} {address}"
        case Store(values=values, space=space, address=address, width=width, volatile=volatile):
            return f"{'volatile ' if volatile else ''}store.{space}.{width * 8} {address}, {_listed(values)}"
        case Atomic(op=op, dest=dest, space=space, address=address, width=width, sources=sources):
            result = "" if dest is None else f"{dest} = "
            return f"{result}atomic.{op}.{space}.{width * 8} {address}, {_listed(sources)}"
        case Barrier(op=op, dest=dest, source=source):
            return "barrier" if op == "sync" else f"{dest} = barrier.{op} {source}"
        case WarpOp(op=op, type=type_, dests=dests, sources=sources):
            result = f"{_listed(dests)} = " if dests else ""
            return f"{result}{op}{_suffix(type_)} {_listed(sources)}".rstrip()
        case Fence():
            return "fence"
        case Print(format=text, arguments=arguments):
            return f"print {text}, {arguments}"
        case Jump(target=target):
            return f"jump {target}"
        case Branch(predicate=predicate, negated=negated, then=then, otherwise=otherwise):
            return f"branch {'!' if negated else ''}{predicate} ? {then} : {otherwise}"
        case Switch(index=index, targets=targets):
            return f"switch {index} ? {_listed(targets)}"
        case Exit():
            return "exit"
        case Trap():
            return "trap"
    raise TypeError(f"no text for {instruction!r}")


def text_of_instruction(instruction: Instruction) -> str:
    """One instruction, its guard in front."""
    guard = "" if instruction.guard is None else f"{instruction.guard} "
    return guard + _line(instruction)


def _block(block: BasicBlock) -> str:
    lines = [f"{block.label}:"]
    lines += [f"  {text_of_instruction(item)}" for item in (*block.instructions, block.terminator)]
    return "\n".join(lines)


def text_of(function: Function) -> str:
    """A whole function: its parameters with their byte offsets, its variables, then block by block."""
    parameters = ", ".join(
        f"{'*' if parameter.pointer else ''}{parameter.type}@{parameter.offset}" for parameter in function.parameters
    )
    lines = [f"kernel {function.name}({parameters})"]
    lines += [
        f"  {variable.space} {variable.name}: {variable.size} bytes, aligned to {variable.align}"
        for variable in function.variables
    ]
    return "\n".join([*lines, *map(_block, function.blocks)])


def statistics(function: Function) -> Counter[str]:
    """How often each operation occurs, terminators included, by name without widths."""
    counts: Counter[str] = Counter()
    for block in function.blocks:
        for item in (*block.instructions, block.terminator):
            name = getattr(item, "op", None)
            if isinstance(item, Load | Store | Atomic):
                name = f"{type(item).__name__.lower()}.{item.space}"
            elif isinstance(item, Barrier) or name is None:
                name = type(item).__name__.lower()
            counts[name] += 1
    return counts
