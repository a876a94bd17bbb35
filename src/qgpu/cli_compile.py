"""What ``qgpu compile`` does: kernels of a source file into a program file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from qgpu.driver.arguments import prototype
from qgpu.driver.code import entries_of
from qgpu.driver.program_file import SUFFIX, save
from qgpu.driver.stock import resolve
from qgpu.errors import CompileError


def compile_to_file(
    file: Path, output: Path | None, names: Sequence[str], compiler: str | None, as_json: bool
) -> None:
    """``output``: None for the name of the source with another ending, in the folder where one is."""
    source = resolve(file)
    if source.suffix == SUFFIX:
        raise CompileError(f"{source}: this is a program file already")
    if output is None:
        output = file.with_suffix(SUFFIX)
    if output.suffix != SUFFIX:
        raise CompileError(f"{output}: give a name that ends in {SUFFIX}, by which qgpu run knows program files")
    entries = entries_of(source, compiler, tuple(names))
    save(output, entries)
    facts = [
        {
            "kernel": entry.name,
            "prototype": prototype(entry.name, entry.parameters),
            "blocks": len(entry.general.blocks),
            "programs": len({id(found) for found in entry.programs.values()}),
        }
        for entry in entries
    ]
    if as_json:
        print(json.dumps({"file": str(output), "kernels": facts}))
        return
    for fact in facts:
        print(f"{fact['prototype']}: {fact['blocks']} blocks")
    print(f"written to {output}")


def print_ptx(file: Path, compiler: str | None, as_json: bool) -> None:
    """``qgpu ptx``: the PTX of a source file as it is compiled, or of a ``.ptx`` file as it is."""
    from qgpu.cuda.compile import ptx_of_file

    ptx = ptx_of_file(resolve(file), compiler)
    if as_json:
        print(json.dumps({"file": ptx.file, "ptx": ptx.text}))
    else:
        print(ptx.text.rstrip("\n"))
