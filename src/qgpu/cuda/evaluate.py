"""Runs an IR function on plain integers, thread by thread: what the passes are tested with. No part of a launch.

Threads of a CTA run one after the other up to the next barrier or exchange, and meet there; one that runs for long lets
the others go first, so that threads may wait for each other in loops. Memory is bytes; shared
and local memory lie above all global addresses, so that one flat address tells the space.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from qgpu.cuda.ir import (
    SHARED_WINDOW,
    Address,
    Atomic,
    Barrier,
    Branch,
    Compute,
    Const,
    Exit,
    Function,
    Instruction,
    Jump,
    Load,
    Operand,
    Param,
    Print,
    Reg,
    Special,
    Store,
    Switch,
    Trap,
    Type,
    VariableAddress,
    WarpOp,
)
from qgpu.cuda.ops import ATOMICS, evaluate
from qgpu.cuda.printf import render, words_of

SHARED, LOCAL = 0x4000_0000, 0x6000_0000
_WARP = 32
_TURN = 2000
"""Basic blocks that a thread runs before it is the next one's turn."""
Coordinates = tuple[int, int, int]


class Fault(Exception):
    """A thread did what a launch ends at: an access out of bounds or misaligned, a trap, threads that wait for ever."""


@dataclass
class Machine:
    """What all threads of a launch share. ``memory`` holds arrays and global variables, from address 0 on."""

    function: Function
    parameters: bytes
    memory: bytearray
    grid: Coordinates
    block: Coordinates
    dynamic_shared: int
    addresses: dict[str, int] = field(default_factory=dict)
    shared: bytearray = field(default_factory=bytearray)
    shared_bytes: int = 0
    local_bytes: int = 0
    steps: int = 0
    printed: list[str] = field(default_factory=list)


def run(
    function: Function,
    parameters: bytes,
    memory: bytearray,
    grid: Sequence[int] = (1, 1, 1),
    block: Sequence[int] = (1, 1, 1),
    *,
    dynamic_shared: int = 0,
    limit: int = 10_000_000,
    printed: list[str] | None = None,
) -> int:
    """Runs the launch, changing ``memory`` (little endian; addresses count from 0), and returns the executed steps.

    Global and constant variables are put behind what ``memory`` holds. ``printed`` takes what `ir.Print` writes.
    Raises Fault, also after ``limit`` instructions.
    """
    machine = Machine(function, parameters, memory, _three(grid), _three(block), dynamic_shared)
    machine.printed = [] if printed is None else printed
    _place(machine)
    for z in range(machine.grid[2]):
        for y in range(machine.grid[1]):
            for x in range(machine.grid[0]):
                machine.shared = bytearray(machine.shared_bytes)
                _run_cta(machine, (x, y, z), limit)
    return machine.steps


def _three(size: Sequence[int]) -> Coordinates:
    x, y, z = (*size, 1, 1)[:3]
    return x, y, z


