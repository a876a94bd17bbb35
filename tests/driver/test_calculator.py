"""Expressions on the interpreter against NumPy: shapes, tiles, wrapping, refusals."""

import math

import numpy as np
import pytest

from qgpu.driver import Device
from qgpu.driver.calculator import Calculator, misfit
from qgpu.driver.memory import Allocator
from qgpu.errors import CheckError, EvalError

RANDOM = np.random.default_rng(11)


def calculator(words: int | None = None) -> Calculator:
    """On a device of so many free words, or all of them."""
    device = Device("interpreter")
    if words is not None:
        device.allocator = Allocator(64, 64 + 4 * words)
    return Calculator(device)


def wrapped(values):
    return np.asarray(np.asarray(values, object) & 0xFFFFFFFF, np.uint32).astype(np.int32)


def integers(*shape, low=-(2**31), high=2**31):
    return RANDOM.integers(low, high, shape)


SHAPES = [((), ()), ((3,), ()), ((), (3,)), ((2, 3), (2, 3))]
OPERATIONS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "@": lambda a, b: a @ b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b,
    "==": lambda a, b: (a == b) * 1, "!=": lambda a, b: (a != b) * 1, "<": lambda a, b: (a < b) * 1,
    "<=": lambda a, b: (a <= b) * 1, ">": lambda a, b: (a > b) * 1, ">=": lambda a, b: (a >= b) * 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [
        *((operator, left, right) for operator in OPERATIONS if operator != "@" for left, right in SHAPES),
        ("@", (5,), (5,)),
        ("@", (2, 5), (5,)),
        ("@", (5,), (5, 3)),
        ("@", (2, 5), (5, 3)),
        ("@", (1, 1), (1, 1)),
    ],
)
def test_operations_are_numpys_modulo_2_to_the_32(operator, left, right):
    a, b = np.asarray(integers(*left)), np.asarray(integers(*right))
    if operator == "**":
        b = np.abs(b) % 9
    if operator in ("==", "<=", ">="):
        a, b = a % 3, b % 3
    text = f"({a.tolist()}) {operator} {b.tolist()}"
    value = calculator().evaluate(text)
    expected = wrapped(OPERATIONS[operator](a.astype(object), b.astype(object)))
    assert value.dtype == np.int32
    assert value.shape == expected.shape and (value == expected).all()


@pytest.mark.parametrize(
    ("operator", "left", "right", "words"),
    [
        ("+", (23,), (23,), 12),
        ("*", (23,), (), 10),
        ("-", (), (4, 5), 10),
        ("@", (23,), (23,), 14),
        ("@", (7, 9), (9,), 24),
        ("@", (5, 6), (6, 7), 32),
        ("@", (1, 40), (40, 1), 16),
    ],
)
def test_what_does_not_fit_is_split(operator, left, right, words):
    a, b = integers(*left, low=-99, high=99), integers(*right, low=-99, high=99)
    work = calculator(words)
    value = work.evaluate(f"{np.asarray(a).tolist()} {operator} {np.asarray(b).tolist()}")
    assert (value == OPERATIONS[operator](a, b)).all()
    assert len(work.launches) > 1
    assert work.device.allocator.blocks == {} and work.notes == []


def test_more_elements_than_threads_in_a_cta():
    a = integers(300, low=-99, high=99)
    work = calculator()
    assert (work.evaluate(f"{a.tolist()} + {a.tolist()}") == 2 * a).all()
    assert len(work.launches) == 1


def test_operations_are_launches_of_stock_kernels():
    work = calculator()
    assert work.evaluate("[[1, 2], [3, 4]] @ [5, 6] - 2 * [1, 1] + [0, 3 - 1]").tolist() == [15, 39]
    assert [launch.kernel for launch in work.launches] == [
        "matvec", "scalar_mul", "vector_sub", "vector_sub", "vector_add",
    ]  # fmt: skip


