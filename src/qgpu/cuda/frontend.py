"""PTX to IR: one kernel of a module, its device functions put in place of their calls.

What the machine cannot run is collected over the whole kernel and raised once, with the line of the PTX, the user's own
line, and a hint for each.
"""

from collections.abc import Callable

from qgpu.cuda import ptx, translate_bits, translate_carry, translate_compute, translate_memory
from qgpu.cuda.ir import (
    Branch,
    Exit,
    Function,
    Jump,
    KernelParameter,
    Reference,
    Switch,
    Terminator,
    Trap,
    Type,
    Variable,
)
from qgpu.cuda.ptx_text import text_of
from qgpu.cuda.refusals import Refusal, refuse
from qgpu.cuda.simplify import remove_unreachable
from qgpu.cuda.translate_calls import call
from qgpu.cuda.translate_compute import key_of
from qgpu.cuda.translation import FLOATING, Frame, Refused, Translation, operand_count
from qgpu.cuda.verify import VerifyError, verify
from qgpu.errors import PtxError
from qgpu.isa.tokens import MEMORY_BYTES

MALFORMED = (ValueError, IndexError, KeyError, AttributeError)
"""What a table's function meets where an instruction lacks a modifier or an operand that all its forms have."""

MAXIMUM_STATEMENTS = 50_000
"""How much one kernel may grow to when device functions are put in place of their calls."""

_HINTED: tuple[tuple[str, str], ...] = (
    ("fma rcp sqrt rsqrt sin cos lg2 ex2 tanh testp copysign", FLOATING),
    ("tex tld4 txq suld sust sured suq", "textures and surfaces are not there: use global memory"),
    ("wmma mma wgmma ldmatrix stmatrix movmatrix", "there are no matrix units"),
    ("cp mbarrier", "asynchronous copies are not there: use plain loads"),
    ("shfl vote", "use the _sync form"),
)
HINTS: dict[str, str] = {
    **{opcode: hint for opcodes, hint in _HINTED for opcode in opcodes.split()},
    "alloca": "there is no memory of a size known at run time only: use a fixed array",
}
"""By opcode, for instructions that no table knows."""

Handler = Callable[[Translation, ptx.Instruction], None]
_HANDLERS: dict[str, Handler] = {
    **translate_compute.HANDLERS,
    **translate_carry.HANDLERS,
    **translate_bits.HANDLERS,
    **translate_memory.HANDLERS,
}
_BY_OPCODE: dict[str, Handler] = {
    **translate_compute.BY_OPCODE,
    **translate_bits.BY_OPCODE,
    **translate_memory.BY_OPCODE,
}


def kernel_named(module: ptx.Module, name: str) -> ptx.Function:
    """The kernel called ``name``, as written in C or as mangled in the PTX. Raises PtxError listing what there is."""
    found = [kernel for kernel in module.kernels if name in (kernel.name, ptx.readable_name(kernel.name))]
    exact = [kernel for kernel in found if kernel.name == name]
    if len(found) == 1 or exact:
        return (exact or found)[0]
    if found:
        names = ", ".join(kernel.name for kernel in found)
        raise PtxError(f"{module.file}: there are several kernels {name}: {names}; use one of these names")
    names = ", ".join(ptx.readable_name(kernel.name) for kernel in module.kernels) or "none"
    raise PtxError(f"{module.file}: there is no kernel {name}; there are: {names}")


