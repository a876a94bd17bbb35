"""CUDA C to PTX: finds a compiler, runs it, and passes its diagnostics on as the user's own.

The clang inside the ``ziglang`` wheel is the default; no CUDA toolkit is needed. Another clang with the NVPTX back end
or NVRTC will do as well. A ``.ptx`` file passes through, and a ``.cu`` file with fresh prebuilt PTX beside it (see
`prebuilt_stamp`) needs no compiler at all.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from qgpu.cuda import nvrtc
from qgpu.cuda.cache import content_key, load, store
from qgpu.errors import CompileError

PACKAGE = Path(__file__).parent
HEADER = PACKAGE / "device.cuh"
INCLUDE = PACKAGE / "include"

# -m32 makes pointers 32 bits wide as on the machine. Code generation is for size: on the machine every instruction
# costs tokens, unrolling none. -disable-lsr keeps array indices instead of making more pointers that live in loops.
# -fno-finite-loops: C++ lets a compiler remove a loop that never ends, but whoever writes one wants to see it run.
# -gline-directives-only adds .loc and changes no instruction. One table, since these flags are part of every cache key.
FLAGS = (
    "--target=x86_64-unknown-linux-gnu -m32 -malign-double -x cuda --cuda-device-only --cuda-gpu-arch=sm_75 "
    "-nocudainc -nocudalib -nostdinc --cuda-feature=+ptx64 -std=c++17 -w -S -Oz -fno-jump-tables -fno-finite-loops "
    "-mllvm -disable-lsr -mllvm -nvptx-sched4reg -gline-directives-only -ffile-compilation-dir=."
).split()
DIAGNOSTICS = ["-fno-color-diagnostics", "-ferror-limit=20"]
MINIMUM_CLANG = 22
REMEDY = "install the usual one with: pip install ziglang==0.17.1 (or set QGPU_CLANG to a clang with NVPTX)"
TIMEOUT_SECONDS = 120

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(include|embed)|__has_(include|embed)", re.MULTILINE)
_STAMP = "// qgpu-source: "


COMPILERS: dict[str, str] = {
    "ziglang": "the clang inside the ziglang package",
    "clang": "a clang on the PATH, or the one that QGPU_CLANG names",
    "nvrtc": "NVRTC, from the package nvidia-cuda-nvrtc-cu12 or a CUDA toolkit",
}
"""What can be asked for by name; without a name, the first that is there of QGPU_CLANG, ziglang and clang."""


@dataclass(frozen=True)
class Compiler:
    """A compiler that can be called. ``command``: what stands before clang's flags, empty for NVRTC. ``version``: tells
    it from others."""

    command: tuple[str, ...]
    version: str


@dataclass(frozen=True)
class PtxText:
    """PTX and where it came from: ``file`` is the name for messages about lines of the PTX itself, ``sources`` the
    user's texts by name, as far as they are at hand."""

    text: str
    file: str
    sources: Mapping[str, str] = field(default_factory=dict)


@cache
def find_compiler(name: str | None = None) -> Compiler:
    """The compiler to use: a row of COMPILERS, or None for the usual one.

    Raises CompileError, saying what to install, when there is none.
    """
    if name is not None and name not in COMPILERS:
        known = ", ".join(f"{known} ({what})" for known, what in COMPILERS.items())
        raise CompileError(f"there is no compiler called {name!r}; there are: {known}")
    if name == "nvrtc":
        return Compiler((), nvrtc.version())
    chosen = os.environ.get("QGPU_CLANG")
    if chosen and name != "ziglang":
        return _clang_at(chosen)
    zig = _ziglang()
    if zig is not None and name != "clang":
        return zig
    path = shutil.which("clang") if name != "ziglang" else None
    if path is None:
        missing = {None: "no compiler for CUDA C", "clang": "no clang on the PATH", "ziglang": "no ziglang package"}
        raise CompileError(f"there is {missing[name]}: {REMEDY}")
    return _clang_at(path)