def test_wrapping_is_said_for_each_operation():
    work = calculator()
    assert work.evaluate("[2147483647, 1] + [1, 1] - -2147483648").tolist() == [0, -2147483646]
    assert work.notes == [
        "[2147483647, 1] + [1, 1] wrapped to 32 bits: 2147483648 does not fit",
        "[2147483647, 1] + [1, 1] - -2147483648 wrapped to 32 bits: 2147483650 does not fit",
    ]
    work = calculator()
    assert work.evaluate("-(-2147483647 - 1)").tolist() == -(2**31)
    assert work.notes == ["-(-2147483647 - 1) wrapped to 32 bits: 2147483648 does not fit"]
    assert calculator().evaluate("-2147483647 - 1").tolist() == -(2**31)


def test_a_wrong_machine_is_noticed():
    work = calculator()
    memory = work.device._runner.memory
    work.device._runner.memory = lambda: memory() + 1
    with pytest.raises(CheckError, match="3 \\+ 4: the machine says 8, which is wrong"):
        work.evaluate("3 + 4")


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("[1, 2] + [1, 2, 3]", "cannot add a vector of 2 and a vector of 3: their shapes differ", "       ^"),
        ("[1] - [[1]]", "cannot subtract a vector of 1 and a matrix of 1 x 1", "    ^"),
        ("[[1, 2]] * [[1], [2]]", "their shapes differ; @ is the matrix product", "         ^"),
        ("[1, 2] @ [1, 2, 3]", "2 elements on the left, 3 elements on the right", "       ^"),
        ("[[1, 2]] @ [[1, 2]]", "2 columns on the left, 1 rows on the right", "         ^"),
        ("2 @ [1]", "@ takes vectors and matrices, not a number: use *", "  ^"),
        ("[[1], [2, 3]]", "this is a vector of 2, the first row is a vector of 1", "      ^^^^^^"),
        ("[1, [2]]", "this is a vector of 1, the first row is a number", "    ^^^"),
        ("[[[1]]]", "a matrix cannot stand in brackets", " ^^^^^"),
    ],
)
def test_shapes_that_do_not_fit(text, message, caret):
    with pytest.raises(EvalError) as error:
        calculator().evaluate(text)
    lines = str(error.value).split("\n")
    assert message in lines[0]
    assert lines[1:] == [f"  {text}", f"  {caret}"]


def test_long_sums_need_no_deep_stack():
    work = calculator()
    work._combined = lambda text, at, span, operator, a, b: a + b
    assert work.evaluate(" + ".join(["1"] * 5000)).tolist() == 5000


def test_shapes_that_fit():
    vector, matrix, number = np.zeros(3), np.zeros((3, 3)), np.zeros(())
    assert not misfit("+", number, matrix) and not misfit("*", vector, number)
    assert not misfit("@", matrix, vector) and not misfit("@", vector, matrix)


def gcd_all(a):
    return math.gcd(*map(int, a.reshape(-1)))


FUNCTIONS = {
    "sum": np.sum, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin, "gcd": gcd_all,
    "sort": np.sort, "cumsum": np.cumsum, "transpose": np.transpose, "abs": np.abs,
}  # fmt: skip
TAKES = {"sort": [1], "cumsum": [1], "transpose": [2], "abs": [0, 1, 2]}


@pytest.mark.parametrize("low", [-(2**31), -5])
@pytest.mark.parametrize(("name", "ndim"), [(name, ndim) for name in FUNCTIONS for ndim in TAKES.get(name, [1, 2])])
def test_functions_are_numpys_modulo_2_to_the_32(name, ndim, low):
    for size in (1, 2, 5):
        value = np.asarray(integers(*[(), (size,), (size, 3)][ndim], low=low, high=-low))
        found = calculator().evaluate(f"{name}({value.tolist()})")
        wanted = wrapped(FUNCTIONS[name](value))
        assert found.shape == wanted.shape and (found == wanted).all(), value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_what_does_not_fit_are_split(name):
    value = integers(*((7, 9) if 2 in TAKES.get(name, [1, 2]) else (23,)), low=-99, high=99)
    work = calculator(12)
    assert (work.evaluate(f"{name}({value.tolist()})") == FUNCTIONS[name](value)).all()
    assert len(work.launches) > 1 and work.device.allocator.blocks == {}


