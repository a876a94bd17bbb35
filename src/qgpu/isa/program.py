"""A program and a launch as immutable values, and the prompt that carries a launch to the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qgpu.isa import encoding, tokens, values

Dim3 = tuple[int, int, int]

# The first parameter words are the launch's own constants; a kernel's parameters and constant pool follow.
NTID = (0, 1, 2)
NCTAID = (3, 4, 5)
FIRST_PARAM = 6
PARAM_WORDS = 2 * tokens.PARAM_ROWS
_GATHER = encoding.CHOICES["branch"].index("gather")


@dataclass(frozen=True)
class Spot:
    """A line of a source file. ``line``: 0 if unknown. ``file``: "" for the one that the kernel stands in."""

    line: int = 0
    file: str = ""

    def under(self, own: str) -> str:
        """``kernel.cu:12``; ``own``: what the kernel's file is called. "" if the line is unknown."""
        return f"{self.file or own}:{self.line}" if self.line and (self.file or own) else ""


@dataclass(frozen=True)
class Block:
    """``fields``: field name -> number (see ``encoding``), zero fields may be left out. ``instructions``: how many
    instructions of the source program an active lane executes here (for statistics). ``line``, ``file``: see ``Spot``.
    ``ports``: where in the source its load and its store stand, if that is not the block's own line.
    """

    fields: Mapping[str, int]
    instructions: int = 1
    line: int = 0
    label: str = ""
    file: str = ""
    ports: Mapping[str, Spot] = field(default_factory=dict)

    def spot(self, port: str = "") -> Spot:
        """Where in the source the block stands, or what one of its ports (``load``, ``store``) does."""
        return self.ports.get(port, Spot(self.line, self.file))


@dataclass(frozen=True)
class Program:
    """Blocks 0..n-1; execution starts at block 0. ``pool``: constants that stand in the parameter words from
    ``FIRST_PARAM + parameter_words`` on."""

    name: str
    blocks: tuple[Block, ...]
    parameter_words: int = 0
    pool: tuple[int, ...] = ()


@dataclass(frozen=True)
class Launch:
    """``grid``, ``cta``: sizes in x, y, z. ``parameters``: the kernel's 32-bit parameter words. ``rows``: memory rows
    to write before the launch, row -> (low word, high word). ``allocated``: map rows to write, row -> 64 bits, one a
    byte."""

    program: Program
    grid: Dim3 = (1, 1, 1)
    cta: Dim3 = (1, 1, 1)
    parameters: tuple[int, ...] = ()
    rows: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    allocated: Mapping[int, int] = field(default_factory=dict)


def in_words(block: Block) -> str:
    """`` (line 4)``, `` (helper.cuh:4)``, or nothing if the line is unknown."""
    if not block.line:
        return ""
    return f" ({block.file}:{block.line})" if block.file else f" (line {block.line})"


