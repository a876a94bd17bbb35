"""The source lines of blocks: those of the kernel's own file, and no others under its name."""

from pathlib import Path

from qgpu.cuda.pipeline import compile_file

HELPER = """// Far enough down that its lines are none of the kernel's file.
""" + "\n" * 20 + """
__device__ __noinline__ int steps(int value) {
  int count = 0;
  while (value != 1) {
    value = value & 1 ? 3 * value + 1 : value / 2;
    count++;
  }
  return count;
}
"""
KERNEL = """#include "helper.cuh"
__global__ void collatz(int* a) {
  int i = threadIdx.x;
  a[i] = steps(a[i]);
}
"""


def test_lines_of_a_header_are_not_taken_for_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "helper.cuh").write_text(HELPER)
    (tmp_path / "kernel.cu").write_text(KERNEL)
    compiled = compile_file(tmp_path / "kernel.cu")
    assert len(compiled.lines) > 4
    assert set(compiled.lines) == {0, 4}
    assert compiled.lines[0] == compiled.lines[-1] == 4


def test_ptx_has_the_lines_of_the_source_that_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL.replace('#include "helper.cuh"', HELPER))
    compiled = compile_file(tmp_path / "kernel.cu")
    (tmp_path / "other.ptx").write_text(compiled.ptx.text)
    text = (tmp_path / "kernel.cu").read_text().splitlines()
    run = [text[line - 1].strip() for line in compiled.lines]
    assert run[0] == run[-1] == "a[i] = steps(a[i]);" and "while (value != 1) {" in run
    assert compile_file(tmp_path / "other.ptx").lines == compiled.lines
