"""What a kernel takes, as its author wrote it: C types out of the mangled name, parameter names out of the source.

PTX itself only says sizes. A name that is not mangled (``extern "C"``, hand-written PTX) tells no types: then every
parameter takes what its size allows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.cuda.ir import KernelParameter
from qgpu.cuda.ptx import readable_name


@dataclass(frozen=True)
class Scalar:
    """An integer type: bytes on the machine (where pointers and ``long`` have 32 bits), and whether it is signed."""

    name: str
    size: int
    signed: bool

    def holds(self, value: int) -> bool:
        low = -(1 << 8 * self.size - 1) if self.signed else 0
        return low <= value < low + (1 << 8 * self.size)


_INTEGERS = {
    "a": Scalar("signed char", 1, True),
    "c": Scalar("char", 1, True),
    "h": Scalar("unsigned char", 1, False),
    "b": Scalar("bool", 1, False),
    "s": Scalar("short", 2, True),
    "t": Scalar("unsigned short", 2, False),
    "i": Scalar("int", 4, True),
    "j": Scalar("unsigned int", 4, False),
    "l": Scalar("long", 4, True),
    "m": Scalar("unsigned long", 4, False),
    "x": Scalar("long long", 8, True),
    "y": Scalar("unsigned long long", 8, False),
}
_QUALIFIERS = {"r": "", "V": "volatile", "K": "const"}
_OTHERS = {"f": "float", "d": "double", "v": "void", "Dh": "half"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel. ``name``: from the source, or ``arg0`` ... ``pointer``: None if it could be both.

    ``element``: what a pointer points to, or a scalar's own type; None if unknown. ``text``: the C type as people write
    it, "" if unknown. ``const``: nothing is written through this pointer.
    """

    name: str
    offset: int
    size: int
    pointer: bool | None
    element: Scalar | None
    text: str = ""
    const: bool = False


class _Demangler:
    """Reads the parameter types of an Itanium-mangled name; gives up (ValueError) on what kernels rarely have."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.seen: list[str] = []  # substitution candidates, in order

    def types(self) -> list[str]:
        found = []
        while self.at < len(self.text):
            found.append(self.type())
        return [] if found == ["void"] else found

    def type(self) -> str:
        """The next type, in C from inside out: ``int const*`` is written ``const int*``."""
        letter = self._take()
        if letter in "PRO":
            inner = self.type()
            return self._remember(inner + {"P": "*", "R": "&", "O": "&&"}[letter])
        if letter in _QUALIFIERS:  # all qualifiers of one type are one substitution candidate
            words = [_QUALIFIERS[letter]]
            while self.text[self.at : self.at + 1] in _QUALIFIERS:
                words.insert(0, _QUALIFIERS[self._take()])
            inner, word = self.type(), " ".join(filter(None, words))
            return self._remember((f"{inner} {word}" if inner.endswith("*") else f"{word} {inner}").strip())
        if letter == "S":
            return self._substitution()
        if letter == "D":
            letter += self._take()
        if letter in _INTEGERS:
            return _INTEGERS[letter].name
        if letter in _OTHERS:
            return _OTHERS[letter]
        if letter.isdigit():
            self.at -= 1
            match = re.match(r"\d+", self.text[self.at :])
            assert match is not None
            self.at += match.end()
            name = self.text[self.at : self.at + int(match[0])]
            self.at += len(name)
            return self._remember(name)
        raise ValueError(self.text)

    def _take(self) -> str:
        if self.at >= len(self.text):
            raise ValueError(self.text)
        self.at += 1
        return self.text[self.at - 1]

    def _remember(self, found: str) -> str:
        self.seen.append(found)
        return found

    def _substitution(self) -> str:
        end = self.text.find("_", self.at)
        if end < 0:
            raise ValueError(self.text)
        digits = self.text[self.at : end]
        self.at = end + 1
        index = int(digits, 36) + 1 if digits else 0
        if index >= len(self.seen):
            raise ValueError(self.text)
        return self.seen[index]


def parameter_types(mangled: str) -> list[str] | None:
    """The C types of a kernel's parameters, e.g. ``_Z3dotPKiS0_Pii`` -> ["const int*", "const int*", "int*", "int"].

    None for a name that is not mangled, or that holds what this reader does not know (templates, namespaces).
    """
    match = re.match(r"_Z(\d+)", mangled)
    if not match:
        return None
    start = match.end() + int(match[1])
    try:
        return _Demangler(mangled[start:]).types()
    except (ValueError, RecursionError):
        return None


def parameter_names(source: str, kernel: str) -> list[str] | None:
    """The names a kernel's parameters have in CUDA C source text, or None where that cannot be read."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    match = re.search(rf"__global__[^;{{}}]*?\b{re.escape(kernel.split('::')[-1])}\s*\(([^()]*)\)", text)
    if not match:
        return None
    names = []
    for part in match[1].split(",") if match[1].strip() not in ("", "void") else []:
        name = re.search(r"([A-Za-z_]\w*)\s*(\[\s*\w*\s*\])?\s*$", part.split("=")[0])
        if not name:
            return None
        names.append(name[1])
    return names


def signature(mangled: str, parameters: Sequence[KernelParameter], source: str | None) -> tuple[Parameter, ...]:
    """What is known of each parameter. ``mangled``: the kernel's name in the PTX; ``source``: its CUDA C, or None."""
    types = parameter_types(mangled)
    names = parameter_names(source, readable_name(mangled)) if source is not None else None
    if types is not None and len(types) != len(parameters):
        types = None
    if names is None or len(names) != len(parameters) or len(set(names)) != len(names):
        names = [f"arg{index}" for index in range(len(parameters))]
    return tuple(
        _parameter(name, parameter, text)
        for name, parameter, text in zip(names, parameters, types or [""] * len(parameters), strict=True)
    )


def _parameter(name: str, parameter: KernelParameter, text: str) -> Parameter:
    by_name = {scalar.name: scalar for scalar in _INTEGERS.values()}
    if parameter.size == 8:  # where pointers have 64 bits, long has; a long of 8 bytes says so by itself
        by_name |= {name: Scalar(name, 8, not name.startswith("u")) for name in ("long", "unsigned long")}
    pointer: bool | None = True if parameter.pointer else None if not text else text.endswith(("*", "&"))
    if not text and parameter.size not in (4, 8):
        pointer = False
    element: Scalar | None = None
    const = False
    if text:
        inner = text.rstrip("*&") if pointer else text
        const = bool(pointer) and "const" in inner.split() and text.count("*") == 1
        bare = " ".join(word for word in inner.split() if word not in ("const", "volatile"))
        element = by_name.get(bare) if text.count("*") <= 1 else None
    return Parameter(name, parameter.offset, parameter.size, pointer, element, text, const)