def _place(machine: Machine) -> None:
    """Gives every variable its address."""
    dynamic = [variable for variable in machine.function.variables if variable.size == 0]
    for variable in [v for v in machine.function.variables if v.size] + dynamic:
        if variable.space == "shared":
            machine.shared_bytes = -(-machine.shared_bytes // variable.align) * variable.align
            machine.addresses[variable.name] = SHARED + (machine.shared_bytes if variable.name != SHARED_WINDOW else 0)
            machine.shared_bytes += variable.size
        elif variable.space == "local":
            machine.local_bytes = -(-machine.local_bytes // variable.align) * variable.align
            machine.addresses[variable.name] = LOCAL + machine.local_bytes
            machine.local_bytes += variable.size
        else:
            machine.memory.extend(bytes(-len(machine.memory) % 16))
            machine.addresses[variable.name] = len(machine.memory)
            machine.memory.extend(variable.initial or bytes(variable.size))
    machine.shared_bytes += machine.dynamic_shared
    for variable in machine.function.variables:
        for reference in variable.references:
            start = machine.addresses[variable.name] + reference.offset
            target = machine.addresses[reference.variable] + reference.addend
            machine.memory[start : start + reference.width] = target.to_bytes(reference.width, "little")


@dataclass
class Thread:
    """One thread: ``waiting`` is what it last met at, None while it can run; results are sent into ``steps``."""

    rank: int
    position: Coordinates
    registers: dict[Reg, int] = field(default_factory=dict)
    local: bytearray = field(default_factory=bytearray)
    steps: "Generator[Instruction | None, Sequence[int], None] | None" = None
    waiting: Instruction | None = None
    answer: Sequence[int] = ()
    done: bool = False


def _run_cta(machine: Machine, cta: Coordinates, limit: int) -> None:
    threads: list[Thread] = []
    for z in range(machine.block[2]):
        for y in range(machine.block[1]):
            for x in range(machine.block[0]):
                thread = Thread(len(threads), (x, y, z), local=bytearray(machine.local_bytes))
                thread.steps = _thread(machine, thread, cta, limit)
                threads.append(thread)
    while True:
        for thread in threads:
            if thread.waiting is None and not thread.done:
                assert thread.steps is not None
                try:
                    thread.waiting = thread.steps.send(thread.answer) if thread.registers else next(thread.steps)
                except StopIteration:
                    thread.done = True
        waiting = [thread for thread in threads if not thread.done]
        if not waiting:
            return
        running = any(thread.waiting is None for thread in waiting)
        if all(isinstance(thread.waiting, Barrier) for thread in waiting):
            _meet_cta(waiting)
            continue
        if not any([_meet_warp(threads, warp) for warp in range(0, len(threads), _WARP)]) and not running:
            raise Fault("deadlock")


def _meet_cta(waiting: list[Thread]) -> None:
    values = [_value_at(thread, thread.waiting.source) for thread in waiting if isinstance(thread.waiting, Barrier)]
    for thread in waiting:
        assert isinstance(thread.waiting, Barrier)
        op = thread.waiting.op
        answer = {"sync": 0, "popc": sum(values), "and": int(all(values)), "or": int(any(values))}[op]
        thread.answer = () if op == "sync" else (answer,)
        thread.waiting = None


def _value_at(thread: Thread, operand: Operand | None) -> int:
    """A value at a meeting: there only registers and constants can stand."""
    if isinstance(operand, Const):
        return operand.value
    return thread.registers.get(operand, 0) if isinstance(operand, Reg) else 0


def _meet_warp(threads: list[Thread], first: int) -> bool:
    """Lets one exchange of a warp happen whose members have all come; says whether there was one."""
    warp = threads[first : first + _WARP]
    for thread in warp:
        op = thread.waiting
        if not isinstance(op, WarpOp):
            continue
        if op.op == "activemask":
            if any(lane.waiting is None and not lane.done for lane in warp):
                continue  # who is still on the way may come here as well
            here = [lane for lane in warp if lane.waiting is op]
            mask = sum(1 << lane.rank % _WARP for lane in here)
            for lane in here:
                lane.answer, lane.waiting = (mask,), None
            return True
        mask = thread.answer[-1]
        here = [lane for lane in warp if mask >> lane.rank % _WARP & 1 and not lane.done]
        if all(_meets(lane, op, mask) for lane in here):
            _exchange(op, here)
            return True
    return False


def _meets(lane: Thread, op: WarpOp, mask: int) -> bool:
    """Whether a lane waits at the same exchange: at any place, if kind and members are the same, as CUDA has it."""
    other = lane.waiting
    return isinstance(other, WarpOp) and (other.op, other.type) == (op.op, op.type) and lane.answer[-1] == mask


def _exchange(op: WarpOp, here: list[Thread]) -> None:
    values = {lane.rank % _WARP: lane.answer for lane in here}
    kind, _, mode = op.op.partition(".")
    answers: dict[int, tuple[int, ...]] = {}
    for lane, sources in values.items():
        if kind == "shuffle":
            answers[lane] = _shuffle(mode, lane, sources, values)
        elif kind == "vote":
            bits = [other[0] for other in values.values()]
            ballot = sum(value[0] << position for position, value in values.items())
            uniform = int(len(set(bits)) == 1)
            answers[lane] = ({"all": int(all(bits)), "any": int(any(bits)), "uni": uniform, "ballot": ballot}[mode],)
        elif kind == "match":
            same = sum(1 << position for position, value in values.items() if value[0] == sources[0])
            everyone = sum(1 << position for position in values)
            answers[lane] = (same,) if mode == "any" else ((everyone, 1) if same == everyone else (0, 0))
        elif kind == "reduce":
            first, *rest = [value[0] for value in values.values()]
            for other in rest:
                first = ATOMICS[mode](32, first, other) & Type.B32.mask
            answers[lane] = (first & Type.B32.mask,)
        else:
            answers[lane] = ()
    for thread in here:
        thread.answer, thread.waiting = answers[thread.rank % _WARP], None


def _shuffle(mode: str, lane: int, sources: Sequence[int], values: dict[int, Sequence[int]]) -> tuple[int, int]:
    """The lane to read from, as PTX gives it in pseudo-code: segments by mask, then a clamp."""
    _, b, c, _ = sources
    distance, clamp, segment = b & 31, c & 31, c >> 8 & 31
    highest = (lane & segment) | (clamp & ~segment)
    lowest = lane & segment
    match mode:
        case "up":
            source, inside = lane - distance, lane - distance >= highest
        case "down":
            source, inside = lane + distance, lane + distance <= highest
        case "bfly":
            source, inside = lane ^ distance, lane ^ distance <= highest
        case _:
            source = lowest | (distance & ~segment)
            inside = source <= highest
    source = source if inside else lane
    return values.get(source, (0,))[0], int(inside)


def _thread(
    machine: Machine, thread: Thread, cta: Coordinates, limit: int
) -> Generator[Instruction | None, Sequence[int], None]:
    blocks = {block.label: block for block in machine.function.blocks}
    block = machine.function.blocks[0]
    thread.registers[Reg("", Type.PRED)] = 0  # marks a thread that has begun

    def value(operand: Operand) -> int:
        match operand:
            case Reg():
                return thread.registers.get(operand, 0)
            case Const(value=constant):
                return constant
            case Param(offset=offset, type=type_):
                return int.from_bytes(machine.parameters[offset : offset + type_ // 8], "little")
            case VariableAddress(name=name, offset=offset):
                return (machine.addresses[name] + offset) & Type.B32.mask
            case Special(name=name):
                return _special(machine, thread, cta, name)

    turn = 0
    while True:
        turn += 1
        if turn % _TURN == 0:
            yield None
        for item in block.instructions:
            machine.steps += 1
            if machine.steps > limit:
                raise Fault("too many steps")
            if item.guard is not None and value(item.guard.register) == item.guard.negated:
                continue
            match item:
                case Compute(op=op, type=type_, dest=dest, sources=sources):
                    thread.registers[dest] = evaluate(op, type_, dest.type, *map(value, sources))
                case Load() | Store() | Atomic():
                    _access(machine, thread, item, value)
                case Print(format=text, arguments=arguments):
                    _print(machine, thread, item, value(text), value(arguments))
                case Barrier(dest=dest, source=source):
                    kept = None if source is None else Const(value(source), Type.PRED)
                    answer = yield Barrier(item.op, dest, kept)
                    if dest is not None:
                        thread.registers[dest] = answer[0]
                case WarpOp(dests=dests, sources=sources):
                    thread.answer = tuple(map(value, sources))
                    answer = yield item
                    for dest, result in zip(dests, answer, strict=False):
                        if dest is not None:
                            thread.registers[dest] = result
        match block.terminator:
            case Jump(target=target):
                block = blocks[target]
            case Branch(predicate=predicate, negated=negated, then=then, otherwise=otherwise):
                block = blocks[then if value(predicate) != negated else otherwise]
            case Switch(index=index, targets=targets):
                if value(index) >= len(targets):
                    raise Fault("an index beyond the table of a switch")
                block = blocks[targets[value(index)]]
            case Exit():
                return
            case Trap():
                raise Fault("trap")
        machine.steps += 1
        if machine.steps > limit:
            raise Fault("too many steps")


def _special(machine: Machine, thread: Thread, cta: Coordinates, name: str) -> int:
    base, _, axis = name.partition(".")
    places = {"tid": thread.position, "ntid": machine.block, "ctaid": cta, "nctaid": machine.grid}
    if base in places:
        return places[base]["xyz".index(axis)]
    lane = thread.rank % _WARP
    size = machine.block[0] * machine.block[1] * machine.block[2]
    everyone = (1 << _WARP) - 1
    below = (1 << lane) - 1
    return {
        "laneid": lane,
        "warpid": thread.rank // _WARP,
        "nwarpid": -(-size // _WARP),
        "lanemask_eq": 1 << lane,
        "lanemask_lt": below,
        "lanemask_le": below | 1 << lane,
        "lanemask_ge": everyone & ~below,
        "lanemask_gt": everyone & ~below & ~(1 << lane),
    }[base]


def _at(machine: Machine, thread: Thread, address: int) -> tuple[str, bytearray, int]:
    """The space an address lies in, that space's bytes, and where in them."""
    return next(
        (space, memory, address - base)
        for space, memory, base in (("local", thread.local, LOCAL), ("shared", machine.shared, SHARED),
                                    ("global", machine.memory, 0))
        if address >= base
    )  # fmt: skip


def _text(machine: Machine, thread: Thread, address: int) -> str:
    _, memory, start = _at(machine, thread, address)
    end = memory.find(b"\0", start)
    if start >= len(memory) or end < 0:
        raise Fault(f"thread {thread.rank}: no text at address {address:#x}")
    return memory[start:end].decode("utf-8", "replace")


def _print(machine: Machine, thread: Thread, item: Print, text: int, arguments: int) -> None:
    format_ = _text(machine, thread, text)
    _, memory, start = _at(machine, thread, arguments)
    data = bytes(memory[start : start + 4 * words_of(format_, item.pointer_bytes)])
    machine.printed.append(render(format_, data, item.pointer_bytes, lambda at: _text(machine, thread, at)))


def _access(machine: Machine, thread: Thread, item: Load | Store | Atomic, value: Callable[[Operand], int]) -> None:
    where: Address = item.address
    index = 0 if where.index is None else value(where.index) << where.shift
    address = (value(where.base) + index + where.offset) & Type.B32.mask
    count = len(item.dests) if isinstance(item, Load) else len(item.values) if isinstance(item, Store) else 1
    size = item.width * count
    space, memory, start = _at(machine, thread, address)
    named = "global" if item.space == "const" else item.space
    if named not in ("generic", space) or start + size > len(memory) or address % size:
        raise Fault(f"thread {thread.rank}: {item.space} address {address:#x}")
    pieces = [slice(start + i * item.width, start + (i + 1) * item.width) for i in range(count)]
    old = [int.from_bytes(memory[piece], "little", signed=isinstance(item, Load) and item.signed) for piece in pieces]
    match item:
        case Load(dests=dests):
            for dest, loaded in zip(dests, old, strict=True):
                thread.registers[dest] = loaded & dest.type.mask
        case Store(values=values, width=width):
            for piece, stored in zip(pieces, values, strict=True):
                memory[piece] = (value(stored) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        case Atomic(op=op, dest=dest, width=width, sources=sources):
            new = ATOMICS[op](width * 8, old[0], *map(value, sources)) & ((1 << 8 * width) - 1)
            memory[pieces[0]] = new.to_bytes(width, "little")
            if dest is not None:
                thread.registers[dest] = old[0]
