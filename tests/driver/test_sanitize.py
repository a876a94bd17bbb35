"""The sanitizer against kernels whose fault is known, and the same kernels mended; and against kernels of the
conformance table, whose oracle has refused whatever depends on the order of threads."""

import numpy as np
import pytest

from qgpu.conformance import levels
from qgpu.conformance.table import table
from qgpu.driver import Device
from qgpu.driver.kernel import Kernel
from qgpu.errors import FaultError, SanitizeError

# name -> (body, CTA, what is reported, line of the body, thread), the mended body after a line of dashes
CASES = {
    "read before write": (
        "__shared__ int s[8];\nif (t < 5) s[t] = t;\n__syncthreads();\nout[t] = s[t ^ 1];",
        "__shared__ int s[8];\ns[t] = t;\n__syncthreads();\nout[t] = s[t ^ 1];",
        8, "Uninitialized __shared__ memory read of size 4 bytes", 4, (4, 0, 0),
    ),
    "read of the CTA before": (
        "__shared__ int s[8];\nif (blockIdx.x == 0) s[t] = t;\n__syncthreads();\nout[t] = s[t];",
        "__shared__ int s[8];\nif (blockIdx.x < 9) s[t] = t;\n__syncthreads();\nout[t] = s[t];",
        8, "Uninitialized __shared__ memory read of size 4 bytes", 4, (0, 0, 0),
    ),
    "atomic before write": (
        "__shared__ int s;\natomicAdd(&s, 1);\n__syncthreads();\nout[t] = s;",
        "__shared__ int s;\nif (t == 0) s = 0;\n__syncthreads();\natomicAdd(&s, 1);\n__syncthreads();\nout[t] = s;",
        8, "Uninitialized __shared__ memory atomic of size 4 bytes", 2, (0, 0, 0),
    ),
    "local": (
        "int a[4];\na[out[t] & 3] = 4;\nfor (int i = 0; i < 4; i++) out[i] += a[i];",
        "int a[4] = {};\na[out[t] & 3] = 4;\nfor (int i = 0; i < 4; i++) out[i] += a[i];",
        1, "Uninitialized __local__ memory read of size 4 bytes", 3, (0, 0, 0),
    ),
    "read after write": (
        "__shared__ int s[8];\ns[t] = t;\nout[t] = s[t ^ 1];",
        "__shared__ int s[8];\ns[t] = t;\n__syncwarp();\nout[t] = s[t ^ 1];",
        8, "(RAW hazard)", 3, (0, 0, 0),
    ),
    "write after read, across warps": (
        "__shared__ int s[64];\ns[t] = t;\n__syncthreads();\nout[t & 7] = s[63 - t] > 99;\n__syncwarp();\ns[t] = 5;",
        "__shared__ int s[64];\ns[t] = t;\n__syncthreads();\nout[t & 7] = s[63 - t] > 99;\n__syncthreads();\ns[t] = 5;",
        64, "hazard)", None, None,
    ),
    "writes of different values": (
        "__shared__ int s;\ns = t;\n__syncthreads();\nout[t] = s;",
        "__shared__ int s;\ns = 7;\n__syncthreads();\nout[t] = s;",
        8, "(WAW hazard)", 2, (1, 0, 0),
    ),
    "atomic beside a write": (
        "__shared__ int s;\nif (t == 0) s = 0;\n__syncthreads();\nif (t < 7) atomicAdd(&s, 1); else s = 9;\n"
        "__syncthreads();\nout[t] = s;",
        "__shared__ int s;\nif (t == 7) s = 9;\n__syncthreads();\natomicAdd(&s, 1);\n__syncthreads();\nout[t] = s;",
        8, "(atomic hazard)", None, (7, 0, 0),
    ),
    "exited before a barrier": (
        "__shared__ int s[8];\nif (t > 5) return;\ns[t] = t;\n__syncthreads();\nout[t] = s[5 - t];",
        "__shared__ int s[8];\nif (t < 6) s[t] = t;\n__syncthreads();\nif (t < 6) out[t] = s[5 - t];",
        8, "thread (6,0,0) and 1 more exited without arriving", None, (0, 0, 0),
    ),
    "two barriers": (
        "if (t & 1) {\nout[0] = 1; __syncthreads(); out[1] = 4;\n} else {\nout[2] = 5; __syncthreads(); out[3] = 7;\n}",
        "if (t & 1) out[0] = 1;\n__syncthreads();\nif (t & 1) out[1] = 4;",
        8, "and 3 more arrived at another barrier", 4, (0, 0, 0),
    ),
}  # fmt: skip


