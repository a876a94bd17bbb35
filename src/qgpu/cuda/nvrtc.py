"""NVRTC, NVIDIA's own compiler of CUDA C to PTX, called through ctypes: a second compiler, which needs no GPU either.

It comes with ``pip install nvidia-cuda-nvrtc-cu12`` or with a CUDA toolkit.
"""

import ctypes
import ctypes.util
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from qgpu.errors import CompileError

REMEDY = "install it with: pip install nvidia-cuda-nvrtc-cu12 (or set CUDA_PATH to a CUDA toolkit)"
OPTIONS = (
    "--gpu-architecture=compute_80 --std=c++17 --generate-line-info --device-as-default-execution-space "
    "--disable-warnings --no-display-error-number --pre-include=stdint.h --pre-include=limits.h"
).split()
_NAMES = ("libnvrtc.so*", "nvrtc64_*.dll", "libnvrtc*.dylib")


def _places() -> Iterator[Path]:
    """Folders in which the library may lie: of the wheels (all versions), then of a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        for folder in ("cuda_nvrtc", "cu13", "cu12"):
            yield from (Path(root) / folder / part for part in ("lib", "bin", "bin/x86_64"))
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        if os.environ.get(variable):
            yield from (Path(os.environ[variable]) / part for part in ("lib64", "lib", "bin"))


def find_library() -> str | None:
    """The path or name of the library, None if there is none."""
    for place in _places():
        for pattern in _NAMES:
            for path in sorted(place.glob(pattern), reverse=True):
                if "builtins" not in path.name and ".alt." not in path.name:
                    return str(path)
    return ctypes.util.find_library("nvrtc")


@cache
def _library() -> ctypes.CDLL:
    path = find_library()
    if path is None:
        raise CompileError(f"NVRTC is not there: {REMEDY}")
    try:
        if sys.platform == "win32" and os.path.isabs(path):
            os.add_dll_directory(str(Path(path).parent))
        library = ctypes.CDLL(path)
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise CompileError(f"NVRTC cannot be loaded: {error}") from None
    return library


def version() -> str:
    """Which NVRTC this is. Raises CompileError when there is none."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"NVRTC {major.value}.{minor.value}"


def _check(status: int) -> None:
    if status:
        raise CompileError(f"NVRTC: {_library().nvrtcGetErrorString(status).decode()}")


def compile_to_ptx(source: str, name: str, options: Sequence[str] = ()) -> str:
    """PTX of CUDA C text. Raises CompileError with the compiler's diagnostics, which name ``name`` and its lines."""
    library = _library()
    program = ctypes.c_void_p()
    text = source.encode()
    if b"\0" in text:
        raise CompileError(f"{name}: this is not text (a character 0)")
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None))
    try:
        chosen = [option.encode() for option in (*OPTIONS, *options)]
        status = library.nvrtcCompileProgram(program, len(chosen), (ctypes.c_char_p * len(chosen))(*chosen))
        if status:
            raise CompileError(_text(program, "ProgramLog").strip() or library.nvrtcGetErrorString(status).decode())
        return _text(program, "PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, what: str) -> str:
    """One of the texts a program has: its PTX or its log."""
    library = _library()
    size = ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value + 1)
    _check(getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.value.decode("utf-8", "replace")
