"""A FAULT names the line of the access that missed, in the file where that stands, however a block was put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qgpu
from qgpu.driver.recording import record
from qgpu.isa import encoding
from qgpu.isa.assembly import assemble, disassemble
from qgpu.trace.files import load, save

HEADER = """// Its lines are none of the kernel's file.
__device__ int fetch(const int *a, int i) {
  int at = i * 4;
  return a[at];
}
__device__ void put(int *a, int i, int value) {
  a[i] = value;
}
"""
KERNEL = """#include "deep/help er.cuh"
__global__ void k(const int *a, int *b, int which) {
  int i = threadIdx.x;
  int x = fetch(a,
                which == 0 ? i * 1000 : 0);
  int y = b[which == 1 ? i + 1000 : i];
  y *= 3;
  b[which == 2 ? i + 2000
               : i] = y + x;
  put(b, which == 3 ? i + 3000 : i, y);
  atomicAdd(&b[which == 4 ? 4000 : 0],
            y);
  if (which == 5)
    __trap();
}
"""
BARRIER = encoding.CHOICES["branch"].index("bar")
HELP = str(Path("deep", "help er.cuh"))
WANTED = [(HELP, 4), ("k.cu", 6), ("k.cu", 9), (HELP, 7), ("k.cu", 11), ("k.cu", 14)]
ONE_BLOCK = """__global__ void k(const int *a, int *b, int n) {
  int x = a[threadIdx.x];
  b[threadIdx.x + n] =
      x;
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / HELP).write_text(HEADER)
    (tmp_path / "k.cu").write_text(KERNEL)
    (tmp_path / "one.cu").write_text(ONE_BLOCK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fault(path: str, *scalars: int, compiled: bool = False) -> qgpu.FaultError:
    if compiled:
        from qgpu.driver.code import entries_of
        from qgpu.driver.program_file import save as save_program

        save_program(Path("k.qgpu"), entries_of(Path(path)))
        path = "k.qgpu"
    with qgpu.Device("interpreter") as device:
        kernel = device.module(path).kernel("k")
        with pytest.raises(qgpu.FaultError) as caught:
            kernel[1, 4](device.array(np.arange(4, dtype=np.int32)), device.zeros(4, np.int32), *scalars)
    return caught.value


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("which", range(len(WANTED)))
def test_every_kind_of_access_has_its_line(folder: Path, which: int, compiled: bool) -> None:
    found = fault("k.cu", which, compiled=compiled)
    assert (found.file, found.line) == WANTED[which]
    assert str(found).startswith(f"{found.file}:{found.line}: FAULT in kernel k: ")


def test_a_load_and_a_store_of_one_block_have_lines_of_their_own(folder: Path) -> None:
    with qgpu.Device("interpreter") as device:
        kernel = device.module("one.cu").kernel("k")
        launch = kernel[1, 4](device.zeros(4, np.int32), device.zeros(4, np.int32), 0)
        assert any(block.fields.get("load") and block.fields.get("store") for block in launch.request.program.blocks)
        for arrays, line in (((2, 4), 2), ((4, 2), 3)):
            with pytest.raises(qgpu.FaultError) as caught:
                kernel[1, 4](*(device.zeros(size, np.int32) for size in arrays), 0)
            assert caught.value.line == line


def test_assembly_and_trace_files_keep_where_ports_stand(folder: Path) -> None:
    trace = record(fault("k.cu", 3).launch)
    program = trace.launch.program
    assert {(spot.file, spot.line) for block in program.blocks for spot in (block.spot(), *block.ports.values())} >= {
        (HELP, 4), (HELP, 7), ("", 6), ("", 9)
    }  # fmt: skip
    plain = replace(program, blocks=tuple(replace(block, label="") for block in program.blocks))
    assert assemble(disassemble(plain)) == plain
    save(trace, folder / "k.jsonl")
    assert load(folder / "k.jsonl") == trace
    assert set(trace.sources) == {"k.cu", HELP} and trace.sources[HELP] == HEADER


def test_only_what_lies_beside_the_kernel_is_shown(folder: Path) -> None:
    """Line information may name any file; a trace, which is given to others, holds none but the kernel's own."""
    (folder / "inner").mkdir()
    (folder / "secret.h").write_text("// not to be told\n__device__ int one() { return 1; }\n")
    (folder / "inner" / "k.cu").write_text('#include "../secret.h"\n__global__ void k(int *a) { *a = one(); }\n')
    with qgpu.Device("interpreter") as device:
        launch = device.module("inner/k.cu").kernel("k")[1, 1](device.zeros(1, np.int32))
    assert set(launch.sources) == {str(Path("inner", "k.cu"))}


def test_the_listing_says_where_too(folder: Path) -> None:
    for which, (file, line) in enumerate(WANTED):
        last = str(fault("k.cu", which).launch.trace).splitlines()[-1]
        assert f"{file}:{line}  thread " in last, last


COOPERATIVE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* out) {
  int i = threadIdx.x;
  out[i] = i;
  if (i < 4)
    cg::this_thread_block().sync();
  out[i] = 2;
}
"""


@pytest.mark.parametrize("compiler", ["ziglang", "nvrtc"])
def test_lines_of_our_own_headers_are_the_users_calls(folder: Path, compiler: str) -> None:
    from qgpu.conformance.levels import available
    from qgpu.cuda.pipeline import compile_file

    if compiler == "nvrtc" and available("nvrtc"):
        pytest.skip("NVRTC is not installed")
    (folder / "c.cu").write_text(COOPERATIVE)
    compiled = compile_file(folder / "c.cu", "k", compiler)
    spots = [block.spot() for block in compiled.program.blocks if block.fields.get("branch") == BARRIER]
    assert [spot.line for spot in spots] == [7]
    assert {spot.file for block in compiled.program.blocks for spot in (block.spot(), *block.ports.values())} == {""}


def test_sanitizer_reports_name_the_access(folder: Path) -> None:
    (folder / "s.cu").write_text(
        "__global__ void k(int *out) {\n  __shared__ int s[8];\n  s[threadIdx.x] = 1;\n  int x =\n"
        "    s[threadIdx.x + 4];\n  out[threadIdx.x] = x;\n}\n"
    )
    with qgpu.Device("interpreter") as device:
        with pytest.raises(qgpu.SanitizeError) as caught:
            device.module("s.cu").kernel("k")[1, 4](device.zeros(4, np.int32), sanitize=True)
    (report,) = caught.value.reports
    assert (report.kind, report.file, report.line) == ("uninitialized", "s.cu", 5) and "s.cu:5" in str(report)
