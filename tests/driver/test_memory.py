"""The allocator against a plain list of owned bytes, and the allocation map bit by bit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgpu.driver.memory import Allocator, allocation_map
from qgpu.errors import MemoryFullError


def test_global_memory_is_rows_8_to_1535():
    allocator = Allocator()
    assert (allocator.room(), allocator.largest()) == (1528 * 8, 1527 * 8)
    assert allocator.allocate(1527 * 8, "all of it, and a guard") == 64
    assert (allocator.room(), allocator.largest()) == (0, 0)


def test_no_place_says_what_and_how_much():
    allocator = Allocator()
    allocator.allocate(12_000, "x")
    message = r"^y \[51\] needs 204 bytes of device memory; of its 12224 bytes, the largest free piece has 200: pass"
    with pytest.raises(MemoryFullError, match=message):
        allocator.allocate(204, "y [51]")
    assert allocator.allocate(200, "y [50]") == 64 + 12_016


def test_freeing_twice_is_an_error():
    allocator = Allocator()
    place = allocator.allocate(8, "x")
    allocator.free(place)
    with pytest.raises(KeyError):
        allocator.free(place)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 90)), max_size=40))
def test_blocks_never_touch(steps):
    allocator = Allocator(64, 64 + 400)
    owned: dict[int, range] = {}
    for free, size in steps:
        if free and owned:
            place = sorted(owned)[size % len(owned)]
            del owned[place]
            allocator.free(place)
            continue
        largest = allocator.largest()
        try:
            place = allocator.allocate(size, "x")
        except MemoryFullError:
            assert size > largest
            continue
        assert place % 16 == 0 and 64 <= place and place + size <= 464
        assert not any(byte in block for block in owned.values() for byte in (place - 8, place + size + 7))
        owned[place] = range(place, place + size)


def test_a_freed_place_is_used_again():
    allocator = Allocator()
    first, second, third = (allocator.allocate(size, "x") for size in (12, 20, 8))
    assert (second, third) == (64 + 32, 64 + 32 + 32)
    allocator.free(second)
    assert allocator.allocate(24, "fits in 20 and its padding") == second
    allocator.free(first)
    assert allocator.allocate(25, "does not fit in front") > second


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 200)), max_size=6))
def test_the_map_has_a_bit_for_each_byte(spans):
    wanted = {byte for address, size in spans for byte in range(address, address + size)}
    rows = allocation_map(spans)
    assert {64 * row + bit for row, bits in rows.items() for bit in range(64) if bits >> bit & 1} == wanted
    assert all(0 < bits < 1 << 64 for bits in rows.values())
