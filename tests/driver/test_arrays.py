"""Arrays: their types, their place in memory rows, and the way back."""

import gc

import numpy as np
import pytest

from qgpu.driver import Device
from qgpu.driver.arrays import memory_rows, take
from qgpu.driver.dtypes import DTYPES, host_array
from qgpu.errors import FaultError, LaunchError, MemoryFullError


@pytest.fixture
def device():
    return Device("interpreter")


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, -2, 3], "int32"),
        ([[1, 2], [3, 4]], "int32"),
        ([0, 2**32 - 1], "uint32"),
        (np.array([5], np.uint32), "uint32"),
        (np.int32(7), "int32"),
        (-(2**31), "int32"),
        ([-1, 2**31], "int64"),
        ([2**32], "int64"),
        ([2**63], "uint64"),
        ([True, False], "bool"),
        (np.array([[1], [-2]], np.int8), "int8"),
        (np.array([1, 2]), "int64"),
        (np.array([1, 2], ">u2"), "uint16"),
    ],
)
def test_what_arrays_take(device, values, dtype):
    array = device.array(values)
    assert array.dtype == dtype
    assert array.numpy().tolist() == np.asarray(values).tolist()
    assert array.shape == np.shape(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.5], "x is float64: arrays hold integers of 8 to 64 bits, bool, or structs of them"),
        (np.zeros(2, np.float32), "x is float32"),
        (["1"], "x is <U1"),
        ([1, None], "x is object"),
        ([], "x is empty"),
        ([[1], [2, 3]], "x: its rows differ in length"),
        ([2**64], r"x: 18446744073709551616 does not fit in uint64 \(0..18446744073709551615\)"),
        ([-1, 2**63], "x: 9223372036854775808 does not fit in int64"),
        ([2**70], "x: 1180591620717411303424 does not fit"),
        (np.zeros(2, [("a", "i1"), ("b", "i4")]), "x is .*: its field b does not lie where C puts it"),
        (np.zeros(2, [("a", "f4")]), "x is .*: its field a is float32, no integer"),
        (np.zeros(0, [("a", "i4")]), "x is empty"),
    ],
)
def test_what_they_refuse(device, values, message):
    with pytest.raises(LaunchError, match=f"^{message}"):
        device.array(values, name="x")
    assert device.arrays == []


def test_a_wanted_type_is_kept():
    assert host_array([1, 2], np.uint32).dtype == np.uint32
    with pytest.raises(LaunchError, match="-1 does not fit in uint32"):
        host_array([-1], np.uint32)
    with pytest.raises(LaunchError, match="is float32: arrays hold"):
        host_array([1], np.float32)


def test_rows_hold_two_words_and_zeros_are_left_out(device):
    a, b = device.array([1, -1, 0, 0, 5]), device.array([2**32 - 1])
    assert (a.address, b.address) == (64, 96)
    assert memory_rows([a, b]) == {8: (1, 2**32 - 1), 10: (5, 0), 12: (2**32 - 1, 0)}


def test_memory_comes_back(device):
    a, b = device.array([[1, 2], [3, 4]]), device.array([2**31])
    memory = np.arange(4096, dtype=np.uint32)
    memory[17] = 2**32 - 7
    assert b.address == 4 * 24
    take([a, b], memory)
    assert a.numpy().tolist() == [[16, -7], [18, 19]]
    assert b.numpy().tolist() == [24]


def test_memory_is_given_back(device):
    array = device.zeros(3000)
    with pytest.raises(MemoryFullError, match=r"^an array \[60\] needs 240 bytes"):
        device.zeros(60)
    assert device.zeros(50).address > array.address
    array.free()
    array.free()
    with pytest.raises(LaunchError, match="was freed"):
        array.numpy()
    again = device.zeros((1000, 3), np.uint32)
    assert again.address == 64
    del again
    gc.collect()
    assert device.allocator.blocks == {}


def test_numpy_gives_a_copy_and_fill_writes(device):
    array = device.array([1, 2, 3])
    array.numpy()[0] = 9
    assert np.asarray(array).tolist() == [1, 2, 3]
    array.fill([4, 5, 6])
    assert array.numpy().tolist() == [4, 5, 6]
    array.fill(7)
    assert (len(array), array.numpy().tolist()) == (3, [7, 7, 7])
    with pytest.raises(LaunchError, match="does not fit"):
        array.fill(2**31)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type_go_there_and_back(device, dtype):
    """A kernel of bytes: what the host reads is what numpy makes of the same bytes."""
    rng = np.random.default_rng(3)
    if dtype == "bool":
        values = rng.integers(0, 2, (3, 5)).astype(bool)
    else:
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, (3, 5), dtype, endpoint=True)
    array = device.array(values)
    assert array.nbytes == values.nbytes
    memory = np.zeros(4096, np.uint32)
    for row, words in memory_rows([array]).items():
        memory[2 * row : 2 * row + 2] = words
    assert memory.tobytes()[array.address :][: array.nbytes] == values.tobytes()
    memory = np.frombuffer(memory.tobytes(), np.uint8)[::-1].copy().view(np.uint32)
    take([array], memory)
    raw = np.frombuffer(memory.tobytes()[array.address :][: array.nbytes], np.uint8)
    expected = raw != 0 if dtype == "bool" else raw.view(dtype)
    assert array.numpy().tolist() == expected.reshape(3, 5).tolist()


