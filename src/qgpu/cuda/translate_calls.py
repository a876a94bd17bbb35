"""Calls of PTX: a device function stands in the place of its call, and a few functions of CUDA's own are known by name.

Parameters become registers that both sides name alike, or are moved from register to register.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from qgpu.cuda import ptx
from qgpu.cuda.ir import Branch, Const, Operand, Print, Reg, Trap, Type
from qgpu.cuda.translation import FLOATING, REGISTER_TYPES, Frame, Refused, Translation

NO_HEAP = "there is no heap: pass memory to the kernel"
UNKNOWN: dict[str, str] = {
    **dict.fromkeys(("malloc", "free", "calloc", "realloc", "_Znwj", "_Znwm", "_Znaj", "_Znam", "_ZdlPv", "_ZdaPv",
                     "_ZdlPvj", "_ZdlPvm"), NO_HEAP),
    **dict.fromkeys(("cudaLaunchDeviceV2", "cudaGetParameterBufferV2"),
                    "a kernel cannot launch kernels: launch them one after the other"),
    **dict.fromkeys(("puts", "putchar", "fprintf"), "of the functions that print, printf is there"),
}  # fmt: skip
"""Functions that are declared somewhere and cannot be there, and why."""

FLOAT_FUNCTION = "__qgpu_float_"
"""How the device header begins the names of floating-point functions."""

Operands = Sequence[ptx.Operand]
Body = Callable[[Translation], None]


def call(t: Translation, instruction: ptx.Instruction, body: Body) -> None:
    """Translates a call; ``body`` translates the function of the innermost frame."""
    results = _results(instruction)
    try:
        _call(t, instruction, results, body)
    except Refused:
        # What reads the results is not to blame.
        t.lost.update(t.place(result.name) for result in results if isinstance(result, ptx.Symbol))
        raise


def _call(t: Translation, instruction: ptx.Instruction, results: Operands, body: Body) -> None:
    name, arguments = _parts(instruction)
    guard = t.guard()
    after = None
    if guard is not None:
        taken, after = t.fresh_label(), t.fresh_label()
        t.finish(Branch(guard.register, guard.negated, taken, after))
        t.start(taken)
    # The branch has seen to the guard: what the call is made of has none.
    t.current = here = replace(instruction, guard=None)
    known = KNOWN.get(name)
    if known is not None:
        known(t, results, arguments)
    else:
        _inline(t, name, results, arguments, body)
    t.current = here
    if after is not None:
        t.start(after)


def _results(instruction: ptx.Instruction) -> Operands:
    """What takes the results of the function."""
    first = instruction.operands[:1]
    return first[0].elements if first and isinstance(first[0], ptx.Group) else ()


def _parts(instruction: ptx.Instruction) -> tuple[str, Operands]:
    """The name of the function, and what is passed to it."""
    operands = list(instruction.operands)
    if operands and isinstance(operands[0], ptx.Group):
        operands.pop(0)
    function = operands.pop(0) if operands else None
    if not isinstance(function, ptx.Symbol):
        raise Refused("calls through pointers are not there: call the function by its name")
    arguments = operands[0] if operands and isinstance(operands[0], ptx.Group) else ptx.Group(())
    return function.name, arguments.elements


# ---- Device functions ----


def _inline(t: Translation, name: str, results: Operands, arguments: Operands, body: Body) -> None:
    readable = ptx.readable_name(name)
    function = next((f for f in t.module.functions if f.name == name and f.body is not None), None)
    if function is None:
        if name.startswith(FLOAT_FUNCTION):
            raise Refused(f"{name.removeprefix(FLOAT_FUNCTION)}: {FLOATING}")
        raise Refused(UNKNOWN.get(name, f"the function {readable} has no body here"))
    if any(frame.function is function for frame in t.frames):
        raise Refused(f"{readable} calls itself: recursion is not there, use a loop")
    if (len(function.parameters), len(function.returns)) != (len(arguments), len(results)):
        raise Refused(f"the call does not pass what {readable} takes")
    leave = t.fresh_label()
    inner = Frame(function, f"{leave}.", {}, leave)
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        _pass(t, inner, parameter, argument)
    for parameter, result in zip(function.returns, results, strict=True):
        own = _own(inner, parameter)
        inner.places[parameter.name] = t.place(result.name) if isinstance(result, ptx.Symbol) else own
    t.frames.append(inner)
    body(t)
    t.frames.pop()
    t.current = None
    t.start(leave)
    for parameter, result in zip(function.returns, results, strict=True):
        _give(t, inner, parameter, result)


def _own(inner: Frame, parameter: ptx.Parameter) -> str:
    return inner.prefix + parameter.name


def _register(inner: Frame, parameter: ptx.Parameter) -> Reg:
    type_ = REGISTER_TYPES.get(parameter.type)
    if type_ is None:
        raise Refused(f"parameters of type .{parameter.type} are not there")
    return Reg(_own(inner, parameter), type_)


def _held(parameter: ptx.Parameter) -> Type:
    """The type of a parameter that is passed in a register."""
    type_ = REGISTER_TYPES.get(parameter.type)
    if type_ is None or parameter.size * 8 != type_:
        raise Refused("a parameter that is passed in a register but does not fit one")
    return type_


def _pass(t: Translation, inner: Frame, parameter: ptx.Parameter, argument: ptx.Operand) -> None:
    """Makes a parameter of the function stand for an argument."""
    if parameter.register:
        register = _register(inner, parameter)
        t.compute("mov", register.type, _value(t, argument, register.type), dest=register)
    elif isinstance(argument, ptx.Symbol):
        inner.places[parameter.name] = t.place(argument.name)
    else:
        inner.places[parameter.name] = _own(inner, parameter)
        t.write_cell(_own(inner, parameter), 0, parameter.size, t.source(argument, _held(parameter)))


def _give(t: Translation, inner: Frame, parameter: ptx.Parameter, result: ptx.Operand) -> None:
    """Hands a result of the function to what takes it."""
    if isinstance(result, ptx.Symbol):
        if parameter.register:
            register = _register(inner, parameter)
            t.write_cell(t.place(result.name), 0, register.type // 8, register)
        return
    value: Operand
    if parameter.register:
        value = _register(inner, parameter)
    else:
        _held(parameter)
        value = t.read_cell(_own(inner, parameter), 0, parameter.size)
    t.compute("mov", value.type, value, dest=t.dest(result, value.type))


def _value(t: Translation, argument: ptx.Operand, type_: Type) -> Operand:
    """An argument, whether it stands in a register or in a parameter of the caller's."""
    if isinstance(argument, ptx.Symbol) and t.place(argument.name) in t.cells:
        return t.read_cell(t.place(argument.name), 0, type_ // 8)
    return t.source(argument, type_)


# ---- Functions of CUDA's own ----


def _address(t: Translation, argument: ptx.Operand) -> Operand:
    """The low word of an argument that is an address."""
    value = _value(t, argument, Type(t.module.address_size))
    return value if value.type is Type.B32 else t.compute("zext32", Type.B32, value)


def _print(t: Translation, results: Operands, arguments: Operands) -> None:
    """``vprintf(format, values)``. Its result, in CUDA the number of values, is 0 here."""
    if len(arguments) != 2:
        raise Refused("vprintf takes a format and the address of the values")
    text, values = (_address(t, argument) for argument in arguments)
    t.emit(Print(text, values, t.module.address_size // 8))
    zero = Const(0, Type.B32)
    for result in results:
        if isinstance(result, ptx.Symbol):
            t.write_cell(t.place(result.name), 0, 4, zero)
        else:
            t.compute("mov", Type.B32, zero, dest=t.dest(result, Type.B32))


def _fail(t: Translation, results: Operands, arguments: Operands) -> None:
    """A failed assertion ends the launch with a fault at its line."""
    t.finish(Trap())
    t.start(t.fresh_label())


KNOWN: dict[str, Callable[[Translation, Operands, Operands], None]] = {
    "vprintf": _print,
    **dict.fromkeys(("__assertfail", "__assert_fail"), _fail),
}
"""Functions that every CUDA program may call and that have no body in PTX."""
