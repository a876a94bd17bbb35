"""The scalar arithmetic of the native engine, compiled: roundings and activations as the stock model has them."""

from __future__ import annotations

import hashlib
from math import exp, log1p
from pathlib import Path

import numba
import numpy as np

F32 = np.float32

# A function that only compiled code calls: it needs no wrapper for Python, and its code goes into its caller's
# cache. It makes no arrays, so the caller's references are enough: counting them anew costs more than the arithmetic.
compiled = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, error_model="numpy")
# The same, for what is called once an item: handing over a dozen arrays costs more than the work.
inlined = numba.njit(
    no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, error_model="numpy", forceinline=True
)


def sources() -> str:
    """A hash over the compiled modules, for functions with a cache to close over: numba looks at their own file
    alone."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("native_*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@compiled
def rounded(x, bf):  # type: ignore[no-untyped-def]
    """x, or with ``bf`` the nearest bfloat16 (ties to even), as float32."""
    if not bf:
        return F32(x)
    bits = np.uint32(F32(x).view(np.uint32))
    bits = np.uint32((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000))
    return bits.view(np.float32)


@compiled
def silu(x):  # type: ignore[no-untyped-def]
    if x >= F32(20):  # 1 + exp(-x) is 1 in float32
        return F32(x)
    if x <= F32(-88):  # below the smallest normal number
        return F32(0)
    return F32(x / (F32(1) + F32(exp(-x))))


@compiled
def sigmoid(x):  # type: ignore[no-untyped-def]
    if x <= F32(-88):
        return F32(0)
    return F32(F32(1) / (F32(1) + F32(exp(-x))))


@compiled
def softplus(x):  # type: ignore[no-untyped-def]
    if x > F32(20):
        return F32(x)
    if x < F32(-88):
        return F32(0)
    return F32(log1p(exp(x)))


@compiled
def mlp_value(gate, up, bf):  # type: ignore[no-untyped-def]
    """What a neuron hands to its column of down_proj. ``gate``, ``up``: pre-activations, rounded."""
    return rounded(rounded(silu(gate), bf) * up, bf)