def _ziglang() -> Compiler | None:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    zig = Path(spec.origin).parent / ("zig.exe" if sys.platform == "win32" else "zig")
    return Compiler((str(zig), "clang"), _version((str(zig), "clang"))) if zig.exists() else None


def _clang_at(path: str) -> Compiler:
    """A clang of the user's own, if it is one that can do the work."""
    version = _version((path,))
    major = re.search(r"version (\d+)", version)
    if major is None or int(major[1]) < MINIMUM_CLANG:
        raise CompileError(f"{path} is {version!r}, but clang {MINIMUM_CLANG} or newer is needed: {REMEDY}")
    if "nvptx" not in _run([path, "--print-targets"], ""):
        raise CompileError(f"{path} has no NVPTX back end: {REMEDY}")
    return Compiler((path,), version)


def _version(command: Sequence[str]) -> str:
    return (_run([*command, "--version"], "").splitlines() or [""])[0]


def _run(command: Sequence[str], stdin: str) -> str:
    """Standard output of a command. Raises CompileError with its standard error as text."""
    try:
        result = subprocess.run(
            command, input=stdin, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_SECONDS
        )
    except OSError as error:
        raise CompileError(f"the compiler {command[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CompileError(f"the compiler was stopped after {TIMEOUT_SECONDS} seconds") from None
    if result.returncode != 0:
        raise CompileError(result.stderr.strip() or f"the compiler ended with status {result.returncode}")
    return result.stdout


def compile_cuda(source: str, name: str, *, directory: Path | None = None, compiler: str | None = None) -> str:
    """PTX of CUDA C source text.

    name: the file name for diagnostics and for the line information in the PTX, as the user wrote it.
    directory: where ``#include "..."`` looks first; none by default.
    compiler: a row of COMPILERS, None for the usual one.
    Results are cached by content, flags and compiler. Raises CompileError with the compiler's own diagnostics.
    """
    chosen = find_compiler(compiler)
    if not chosen.command:
        return _with_nvrtc(chosen, source, name, directory)
    flags = [*FLAGS, *DIAGNOSTICS, f"--cuda-path={INCLUDE}", "-isystem", str(INCLUDE), "-include", str(HEADER)]
    if directory is not None:
        flags += ["-iquote", str(directory)]
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    stdin = f'# 1 "{quoted}"\n{source}'
    # What a file includes belongs to its content: then the preprocessed text is the key, and costs one more run.
    content = stdin
    if _INCLUDE.search(source):
        content = _clang(chosen, [*flags, "-E"], stdin, name)
    key = content_key(chosen.version, " ".join(FLAGS), header_text(), content)
    ptx = load(key, "ptx")
    if ptx is None:
        ptx = _clang(chosen, flags, stdin, name)
        store(key, "ptx", ptx)
    return ptx


def _with_nvrtc(chosen: Compiler, source: str, name: str, directory: Path | None) -> str:
    """PTX by NVRTC. It cannot show what a file includes, so that files with own includes are always compiled anew."""
    options = [f"-I{INCLUDE}", *([f"-I{directory}"] if directory is not None else [])]
    own = set(re.findall(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)', source, re.MULTILINE))
    known = own <= set(system_headers())
    key = content_key(chosen.version, " ".join(nvrtc.OPTIONS), header_text(), name, source)
    ptx = load(key, "ptx") if known else None
    if ptx is None:
        try:
            ptx = nvrtc.compile_to_ptx(source, name, options)
        except CompileError as error:
            host = "\n(NVRTC compiles kernels only: leave main() out, or use another compiler)"
            hint = host if "host function" in str(error) or re.search(r"\bmain\s*\(", source) else ""
            raise _does_not_compile(name, str(error), hint) from None
        # NVRTC writes the whole path; messages name files as the user does.
        ptx = ptx.replace(f'"{os.path.abspath(name)}"', f'"{name}"')
        if known:
            store(key, "ptx", ptx)
    return ptx


def _clang(compiler: Compiler, flags: Sequence[str], stdin: str, name: str) -> str:
    try:
        return _run([*compiler.command, *flags, "-", "-o", "-"], stdin)
    except CompileError as error:
        raise _does_not_compile(name, str(error)) from None


def _does_not_compile(name: str, diagnostics: str, hint: str = "") -> CompileError:
    if re.search(r"file not found|could not open source file", diagnostics):
        hint += f"\n(of the system's headers these are there: {', '.join(system_headers())})"
    return CompileError(f"{name} does not compile:\n{_only_the_users(diagnostics)}{hint}")


def system_headers() -> list[str]:
    """The names of the headers that a file may include, beside its own."""
    return sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*") if path.is_file())


_MESSAGE = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(\d+:)? (?P<kind>fatal error|error|warning|note): ")
_COUNT = re.compile(r"^\d+ (errors?|warnings?)( and \d+ errors?)? generated")


def _only_the_users(diagnostics: str) -> str:
    """Clang's diagnostics without its closing count and without notes that point into our own headers."""
    kept = []
    keeping = True
    for line in diagnostics.splitlines():
        message = _MESSAGE.match(line)
        if message:
            keeping = not (message["kind"] == "note" and message["file"].startswith(str(PACKAGE)))
        if keeping and not _COUNT.match(line):
            kept.append(line.replace(f"{PACKAGE}{os.sep}", "qgpu/cuda/"))
    return "\n".join(kept)


@cache
def header_text() -> str:
    """All of our own headers as one text: part of every key, so that a change of theirs compiles anew."""
    files = [*sorted(PACKAGE.glob("*.cuh")), *sorted(path for path in INCLUDE.rglob("*") if path.is_file())]
    return "\n".join(f"{path.name}\n{path.read_text(encoding='utf-8')}" for path in files)


def read_source(path: Path) -> str:
    """Text of a source file, newlines made plain. Raises CompileError when it cannot be read as UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CompileError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise CompileError(f"{path}: this is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise CompileError(f"{path}: {error.strerror}") from None


def ptx_of_file(path: str | Path, compiler: str | None = None) -> PtxText:
    """PTX of a ``.ptx`` file (as it is) or of a ``.cu`` file (prebuilt if fresh, else compiled).

    compiler: a row of COMPILERS, which then compiles whatever has been built ahead; None for the usual one.
    Raises CompileError when the file cannot be read, has another ending, or does not compile.
    """
    path = Path(path)
    if path.suffix == ".ptx":
        return PtxText(read_source(path), str(path))
    if path.suffix not in (".cu", ".cuh"):
        raise CompileError(f"{path}: expected CUDA C (.cu) or PTX (.ptx), by the file's ending")
    source = read_source(path)
    prebuilt = path.with_suffix(".ptx")
    if compiler is None and prebuilt.exists():
        text = read_source(prebuilt)
        if text.startswith(prebuilt_stamp(source)):
            return PtxText(text, str(prebuilt), {path.name: source})
    ptx = compile_cuda(source, str(path), directory=path.parent, compiler=compiler)
    return PtxText(ptx, f"PTX of {path}", {str(path): source, **_included(ptx, path)})


def _included(ptx: str, path: Path) -> dict[str, str]:
    """The texts of what a file has included from its own folder or below, by their names in line information."""
    found = {}
    for name in map(os.path.normpath, re.findall(r'^[ \t]*\.file[ \t]+\d+[ \t]+"([^"\n]+)"', ptx, re.MULTILINE)):
        other = Path(name)
        if other.resolve() != path.resolve() and other.resolve().is_relative_to(path.parent.resolve()):
            with contextlib.suppress(CompileError):
                found[name] = read_source(other)
    return found


def prebuilt_stamp(source: str) -> str:
    """The first line of PTX built ahead of time from ``source``: it changes with the source, our headers and flags."""
    return f"{_STAMP}{content_key(' '.join(FLAGS), header_text(), source)}\n"


def build_ahead(path: Path) -> str:
    """The prebuilt PTX for ``path``: a stamp, then PTX whose line information names the bare file, not its folder."""
    source = read_source(path)
    return prebuilt_stamp(source) + compile_cuda(source, path.name, directory=path.parent, compiler="ziglang")
