"""Signatures: mangled names as clang makes them, names out of source text."""

import pytest

from qgpu.cuda.ir import KernelParameter
from qgpu.driver.ctypes import parameter_names, parameter_types, signature


@pytest.mark.parametrize(
    ("mangled", "types"),
    [
        ("_Z3dotPKiS0_Pii", ["const int*", "const int*", "int*", "int"]),
        ("_Z5saxpyiPKiPi", ["int", "const int*", "int*"]),
        ("_Z1kv", []),
        ("_Z1kPjhasxy", ["unsigned int*", "unsigned char", "signed char", "short", "long long", "unsigned long long"]),
        ("_Z1kPVKiS0_PS0_", ["const volatile int*", "const volatile int*", "const volatile int**"]),
        ("_Z1kPKPKi4PairPS3_", ["const int* const*", "Pair", "Pair*"]),
        ("_Z1kPKcPhS1_b", ["const char*", "unsigned char*", "unsigned char*", "bool"]),
        ("_Z1kPfdPv", ["float*", "double", "void*"]),
        ("_Z1k4PairPS_", ["Pair", "Pair*"]),
        ("_Z1kRiPrPi", ["int&", "int**"]),
        ("kernel", None),
        ("_ZN2ns1kEPi", None),
        ("_Z1kIiEvPT_", None),
        ("_Z1kS_", None),
        ("_Z1kP", None),
    ],
)
def test_types_from_the_mangled_name(mangled, types):
    assert parameter_types(mangled) == types


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("__global__ void k(const int* a, int *b, int n) {}", ["a", "b", "n"]),
        ('extern "C" __global__ void __launch_bounds__(32) k(int* __restrict__ out) {}', ["out"]),
        ("__global__ void k(int a[], // the input, (really)\n int n /* , m */) {}", ["a", "n"]),
        ("__global__ void k() {}", []),
        ("__global__ void k(void) {}", []),
        ("__global__ void other(int z);\n__global__ void k(int q) {}", ["q"]),
        ("__global__ void k(int*) {}", None),
        ("void k(int a) {}", None),
    ],
)
def test_names_from_the_source(source, names):
    assert parameter_names(source, "k") == names


def place(offset: int, size: int = 4, pointer: bool = False) -> KernelParameter:
    return KernelParameter(f"p{offset}", f"u{8 * size}", offset, size, size, pointer)


def test_a_signature_joins_the_three():
    source = "__global__ void k(const int* a, unsigned int* out, long long n) {}"
    a, out, n = signature("_Z1kPKiPjx", (place(0, 4, True), place(4, 4, True), place(8, 8)), source)
    assert (a.name, a.pointer, a.const, a.text) == ("a", True, True, "const int*")
    assert (out.name, out.const, out.element.signed, out.element.size) == ("out", False, False, 4)
    assert (n.name, n.pointer, n.element.size, n.offset) == ("n", False, 8, 8)


def test_pointers_of_64_bit_code_are_told_by_their_type():
    a, n = signature("_Z1kPii", (place(0, 8), place(8, 4)), None)
    assert (a.pointer, a.size, n.pointer) == (True, 8, False)
    assert [a.name, n.name] == ["arg0", "arg1"]


def test_without_types_a_word_could_be_both():
    parameters = (place(0, 4, True), place(4), place(8, 8), place(16, 1), place(20, 12))
    assert [p.pointer for p in signature("k", parameters, None)] == [True, None, None, False, False]


def test_names_that_do_not_match_the_ptx_are_dropped():
    macro = "#define MORE int x, int y\n__global__ void k(MORE) {}"
    assert [p.name for p in signature("k", (place(0), place(4)), macro)] == ["arg0", "arg1"]
