"""Several launches at a time: the same as one after the other, and every clash told."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import qgpu
from qgpu.driver.parallel import Workers

SOURCE = """#include <cstdio>
__device__ int total = 5;
__global__ void scale(const int* a, int* b, int n) { b[threadIdx.x] = a[threadIdx.x] * n; }
__global__ void count(int n) { atomicAdd(&total, n); }
__global__ void show(int* out) { out[0] = total; printf("total %d\\n", total); }
__global__ void forever(int* a) { while (true) a[0] = a[0] + 1; }
"""


@pytest.fixture
def device():
    with qgpu.Device("interpreter", printed=lambda text: None) as made:
        yield made


def test_launches_are_what_they_are_one_by_one(device):
    kernel = device.kernel(SOURCE, "scale")
    given = device.array(np.arange(4, dtype=np.int32))
    outs = [device.zeros(4) for _ in range(7)]
    calls = [kernel[1, 4].bound(given, out, number) for number, out in enumerate(outs)]
    launches = device.launch_many(calls, workers=2)
    for number, (out, launch) in enumerate(zip(outs, launches, strict=True)):
        assert out.numpy().tolist() == [0, number, 2 * number, 3 * number]
        assert launch.tokens == kernel[1, 4](given, out, number).tokens
    assert device.launch_many([], workers=2) == []


def test_none_sees_what_another_writes(device):
    scale = device.kernel(SOURCE, "scale")
    a, b = device.array([1, 2]), device.array([10, 20])
    device.launch_many([scale[1, 2].bound(a, b, 3), scale[1, 2].bound(b, a, 5)], workers=2)
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([50, 100], [3, 6])


def test_two_that_write_to_one_array_are_told_and_it_stays(device):
    scale, count = device.kernel(SOURCE, "scale"), device.kernel(SOURCE, "count")
    a, b, free = device.array([1, 2]), device.zeros(2, name="sum"), device.zeros(2)
    with pytest.raises(qgpu.LaunchError, match="the array sum by calls 0, 2$"):
        device.launch_many([scale[1, 2].bound(a, out, 3) for out in (b, free, b)])
    assert (b.numpy().tolist(), free.numpy().tolist()) == ([0, 0], [3, 6])
    with pytest.raises(qgpu.LaunchError, match="total by calls 0, 1"):
        device.launch_many([count[1, 1].bound(1), count[1, 1].bound(2)])
    device.launch_many([count[1, 1].bound(1), scale[1, 2].bound(a, b, 1)])
    out = device.zeros(1)
    device.kernel(SOURCE, "show")[1, 1](out)
    assert out.item() == 6


def test_all_may_print():
    said = []
    with qgpu.Device("interpreter", printed=said.append) as device:
        show = device.kernel(SOURCE, "show")
        device.launch_many([show[1, 1].bound(device.zeros(1)) for _ in range(2)])
    assert said == ["total 5\n", "total 5\n"]


def test_one_that_fails_keeps_no_other_from_its_end(device):
    scale = device.kernel(SOURCE, "scale")
    a, b, short = device.array([1, 2]), device.zeros(2), device.zeros(1)
    endless = device.kernel(SOURCE, "forever")[1, 1].bound(device.zeros(1))
    calls = [scale[1, 2].bound(a, short, 3), scale[1, 2].bound(a, b, 3), endless]
    found = device.launch_many(calls, max_tokens=100, errors=True)
    assert [type(one).__name__ for one in found] == ["FaultError", "Launch", "LimitError"]
    assert b.numpy().tolist() == [3, 6] and short.numpy().tolist() == [0]
    with pytest.raises(qgpu.FaultError):
        device.launch_many(calls, max_tokens=100)


def test_what_cannot_be_is_told_before_anything_runs(device):
    scale = device.kernel(SOURCE, "scale")
    a = device.zeros(2)
    with pytest.raises(qgpu.LaunchError, match="workers=0: give at least 1"):
        device.launch_many([scale[1, 2].bound(a, a, 1)], workers=0)
    with pytest.raises(qgpu.LaunchError, match="takes 3 arguments, 2 given"):
        scale[1, 2].bound(a, a)
    with pytest.raises(qgpu.LaunchError, match="CTA of 200 threads"):
        device.launch_many([scale[1, 200].bound(a, a, 1)])


def test_a_worker_that_dies_is_told():
    workers = Workers("interpreter", None, 1)
    workers._processes[0].kill()
    with pytest.raises(qgpu.QgpuError, match="a worker process ended with status -"):
        workers.run([None])
    bad = Workers("nonsense", None, 1)
    with pytest.raises(qgpu.QgpuError, match="there is no engine 'nonsense'"):
        bad.run([None])


ENDLESS = (
    "import qgpu\nwith qgpu.Device('interpreter') as d:\n"
    f"    k = d.kernel({SOURCE!r}, 'forever')\n    print('ready', flush=True)\n"
    "    d.launch_many([k[1, 1].bound(d.zeros(1)) for _ in range(2)], max_tokens=10**9)\n"
)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("after", [0, 0.02, 1])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_caller(how, after):
    """At Ctrl-C, at whatever moment, and even if the caller has no chance to say so."""
    child = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        assert child.stdout.readline() == b"ready\n"
        time.sleep(after)
        os.kill(child.pid, how)
        _, error = child.communicate(timeout=60)  # the workers hold the pipe of errors too: it ends with the last one
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert how == signal.SIGKILL or b"KeyboardInterrupt" in error
