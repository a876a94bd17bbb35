"""Arrays: their types, their place in memory rows, and the way back."""

import gc

import numpy as np
import pytest

from qgpu.driver import Device
from qgpu.driver.arrays import host_array, memory_rows, take
from qgpu.errors import LaunchError, MemoryFullError


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
        (np.array([1, 2]), "x is int64: arrays are int32 or uint32 for now; convert it with .astype"),
        (np.array([1], np.uint8), "x is uint8"),
        ([1.5], "x is float64"),
        ([True], "x is bool"),
        (["1"], "x is <U1"),
        ([1, None], "x is object"),
        ([], "x is empty"),
        ([[1], [2, 3]], "x: its rows differ in length"),
        ([2**32], r"x: 4294967296 does not fit in uint32 \(0..4294967295\)"),
        ([-1, 2**31], "x: 2147483648 does not fit in int32"),
        ([2**70], "x: 1180591620717411303424 does not fit"),
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
    with pytest.raises(LaunchError, match="is float32: arrays are"):
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