@pytest.mark.parametrize("size", [129, 256, 257, 300])
def test_long_vectors_are_sorted_and_added_up_in_pieces(size):
    value = integers(size, low=-99, high=99)
    assert (calculator().evaluate(f"sort({value.tolist()})") == np.sort(value)).all()
    assert (calculator().evaluate(f"cumsum({value.tolist()})") == np.cumsum(value)).all()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max(3, [1, 5], [4, 4])", [4, 5]),
        ("min(3, 2, 1)", 1),
        ("gcd(12, [18, 0], -8)", [2, 4]),
        ("dot([1, 2], [3, 4])", 11),
        ("matmul([[1, 2]], [[3], [4]])", [[11]]),
        ("pow([2, 3], 4)", [16, 81]),
        ("sum([3, 1, 2] > 1) * 10 + argmax(sort([3, 1, 2]))", 22),
        ("-2 ** 2 + 2 ** 3 ** 0", -2),
        ("gcd([0, 0])", 0),
        ("-7 // 2 + -7 % 2 * 10", 6),
        ("0 ** 0", 1),
    ],
)
def test_expressions_in_expressions(text, value):
    assert calculator().evaluate(text).tolist() == value


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("-2147483648 // -1", "2147483648"),
        ("abs(-2147483648)", "2147483648"),
        ("sum([2147483647, 1])", "2147483648"),
        ("cumsum([2147483647, 1, 1])", "2147483648 and 1 more"),
        ("gcd(-2147483648, 0)", "2147483648"),
        ("3 ** 40", str(3**40)),
        ("3 ** 2147483647", "an integer of more than 64 bits"),
    ],
)
def test_wrapping_of_every_kind_is_said(text, note):
    work = calculator()
    value = work.evaluate(text)
    assert work.notes == [f"{text} wrapped to 32 bits: {note} does not fit"]
    if text.startswith("3 **"):
        assert value == wrapped(pow(3, int(text.split()[-1]), 2**32))


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("1 + 7 // 0", "division by zero", "      ^^"),
        ("[4, 5] % [2, 0]", "division by zero", "       ^"),
        ("2 ** -1", "the exponent is negative", "  ^^"),
        ("[1, 2] < [1, 2, 3]", "cannot compare a vector of 2 and a vector of 3", "       ^"),
        ("max([1, 2], [1, 2, 3])", "cannot combine a vector of 2 and a vector of 3", "^^^"),
        ("sum(5)", "sum takes a vector or a matrix, not a number", "    ^"),
        ("sort([[1, 2]])", "sort takes a vector, not a matrix of 1 x 2", "     ^^^^^^^^"),
        ("transpose([1])", "transpose takes a matrix, not a vector of 1", "          ^^^"),
        ("mean([1])", "there is no function mean; there are: sum, max, min,", "^^^^"),
        ("dot([1])", "dot takes two arguments, one is given", "^^^"),
        ("dot([1], [1], [1])", "dot takes two arguments, 3 are given", "^^^"),
        ("sum([1], [2])", "sum takes one argument, 2 are given", "^^^"),
        ("matmul(2, [1])", "@ takes vectors and matrices, not a number", "^^^^^^"),
    ],
)
def test_what_functions_and_operators_refuse(text, message, caret):
    with pytest.raises(EvalError) as error:
        calculator().evaluate(text)
    first, line, marks = str(error.value).split("\n")
    assert message in first and (line, marks) == (f"  {text}", f"  {caret}")