def faults(launch: Launch) -> list[str]:
    """Everything wrong with a launch, one line each; empty if the machine can run it."""
    found = []
    program = launch.program
    if not 1 <= len(program.blocks) <= tokens.BLOCKS:
        found.append(f"{program.name}: {len(program.blocks)} blocks; the program memory holds 1 to {tokens.BLOCKS}")
    for index, block in enumerate(program.blocks):
        where = f"{program.name}: block {index}" + in_words(block)
        get = block.fields.get
        for name, names in encoding.CHOICES.items():
            if get(name, 0) >= len(names):
                found.append(f"{where}: {name} {get(name)} is reserved")
        kind = get("branch", 0)
        if kind in (encoding.CHOICES["branch"].index(n) for n in ("next", "bar", "gather")) or get("g_branch", 0):
            if index + 1 >= len(program.blocks):
                found.append(f"{where}: execution falls off the end of the program; end it with exit")
        if kind == encoding.CHOICES["branch"].index("bra"):
            if get("target", 0) >= len(program.blocks):
                found.append(f"{where}: branch to block {get('target', 0)}, which does not exist")
            if get("back", 0) != (get("target", 0) <= index):
                found.append(f"{where}: field back must say whether the target is this block or a lower one")
        if get("collect", 0):
            before = program.blocks[index - 1].fields if index else {}
            parities = before.get("publish_parity", 0), get("collect_parity", 0)
            if before.get("branch", 0) != _GATHER or parities[0] != parities[1]:
                found.append(f"{where}: it must stand behind the gather that it collects, and name that one's parity")
            if kind == _GATHER and get("publish_parity", 0) == get("collect_parity", 0):
                found.append(f"{where}: it must publish to the other parity than it collects from")
        named = [register for port in ("d_e", "d_b", "d_o") if (register := get(port, 0))]
        if len(set(named)) < len(named):
            found.append(f"{where}: two of its destinations d_e, d_b and d_o are the same register")
    threads = launch.cta[0] * launch.cta[1] * launch.cta[2]
    if min(*launch.cta, *launch.grid) < 1:
        found.append(f"grid {launch.grid} and CTA {launch.cta} need sizes of at least 1")
    if threads > tokens.THREADS_PER_CTA:
        found.append(f"CTA of {threads} threads; the machine has {tokens.THREADS_PER_CTA}")
    if launch.grid[0] > 2**31 - 1 or max(launch.grid[1:]) > 0xFFFF:
        found.append(f"grid {launch.grid} is over CUDA's limits (2147483647, 65535, 65535)")
    if len(launch.parameters) != program.parameter_words:
        found.append(f"{program.name}: {program.parameter_words} parameter words, {len(launch.parameters)} given")
    words = FIRST_PARAM + program.parameter_words + len(program.pool)
    if words > PARAM_WORDS:
        found.append(f"{program.name}: {words} parameter and constant words; the machine has {PARAM_WORDS}")
    return found


def upload(launch: Launch) -> list[int]:
    """The prompt before GO: program, parameters, thread rows, grid, allocation map, memory rows, in that order."""
    ids: list[int] = []

    def row(marker: int, bits: int) -> None:
        ids.append(marker)
        ids.extend(bits >> 16 * i & 0xFFFF for i in range(4))

    for index, block in enumerate(launch.program.blocks):
        for part, bits in enumerate(encoding.encode(dict(block.fields))):
            row(tokens.encode("PROGRAM", index, part), bits)
    for index, bits in enumerate(parameter_rows(launch)):
        row(tokens.encode("PARAM", index), bits)
    lanes = thread_rows(launch.cta)
    for quad in range(tokens.QUADS):
        for half in range(2):
            low, high = lanes[quad * 4 + half * 2], lanes[quad * 4 + half * 2 + 1]
            row(tokens.encode("THREADS", quad, half), low | high << 32)
    x, y, z = (size - 1 for size in launch.grid)
    row(tokens.encode("GRID"), x & 0xFFFF | y << 16 | z << 32 | x >> 16 << 48)
    for index, bits in sorted(launch.allocated.items()):
        row(tokens.encode("ALLOC", index), bits)
    for index, (word0, word1) in sorted(launch.rows.items()):
        ids.append(tokens.encode("MEM", index, 0))
        ids.extend(values.row_form(word0, word1))
    return ids


def prompt(launch: Launch) -> list[int]:
    """All the host feeds for a launch: the upload, then GO. Raises ValueError listing every fault of the launch."""
    found = faults(launch)
    if found:
        raise ValueError("\n".join(found))
    return [*upload(launch), tokens.encode("GO")]


def parameter_rows(launch: Launch) -> list[int]:
    """The 64-bit parameter rows: CTA sizes, grid sizes, parameters, constant pool."""
    words: Sequence[int] = [*launch.cta, *launch.grid, *launch.parameters, *launch.program.pool]
    padded = [word & 0xFFFFFFFF for word in words] + [0] * (len(words) % 2)
    return [padded[i] | padded[i + 1] << 32 for i in range(0, len(padded), 2)]


def thread_rows(cta: Dim3) -> list[int]:
    """32 bits for each of the 128 lanes: x in bits 0..7, y in 8..15, z in 16..23, bit 31 set where the lane exists."""
    rows = [0] * tokens.THREADS_PER_CTA
    for thread in range(cta[0] * cta[1] * cta[2]):
        x, y, z = thread % cta[0], thread // cta[0] % cta[1], thread // (cta[0] * cta[1])
        rows[thread] = x | y << 8 | z << 16 | 1 << 31
    return rows
