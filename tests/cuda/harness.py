"""Shared steps of the front end's tests: from text to IR, and from arrays to arrays on the reference evaluator."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from qgpu.cuda.compile import compile_cuda, ptx_of_file
from qgpu.cuda.evaluate import run
from qgpu.cuda.frontend import translate
from qgpu.cuda.ir import Function
from qgpu.cuda.optimize import optimize
from qgpu.cuda.ptx import Module
from qgpu.cuda.ptx_parser import parse_ptx

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
NVRTC = Path(__file__).parent / "nvrtc"
OTHERS = Path(__file__).parent / "kernels"

HEAD = ".version 7.0\n.target sm_75\n.address_size 32\n"


def parse(body: str, registers: str = "", parameters: str = ".param .u32 a") -> Module:
    """A module with one kernel k of this body; the body starts on line 8."""
    return parse_ptx(f"{HEAD}.visible .entry k({parameters})\n{{\n{registers}\n\n{body}\n}}\n", "k.ptx")


REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .f32 %f<4>;"


def ir_of(body: str, parameters: str = ".param .u32 a") -> Function:
    """The IR, not optimised, of a kernel of this body with the registers of REGISTERS."""
    return translate(parse(body, REGISTERS, parameters), "k")


@functools.cache
def kernel_from_file(path: Path, name: str) -> tuple[Function, Function]:
    """IR of a kernel before and after optimisation."""
    ptx = ptx_of_file(path)
    function = translate(parse_ptx(ptx.text, ptx.file), name)
    return function, optimize(function)


@functools.cache
def kernel_from_source(source: str, name: str = "k") -> tuple[Function, Function]:
    """IR of a kernel given as CUDA C, before and after optimisation."""
    function = translate(parse_ptx(compile_cuda(source, "test.cu"), "test.cu"), name)
    return function, optimize(function)


def launch(
    function: Function,
    arguments: Sequence[np.ndarray | int],
    grid: Sequence[int] = (1,),
    block: Sequence[int] = (1,),
    dynamic_shared: int = 0,
) -> list[np.ndarray]:
    """Runs a kernel on the reference evaluator; arrays are passed by address and come back as copies."""
    memory = bytearray(64)  # address 0 is nobody's
    places = []
    data = bytearray(sum(parameter.size + 8 for parameter in function.parameters))
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        value = argument
        if isinstance(argument, np.ndarray):
            memory.extend(bytes(-len(memory) % 16))
            value = len(memory)
            places.append((value, argument))
            memory.extend(argument.tobytes())
        mask = (1 << 8 * parameter.size) - 1
        word = (int(value) & mask).to_bytes(parameter.size, "little")
        data[parameter.offset : parameter.offset + parameter.size] = word
    run(function, bytes(data), memory, grid, block, dynamic_shared=dynamic_shared)
    return [
        np.frombuffer(bytes(memory[place : place + array.nbytes]), array.dtype).reshape(array.shape)
        for place, array in places
    ]
