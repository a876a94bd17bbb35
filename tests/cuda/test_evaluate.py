"""The reference evaluator where threads depend on each other: locks, waiting in loops, exits, what never comes."""

import numpy as np
import pytest
from tests.cuda.harness import ir_of, kernel_from_source, launch

from qgpu.cuda.evaluate import Fault, run


def test_a_lock_that_threads_spin_on():
    source = """__global__ void k(int* lock, int* sum, int* trace) {
      bool done = false;
      while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
          int old = *(volatile int*)sum;
          *(volatile int*)sum = old * 2 + 1;
          trace[old & 31] = threadIdx.x;
          __threadfence();
          atomicExch(lock, 0);
          done = true;
        }
      }
    }"""
    for function in kernel_from_source(source):
        found = launch(function, [np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(32, np.int32)], (1,), (5,))
        assert (found[0][0], found[1][0]) == (0, 31)


def test_a_thread_that_waits_for_a_later_one():
    source = """__global__ void k(volatile int* flag, int* out) {
      if (threadIdx.x == 0) { while (*flag == 0) {} out[0] = *flag; } else *flag = 7;
    }"""
    for function in kernel_from_source(source):
        assert launch(function, [np.zeros(1, np.int32), np.zeros(1, np.int32)], (1,), (2,))[1][0] == 7


def test_those_that_have_exited_are_not_waited_for():
    source = """__global__ void k(int* out) {
      if (threadIdx.x & 1) return;
      __syncthreads();
      out[threadIdx.x] = __ballot_sync(0x55, threadIdx.x != 2) + __syncthreads_count(1);
    }"""
    for function in kernel_from_source(source):
        assert launch(function, [np.zeros(8, np.int32)], (1,), (8,))[0].tolist() == [0x51 + 4, 0] * 4


def test_waiting_for_ever_is_a_deadlock():
    body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; bar.sync 0; ret; A: bar.warp.sync 3; ret;"
    function = ir_of(body)
    with pytest.raises(Fault, match="deadlock"):
        run(function, bytes(4), bytearray(64), (1,), (2,))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.b32 %r1, 64; st.global.b32 [%r1], 1; ret;", "global address 0x40"),
        ("mov.b32 %r1, 2; ld.global.b32 %r2, [%r1]; st.global.b32 [8], %r2; ret;", "address 0x2"),
        ("trap;", "trap"),
        ("A: bra A;", "too many steps"),
        ("mov.b32 %r1, 3; T: .branchtargets A, A; brx.idx %r1, T; A: ret;", "beyond the table"),
    ],
)
def test_faults(body, message):
    with pytest.raises(Fault, match=message):
        run(ir_of(body), bytes(4), bytearray(64), limit=20_000)