def launch(body: str, cta: int, grid: int = 2):
    device = Device("interpreter")
    out = device.zeros(8)
    kernel = device.kernel(f"__global__ void k(int* out) {{ int t = threadIdx.x;\n{body}\n}}")
    return kernel[grid, cta](out, sanitize=True)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_reported_with_its_place_and_a_mended_kernel_is_not(name):
    body, mended, cta, text, line, thread = CASES[name]
    with pytest.raises(SanitizeError) as error:
        launch(body, cta)
    found = [report for report in error.value.reports if text in str(report)]
    assert found and str(found[0]) in str(error.value)
    if line is not None:
        assert found[0].line == line + 1 and f"kernel.cu:{line + 1}" in str(found[0])
    if thread is not None:
        assert found[0].thread == thread
    assert error.value.launch.ended == "HALT" and error.value.launch.reports == error.value.reports
    assert launch(mended, cta).reports == ()


def test_a_report_in_full():
    with pytest.raises(SanitizeError) as error:
        launch(CASES["read after write"][0], 2, 1)
    assert str(error.value) == (
        "k does what CUDA leaves undefined: 1 report\n"
        "Race reported between Write access by thread (1,0,0) at kernel k, block b0 in kernel.cu:3\n"
        "    and Read access by thread (0,0,0) at kernel k, block b2 in kernel.cu:4 (RAW hazard)\n"
        "    Address 0x3004, byte 4 of s, in CTA (0,0,0)\n"
        "    (and 1 more like it)"
    )


def test_a_lock_orders_its_threads():
    body = """__shared__ int lock, sum;
    if (t == 0) lock = sum = 0;
    __syncthreads();
    for (int done = 0; !done;) if (atomicCAS(&lock, 0, 1) == 0) { sum = sum + t; atomicExch(&lock, 0); done = 1; }
    __syncthreads();
    out[t] = sum;"""
    assert launch(body, 8).reports == ()
    with pytest.raises(SanitizeError, match="Race reported"):
        launch(body.replace("if (atomicCAS(&lock, 0, 1) == 0)", "").replace("atomicExch(&lock, 0);", ""), 8)


def test_reports_before_a_fault_are_told_with_it():
    with pytest.raises(FaultError, match=r"(?s)Invalid __global__ write .*\nUninitialized __shared__ memory read"):
        launch(CASES["read before write"][0] + "\n__syncthreads();\nout[t + 8] = 1;", 8)


def test_nothing_is_reported_unless_it_is_asked_for():
    device = Device("interpreter")
    out = device.zeros(8)
    body = CASES["read after write"][0]
    kernel = device.kernel(f"__global__ void k(int* out) {{ int t = threadIdx.x;\n{body}\n}}")
    assert kernel[1, 8](out).reports == ()
    with pytest.raises(SanitizeError):
        kernel[1, 8](out, sanitize=True)
    assert sorted(out.numpy()) == list(range(8))  # the arrays are what the launch made of them


DIVERGENT = {"compact_by_atomics", "exit_before_barrier", "barrier_on_both_ways", "barrier_while_some_leave"}
SOME = ("reduce", "scan", "barrier", "shared", "lock", "exit_before", "local", "histogram", "transpose", "compact_by")


def rows():
    return [name for name in table() if any(part in name for part in SOME)]


@pytest.mark.parametrize("name", rows())
def test_the_table_holds_no_races_and_no_uninitialised_reads(name):
    """The rows that leave or part before a barrier do so on purpose: hardware lets them, CUDA's text does not."""
    one, device = table()[name], levels.device("interpreter")
    values = [levels._place(device, part) if isinstance(part, np.ndarray) else part for part in one.arguments]
    kernel = Kernel(device, levels.code_of(one, "clang"))[one.grid, one.cta, one.shared]
    if name not in DIVERGENT:
        assert kernel(*values, sanitize=True).reports == ()
        return
    with pytest.raises(SanitizeError) as error:
        kernel(*values, sanitize=True)
    assert {report.kind for report in error.value.reports} == {"barrier"}