def parameter_layout(kernel: ptx.Function) -> tuple[KernelParameter, ...]:
    """Where each parameter lies: one after the other, each aligned as declared."""
    offset = 0
    found = []
    for parameter in kernel.parameters:
        align = max(parameter.align, 1)
        offset = -(-offset // align) * align
        found.append(KernelParameter(parameter.name, parameter.type, offset, parameter.size, align, parameter.pointer))
        offset += parameter.size
    return tuple(found)


def translate(module: ptx.Module, name: str) -> Function:
    """The IR of one kernel, checked, with blocks in the order of the PTX and unreachable ones removed.

    Raises PtxError when there is no such kernel, UnsupportedError listing all that the machine cannot run.
    """
    kernel = kernel_named(module, name)
    if kernel.body is None:
        raise PtxError(f"{module.file}:{kernel.line}: the kernel {name} has no body here")
    parameters = parameter_layout(kernel)
    t = Translation(module, [Frame(kernel)], {parameter.name: parameter.offset for parameter in parameters})
    refusals: list[Refusal] = []
    _run(t, refusals, [0])
    if t.label is not None:
        t.finish(Exit())
    variables = _variables(t, refusals)
    if refusals:
        raise refuse(refusals, ptx.readable_name(kernel.name), module.file.removeprefix("PTX of "))
    function = Function(ptx.readable_name(kernel.name), parameters, tuple(variables), tuple(t.blocks))
    try:
        return verify(remove_unreachable(function))
    except VerifyError as error:
        raise PtxError(f"{module.file}: this PTX breaks its own rules: {error}") from None


def _run(t: Translation, refusals: list[Refusal], count: list[int]) -> None:
    """Translates the body of the innermost frame; ``count`` holds how many statements there have been in all."""
    body = t.frame.function.body or ()
    t.tables.update(
        {
            t.code_label(item.name): tuple(map(t.code_label, item.targets))
            for item in body
            if isinstance(item, ptx.BranchTargets)
        }
    )
    for statement in body:
        count[0] += 1
        if isinstance(statement, ptx.Label):
            t.current = None
            t.start(t.code_label(statement.name))
        elif isinstance(statement, ptx.Instruction):
            t.current = statement
            try:
                if count[0] > MAXIMUM_STATEMENTS:
                    raise Refused(f"more than {MAXIMUM_STATEMENTS} instructions with all calls put in place")
                if statement.opcode == "call":
                    call(t, statement, lambda inner: _run(inner, refusals, count))
                else:
                    _instruction(t, statement)
            except (Refused, *MALFORMED) as error:
                refused = error if isinstance(error, Refused) else Refused("this is no form of the instruction")
                kernel = t.frames[0].function.name
                refusals.append(Refusal(kernel, statement.line, statement.source, text_of(statement), str(refused)))
                if count[0] > MAXIMUM_STATEMENTS:
                    return


def _instruction(t: Translation, instruction: ptx.Instruction) -> None:
    key = key_of(instruction)
    handler = _CONTROL.get(instruction.opcode) or _HANDLERS.get(key) or _BY_OPCODE.get(instruction.opcode)
    if handler is not None:
        handler(t, instruction)
        return
    if instruction.opcode in HINTS:
        raise Refused(HINTS[instruction.opcode])
    if any(name in ("f16", "f32", "f64", "f16x2", "bf16", "bf16x2") for name in instruction.modifiers):
        raise Refused(FLOATING)
    known = any(key.split(".")[0] == instruction.opcode for key in _HANDLERS)
    raise Refused("this form of the instruction is not there" if known else "this instruction is not there")


# ---- Control flow ----


def _leave(t: Translation, terminator: Terminator) -> None:
    """Ends the block with ``terminator``, in a block of its own if the instruction is guarded."""
    guard = t.guard()
    if guard is None:
        t.finish(terminator)
        return
    if isinstance(terminator, Jump):
        target = terminator.target
        rest = t.fresh_label()
        t.finish(Branch(guard.register, guard.negated, target, rest))
    else:
        target, rest = t.fresh_label(), t.fresh_label()
        t.finish(Branch(guard.register, guard.negated, target, rest))
        t.start(target)
        t.finish(terminator)
    t.start(rest)


def _branch(t: Translation, instruction: ptx.Instruction) -> None:
    if instruction.modifiers not in ((), ("uni",)):
        raise Refused("this form of branch is not there")
    target = operand_count(instruction, 1)[0]
    if not isinstance(target, ptx.Symbol):
        raise Refused("a branch to an address in a register is not there")
    _leave(t, Jump(t.code_label(target.name)))


def _indexed_branch(t: Translation, instruction: ptx.Instruction) -> None:
    index, table = operand_count(instruction, 2)
    targets = t.tables.get(t.code_label(table.name)) if isinstance(table, ptx.Symbol) else None
    if instruction.modifiers[:1] != ("idx",) or not targets:
        raise Refused("this form of branch is not there")
    _leave(t, Switch(t.source(index, Type.B32), targets))


def _return(t: Translation, instruction: ptx.Instruction) -> None:
    _leave(t, Exit() if t.frame.leave is None else Jump(t.frame.leave))


def _exit(t: Translation, instruction: ptx.Instruction) -> None:
    _leave(t, Exit())


def _trap(t: Translation, instruction: ptx.Instruction) -> None:
    _leave(t, Trap())


_CONTROL: dict[str, Handler] = {
    "bra": _branch,
    "brx": _indexed_branch,
    "ret": _return,
    "exit": _exit,
    "trap": _trap,
}


# ---- Variables ----


def _variables(t: Translation, refusals: list[Refusal]) -> list[Variable]:
    """The variables that the kernel names, and those whose addresses they hold."""
    found: list[Variable] = []
    waiting = list(t.variables.values())
    while waiting:
        variable = waiting.pop(0)
        try:
            found.append(_variable(variable))
            for reference in found[-1].references:
                if reference.variable not in t.variables:
                    t.variable(ptx.Symbol(reference.variable))
                    waiting.append(t.variables[reference.variable])
        except Refused as refused:
            text = f".{variable.space} {variable.name}"
            refusals.append(Refusal(t.frames[0].function.name, variable.line, None, text, str(refused)))
    return found


def _variable(variable: ptx.Variable) -> Variable:
    if variable.type not in ptx.TYPE_BYTES:
        raise Refused("textures and surfaces are not there: use global memory")
    if variable.size > MEMORY_BYTES:
        raise Refused(f"{variable.size:,} bytes, and the whole memory has {MEMORY_BYTES:,}")
    if variable.extern and variable.space != "shared":
        raise Refused("a variable of another file is not there: define it here")
    initial, references = None, []
    if variable.initial is not None:
        width, values = variable.initial
        data = bytearray()
        for value in values:
            if isinstance(value, ptx.Symbol):
                references.append(Reference(len(data), width, value.name, value.offset))
                value = 0
            data += (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
        initial = bytes(data[: variable.size]).ljust(variable.size, b"\0")
    elif variable.space in ("global", "const"):
        initial = bytes(variable.size)
    return Variable(variable.name, variable.space, variable.size, variable.align, initial, tuple(references))
