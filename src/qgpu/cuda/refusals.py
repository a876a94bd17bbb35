"""What a kernel holds that this machine cannot run, told all at once: the instruction, its place, and what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qgpu.cuda.ptx import SourceLine
from qgpu.errors import UnsupportedError

MOST = 20
"""How many refusals of a kernel are told in full."""


@dataclass(frozen=True)
class Refusal:
    """One thing the machine cannot run: the instruction as PTX text, where it stands, and what to do."""

    kernel: str
    ptx_line: int
    source: SourceLine | None
    instruction: str
    hint: str

    def __str__(self) -> str:
        place = f"PTX line {self.ptx_line}" if self.ptx_line else "PTX"
        if self.source is None:
            return f"  {place}: {self.instruction}\n    {self.hint}"
        written = f"    {self.source.text}\n" if self.source.text else ""
        return f"  {self.source} ({place}): {self.instruction}\n{written}    {self.hint}"


def told(refusals: Iterable[Refusal], kernel: str, file: str) -> str:
    """The message about one kernel, named as in C: the first MOST things in full, of a line each kind of thing once."""
    first: dict[object, Refusal] = {}
    for refusal in refusals:
        first.setdefault((refusal.source or refusal.ptx_line, refusal.hint), refusal)
    unique = list(first.values())
    things = "1 thing" if len(unique) == 1 else f"{len(unique)} things"
    where = f"{file}: " if file else ""
    lines = [f"{where}kernel {kernel} holds {things} this machine cannot run:", *map(str, unique[:MOST])]
    if len(unique) > MOST:
        lines.append(f"  and {len(unique) - MOST} more")
    return "\n".join(lines)


def refuse(refusals: Sequence[Refusal], kernel: str, file: str) -> UnsupportedError:
    """The error to raise for one kernel."""
    return UnsupportedError(told(refusals, kernel, file))
