"""What a FAULT means, in the words of compute-sanitizer: which access, where, by whom, and which array it missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qgpu.driver import trace
from qgpu.driver.memory import FIRST_BYTE
from qgpu.errors import FaultError
from qgpu.isa import tokens
from qgpu.isa.encoding import CHOICES
from qgpu.isa.execute import LOAD_BYTES, STORE_BYTES
from qgpu.isa.interpreter import Interpreter, ProtocolError
from qgpu.isa.program import Program, Spot

if TYPE_CHECKING:
    from qgpu.driver.launch import Launch

Coordinates = tuple[int, int, int]
LOCAL = "local memory of "
"""What the names of places begin with that hold a kernel's local memory."""

INDENT = "\n    "
_DEADLOCK = "Barrier error detected. Deadlock: every thread that is left waits for one that can never come"


def fault_of(done: Launch, prompt: Sequence[int]) -> FaultError:
    """The error that tells of a FAULT: what, where in the source, which thread; the address is the interpreter's."""
    cause_number, lane = tokens.decode(done.tokens[-1])[1]
    cause = tokens.CAUSES[cause_number] if cause_number < len(tokens.CAUSES) else f"cause {cause_number}"
    last = next((record for record in reversed(list(done.trace.records())) if record.kind == "EXEC"), None)
    block, quad = (last.block, last.quad) if last else (0, 0)
    thread = trace.thread_of(done.request.cta, quad, lane)
    machine = Interpreter()
    machine.feed(prompt)
    address: int | None = None
    try:
        machine.feed(done.tokens)
        address = machine.fault[4] if machine.fault and cause not in ("trap", "deadlock") else None
    except ProtocolError:
        pass  # the tokens are not the machine's; --check says where they leave it
    program, cta = done.request.program, machine.state.cta
    lines = [
        what(cause, program, block, done.places, address),
        f"at block b{block}",
        f"{'the last to run was' if cause == 'deadlock' else 'by'} {who(thread, cta)}",
    ]
    if address is not None:
        beside = near([*done.places, *done.shared], address)
        lines += [f"Address 0x{address:04x} is {cause.split(' ', 1)[1]}", f"and is {beside}"]
    spot = spot_of(program, block, cause.split(" ")[0])
    where = spot.under(done.file) or done.file
    message = f"{where + ': ' if where else ''}FAULT in kernel {done.kernel}: {INDENT.join(lines)}"
    message = "\n".join([message, *(str(report) for report in done.reports)])
    return FaultError(message, done, cause=cause, address=address, thread=thread, cta=cta, block=block,
                      file=spot.file or done.file, line=spot.line)  # fmt: skip


def what(cause: str, program: Program, block: int, places: Sequence[trace.Place], address: int | None) -> str:
    """``Invalid __global__ read of size 4 bytes``, or what else stopped the launch."""
    if cause == "deadlock":
        return _DEADLOCK
    if cause == "trap":
        return "Trap: the kernel stopped itself (assert, __trap)"
    kind = cause.split(" ")[0]
    if kind not in ("load", "store"):
        return cause
    fields = program.blocks[block].fields if block < len(program.blocks) else {}
    name = CHOICES[kind][fields.get(kind, 0)]
    size = (LOAD_BYTES if kind == "load" else STORE_BYTES)[name] * (2 if fields.get(f"{kind}_wide") else 1)
    verb = "read" if kind == "load" else "atomic" if fields.get("atomic") else "write"
    space = "__global__" if address is None else space_of(address, places)
    return f"Invalid {space} {verb} of size {size} bytes"


def space_of(address: int, places: Sequence[trace.Place]) -> str:
    """What kind of memory an address lies in, as CUDA calls it."""
    if tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES <= address < tokens.MEMORY_BYTES:
        return "__shared__"
    inside = next((place for place in places if place.address <= address < place.address + place.nbytes), None)
    return "__local__" if inside is not None and inside.name.startswith(LOCAL) else "__global__"


def name_of(address: int, places: Sequence[trace.Place]) -> str:
    """A byte address as people know it: ``out[3]``, or ``byte 4 of s`` in shared memory."""
    inside = next((place for place in places if place.address <= address < place.address + place.nbytes), None)
    first_shared = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES
    if inside is None:
        return f"byte {address - first_shared:,} of shared memory" if address >= first_shared else "no array"
    if address >= first_shared:
        return f"byte {address - inside.address:,} of {inside.name}"
    return inside.name_of(address)


def site(program: Program, block: int) -> str:
    """``kernel dot, block b3``: a machine block, as ``qgpu asm`` and a trace number them."""
    return f"kernel {program.name}, block b{block}"


def spot_of(program: Program, block: int, port: str = "") -> Spot:
    """Where in the source a block stands, or its ``load`` or ``store``."""
    return program.blocks[block].spot(port) if block < len(program.blocks) else Spot()


def who(thread: Coordinates, cta: Coordinates) -> str:
    """``thread (5,0,0) in CTA (0,0,0)``."""
    return f"thread {triple(thread)} in CTA {triple(cta)}"


def triple(index: Coordinates) -> str:
    return f"({','.join(map(str, index))})"


def near(places: Sequence[trace.Place], address: int) -> str:
    """Where an address lies beside the arrays: inside one, or how far from the nearest."""
    if address < FIRST_BYTE:
        return "near address 0: a null pointer, or an index from one"
    first_shared = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES
    in_shared = first_shared <= address < tokens.MEMORY_BYTES
    places = [place for place in places if (place.address >= first_shared) == in_shared]
    beyond = f", beyond the memory's {tokens.MEMORY_BYTES:,} bytes" if address >= tokens.MEMORY_BYTES else ""
    if not places:
        what = "shared memory, of which the kernel has none" if in_shared else f"memory without any array{beyond}"
        return f"in {what}"

    def distance(place: trace.Place) -> int:
        end = place.address + place.nbytes
        return place.address - address if address < place.address else max(0, address - end + 1)

    place = min(places, key=distance)
    index, rest = divmod(address - place.address, place.itemsize)
    flat = len(place.shape) <= 1
    element = f"{place.name}[{index}]" + (f"+{rest}" if rest else "") if flat else f"element {index} of {place.name}"
    kind = "" if in_shared else f" ({place.size} x {place.kind})"
    extent = f"{place.name}{kind} at 0x{place.address:04x} of size {place.nbytes:,} bytes"
    if not distance(place):
        return f"inside the allocation {extent}: {name_of(address, places)}"
    side = "before" if address < place.address else "after"
    reach = f": {element}" if abs(index) < 2**16 and not beyond and not in_shared else beyond
    return f"{distance(place):,} bytes {side} the nearest allocation {extent}{reach}"