def test_bytes_beside_an_array_of_bytes_are_not_its_own(device):
    source = """__global__ void k(unsigned char* a, int i) { a[i] = 7; }"""
    array = device.zeros(3, np.uint8)
    kernel = device.kernel(source)
    kernel[1, 1](array, 2)
    assert array.numpy().tolist() == [0, 0, 7]
    with pytest.raises(FaultError, match="Invalid __global__ write of size 1 bytes") as error:
        kernel[1, 1](array, 3)
    assert error.value.address == array.address + 3


def test_structs_live_in_arrays(device):
    pair = np.dtype([("key", np.int8), ("value", np.int64)], align=True)
    values = np.array([(1, -5), (2, 6), (3, 2**40)], pair)
    array = device.array(values)
    assert array.numpy().tolist() == values.tolist()
    array[1] = (9, 9)
    assert array.numpy()[1].item() == (9, 9)
    source = """struct Pair { signed char key; long long value; };
    __global__ void k(Pair* a) { a[threadIdx.x].value += a[threadIdx.x].key; }"""
    device.kernel(source)[1, 3](array)
    assert array.numpy().tolist() == [(1, -4), (9, 18), (3, 2**40 + 3)]


def test_views_share_memory(device):
    base = device.array(np.arange(12, dtype=np.int32).reshape(3, 4), name="m")
    row, cell, flat = base[1], base[2, 3], base.reshape(12)
    assert (row.shape, cell.shape, flat[4:8].address) == ((4,), (), row.address)
    assert (row.address, cell.address) == (base.address + 16, base.address + 44)
    row[1] = 50
    base[2] = 8
    assert (base.numpy()[1, 1], cell.item(), flat.numpy()[5]) == (50, 8, 50)
    assert base.view(np.uint8).shape == (3, 16)
    assert base.reshape(-1, 2).shape == (6, 2) and base.reshape((2, 6)).shape == (2, 6)
    device.kernel("__global__ void k(int* a) { a[threadIdx.x] = -1; }")[1, 4](row)
    assert base.numpy().tolist() == [[0, 1, 2, 3], [-1] * 4, [8] * 4]


def test_a_view_keeps_the_memory_and_dies_with_it(device):
    view = device.array([1, 2, 3])[1:]
    gc.collect()
    assert view.alive and view.numpy().tolist() == [2, 3]
    with pytest.raises(LaunchError, match="free the array that it is of"):
        view.free()
    view.base.free()
    with pytest.raises(LaunchError, match="was freed"):
        view.numpy()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m[:, 1], r"the array m\[:, 1\] is no view in one piece and in C order"),
        (lambda m: m[::2], r"\[::2\] is no view"),
        (lambda m: m[::-1], r"\[::-1\] is no view"),
        (lambda m: m[[0, 1]], r"\[\[0, 1\]\] is no view"),
        (lambda m: m[2:2], r"\[2:2\] is no view"),
        (lambda m: m.reshape(5), "has 12 elements, which do not make"),
        (lambda m: m.view(np.float32), "float32: arrays hold"),
        (lambda m: m[0, :3].view(np.int64), "does not make whole int64"),
        (lambda m: m.item(), "has 12 elements"),
        (lambda m: m.__setitem__(0, [1, 2]), r"elements of shape \(2,\) do not fit \(4,\)"),
        (lambda m: m.__setitem__(0, 2**31), "does not fit in int32"),
    ],
)
def test_views_are_checked(device, call, message):
    with pytest.raises(LaunchError, match=message):
        call(device.array(np.zeros((3, 4), np.int32), name="m"))


def test_an_index_that_is_none_is_numpys_error(device):
    with pytest.raises(IndexError, match="the array m: index 3 is out of bounds"):
        device.zeros(3, name="m")[3]
    assert [cell.item() for cell in device.array([4, 5])] == [4, 5]


def test_arrays_show_themselves(device):
    a = device.array([1, 2], name="a")
    assert repr(a) == "DeviceArray(a: int32 (2,) at 0x0040: [1, 2])"
    assert repr(a[1:]) == "DeviceArray(a: int32 (1,) at 0x0044: [2])"
    a.free()
    assert repr(a) == "DeviceArray(a: int32 (2,) freed: )"


def test_what_is_not_in_c_order_is_laid_out_so(device):
    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    for given in (values.T, values[:, ::-1], np.asfortranarray(values)):
        array = device.array(given)
        assert array.numpy().tolist() == given.tolist()
        assert array.reshape(6).numpy().tolist() == [x for row in given.tolist() for x in row]
