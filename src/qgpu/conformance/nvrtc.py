"""NVIDIA's run-time compiler as a second, independent source of PTX, through ctypes. It needs no GPU.

It comes with the package ``nvidia-cuda-nvrtc`` or a CUDA toolkit; nothing else of qgpu needs it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path

from qgpu.conformance.table import KERNELS, source_text
from qgpu.cuda.cache import cache_directory, content_key
from qgpu.errors import CompileError

OPTIONS = ("--gpu-architecture=compute_80", "--std=c++17", "-default-device", "--device-int128")
"""compute_80: the first that has redux."""


@cache
def library() -> ctypes.CDLL:
    """The compiler. CompileError, saying what to install, where there is none."""
    for path in [*_in_packages(), "libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13"]:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise CompileError("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")


def _in_packages() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    name = "nvrtc64*.dll" if sys.platform == "win32" else "libnvrtc.so*"
    return sorted(path for folder in folders for path in Path(folder).rglob(name) if "alt" not in path.name)


def compile_source(source: str, name: str) -> str:
    """PTX of CUDA C text. CompileError with the compiler's own messages."""
    nvrtc = library()
    program = ctypes.c_void_p()
    headers = [file for file in sorted(KERNELS.glob("*.cuh"))]
    texts = (ctypes.c_char_p * len(headers))(*(file.read_bytes() for file in headers))
    names = (ctypes.c_char_p * len(headers))(*(file.name.encode() for file in headers))
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), len(headers), texts, names)
    options = (ctypes.c_char_p * len(OPTIONS))(*(option.encode() for option in OPTIONS))
    try:
        if nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options):
            raise CompileError(f"{name} does not compile with NVRTC:\n{_text(nvrtc, program, 'ProgramLog')}")
        return _text(nvrtc, program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode(errors="replace")


def version() -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


@cache
def ptx_file(path: Path) -> Path:
    """A file with NVRTC's PTX of a source file, kept by content. CompileError if there is none."""
    key = content_key("nvrtc", version(), " ".join(OPTIONS), source_text(path))
    folder = cache_directory()
    if folder is None:
        raise CompileError("NVRTC's PTX finds no place: set QGPU_CACHE_DIR to a folder")
    made = folder / "nvrtc" / key[:32] / f"{path.stem}.ptx"
    if not made.exists():
        text = compile_source(path.read_text(encoding="utf-8"), path.name)
        made.parent.mkdir(parents=True, exist_ok=True)
        part = made.with_suffix(f".{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        os.replace(part, made)
    return made
