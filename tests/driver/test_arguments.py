"""Binding arguments: order and names, types, and the words that are passed."""

import re

import numpy as np
import pytest

from qgpu.cuda.ir import KernelParameter
from qgpu.driver import Device
from qgpu.driver.arguments import order, prototype, words
from qgpu.driver.ctypes import signature
from qgpu.driver.dtypes import DTYPES
from qgpu.errors import LaunchError


def parameters(mangled: str, sizes: list[int], source: str | None = None):
    placed, offset = [], 0
    for size in sizes:
        offset = -(-offset // size) * size
        placed.append(KernelParameter(f"p{offset}", f"u{8 * size}", offset, size, size, False))
        offset += size
    return signature(mangled, placed, source)


DOT = parameters("_Z3dotPKiS0_Pii", [4, 4, 4, 4], "__global__ void dot(const int* a, const int* b, int* out, int n) {}")


def test_a_prototype_is_what_the_author_wrote():
    assert prototype("dot", DOT) == "dot(const int* a, const int* b, int* out, int n)"
    assert prototype("k", parameters("k", [4, 2])) == "k(32 bits arg0, 16 bits arg1)"


def test_order_by_position_and_by_name():
    assert order("dot", DOT, [1, 2, 3, 4], {}) == [1, 2, 3, 4]
    assert order("dot", DOT, [1, 2], {"out": 3, "a": 4}) == [4, 1, 3, 2]
    assert order("k", (), [], {}) == []


@pytest.mark.parametrize(
    ("positional", "named", "message"),
    [
        ([1, 2, 3], {}, r"^dot\(const int\* a, .*\): it takes 4 arguments, 3 given$"),
        ([1, 2, 3, 4, 5], {}, "it takes 4 arguments, 5 given"),
        ([1, 2, 3], {"m": 4}, "there is no parameter m$"),
        ([1, 2, 3, 4], {"m": 4}, "there is no parameter m; it takes 4 arguments, 5 given"),
    ],
)
def test_a_wrong_number_or_name(positional, named, message):
    with pytest.raises(LaunchError, match=message):
        order("dot", DOT, positional, named)


def test_words_of_every_size():
    sizes = parameters("_Z1kcsixhj", [1, 2, 4, 8, 1, 4])
    values = [-1, -2, -3, -(2**63) + 5, 255, 2**32 - 1]
    wanted = [0xFFFE00FF, 0xFFFFFFFD, 5, 0x80000000, 255, 0xFFFFFFFF]
    assert words("k", sizes, values, 6, []) == tuple(wanted)


def test_arrays_are_passed_by_address():
    device = Device("interpreter")
    a, out = device.array([1, 2, 3]), device.zeros(1)
    assert words("dot", DOT, [a, a, out, np.int64(3)], 4, device.arrays) == (64, 64, 96, 3)


def test_everything_wrong_is_said_at_once():
    device, other = Device("interpreter"), Device("interpreter")
    freed, unsigned, foreign = device.zeros(1, name="f"), device.zeros(1, np.uint32, "u"), other.zeros(1, name="o")
    freed.free()
    source = "__global__ void k(int*a,int*b,int*c,int*d,int e,unsigned f,float*g,int*h,int i){}"
    k = parameters("_Z1kPiS_S_S_ijPfS_i", [4] * 9, source)
    values = [freed, unsigned, foreign, np.zeros(3), unsigned, -1, device.zeros(2, name="z"), 5, "7"]
    with pytest.raises(LaunchError) as error:
        words("k", k, values, 9, device.arrays)
    assert str(error.value).split("\n") == [
        f"{prototype('k', k)}: 9 arguments of the wrong type",
        "  int* a: the array f was freed: make a new one",
        "  int* b: the array u holds uint32 (unsigned int), not int",
        "  int* c: the array o is on another device",
        "  int* d: an array of the host's: put it on the device first, with device.array(...)",
        "  int e: a number is expected, an array is given",
        "  unsigned int f: -1 does not fit in unsigned int",
        "  float* g: the array z holds int32 (int), not float",
        "  int* h: an array is expected, int given",
        "  int i: an integer is expected, str given",
    ]


@pytest.mark.parametrize(
    ("mangled", "size", "value", "message"),
    [
        ("_Z1ki", 4, 2**31, "int arg0: 2147483648 does not fit in int"),
        ("_Z1kh", 1, 256, "256 does not fit in unsigned char"),
        ("_Z1kb", 1, -1, "does not fit in bool"),
        ("_Z1kf", 4, 1, "float arg0: only integers can be passed"),
        ("_Z1ki", 4, 1.0, "an integer is expected, float given"),
        ("k", 12, 1, "a struct of 12 bytes is expected, int given"),
        ("k", 2, 2**16, "65536 does not fit in 16 bits"),
    ],
)
def test_numbers_that_do_not_fit(mangled, size, value, message):
    with pytest.raises(LaunchError, match=f"^.*{message}"):
        words("k", parameters(mangled, [size]), [value], 4, [])


def test_without_types_a_word_takes_both():
    device = Device("interpreter")
    a = device.array([2**31], name="a")
    assert words("k", parameters("k", [4, 8]), [a, a], 4, device.arrays) == (64, 0, 64, 0)
    assert words("k", parameters("k", [4, 8]), [2**32 - 1, -1], 4, []) == (2**32 - 1, 0, 2**32 - 1, 2**32 - 1)


def test_pointers_to_nothing_in_particular_take_any_array():
    device = Device("interpreter")
    a = device.array([2**31])
    assert words("k", parameters("_Z1kPvPKv", [4, 4]), [a, a], 2, device.arrays) == (64, 64)


@pytest.mark.parametrize(
    ("letter", "c", "kinds"),
    [
        ("a", "signed char", "int8"),
        ("c", "char", "int8 uint8"),
        ("h", "unsigned char", "uint8"),
        ("b", "bool", "bool"),
        ("s", "short", "int16"),
        ("t", "unsigned short", "uint16"),
        ("i", "int", "int32"),
        ("j", "unsigned int", "uint32"),
        ("l", "long", "int32"),
        ("x", "long long", "int64"),
        ("y", "unsigned long long", "uint64"),
        ("v", "void", " ".join(DTYPES)),
        ("4Pair", "Pair", "uint8"),
        ("Pi", "int*", "uint32"),
        ("f", "float", ""),
    ],
)
def test_a_pointer_takes_arrays_of_its_type_only(letter, c, kinds):
    device = Device("interpreter")
    pointer = parameters(f"_Z1kP{letter}", [4])
    for kind in DTYPES:
        array = device.zeros(3, kind)
        if kind in kinds.split():
            assert words("k", pointer, [array], 1, device.arrays) == (array.address,)
        else:
            with pytest.raises(LaunchError, match=f"holds {kind} .*, not {re.escape(c)}$"):
                words("k", pointer, [array], 1, device.arrays)


def test_pointers_of_64_bits_make_long_wider():
    device = Device("interpreter")
    wide = device.array([-1], np.int64)
    assert words("k", parameters("_Z1kPlm", [8, 8]), [wide, 2**63], 4, device.arrays) == (64, 0, 0, 2**31)


PAIR = np.dtype([("key", np.int8), ("value", np.int32), ("more", np.uint16, 2)], align=True)


def test_structs_by_value():
    struct = parameters("_Z1k4Pairi", [12, 4])
    value = np.array((-1, 7, (1, 2)), PAIR)
    expected = (*np.frombuffer(value.tobytes(), np.uint32).tolist(), 5)
    assert [number & 0xFF for number in expected] == [255, 7, 1, 5]
    assert words("k", struct, [value, 5], 4, []) == words("k", struct, [value[()], 5], 4, []) == expected
    assert words("k", parameters("_Z1k4int2", [8]), [np.array([3, -1], np.int32)], 2, []) == (3, 2**32 - 1)
    untyped = parameters("k", [12])
    assert words("k", untyped, [value], 3, []) == expected[:3]


@pytest.mark.parametrize(
    ("mangled", "size", "value", "message"),
    [
        ("_Z1k4Pair", 8, np.zeros((), PAIR), r"12 bytes are given \(.*\), 8 are expected"),
        ("_Z1k4Pair", 12, np.zeros((), [("a", "i1"), ("b", "i4")]), "does not lie where C puts it: .* align=True"),
        ("_Z1k4Pair", 4, np.zeros((), [("a", "f4")]), "its field a is float32, no integer"),
        ("_Z1k4Pair", 12, np.zeros(3, np.float32), "a struct is made of integers"),
        ("_Z1k4Pair", 12, 5, "a struct of 12 bytes is expected, int given: give its members"),
        ("_Z1kx", 8, np.zeros((), [("a", "i8")]), "a number is expected, a struct is given"),
        ("_Z1kPi", 4, np.zeros((), [("a", "i4")]), "an array is expected, a struct is given"),
    ],
)
def test_structs_that_do_not_fit(mangled, size, value, message):
    with pytest.raises(LaunchError, match=message):
        words("k", parameters(mangled, [size]), [value], 4, [])


def test_views_are_passed_where_they_begin():
    device = Device("interpreter")
    a = device.array([1, 2, 3, 4])
    assert words("k", parameters("_Z1kPiS_", [4, 4]), [a[2:], a[1]], 2, device.arrays) == (64 + 8, 64 + 4)
