"""Rows for atomics and for loads and stores."""

from __future__ import annotations

import numpy as np

from qgpu.conformance.inputs import edges, filled, i32, rand, u32, words, wrap, zeros
from qgpu.conformance.table import row

_KEYS = u32(*(7919 * (i * i + 3) % 99991 + 1 for i in range(20)))
_ITEMS = np.frombuffer(words(6 * 16, 21, "uint8").tobytes(), "uint32").copy()

ROWS = [
    row("atomic_every", "atomics", 6, edges(72, 2, "uint32"), edges(6, 9, "uint32"), zeros(6, "uint32"), 6),
    row("atomic_shared_every", "atomics", 8, edges(48, 2, "uint32"), edges(8, 5, "uint32"), zeros(8, "uint32"), 8),
    row("atomic_cas_own", "atomics", 8, u32(0, 1, 2, 3, 4, 5, 6, 2**31), u32(0, 1, 3, 3, 0, 5, 7, 2**31),
        words(8, 3), zeros(8, "uint32")),
    row("atomic_64", "atomics", 4, edges(32, 1, "uint64"), edges(4, 6, "uint64"), zeros(4, "uint64"), 4),
    row("atomic_contended", "atomics", 16, words(32, 8), u32(0, 0, 0, 2**32 - 1, 0, 2**31 - 1, 0, 0), grid=2),
    row("atomic_tickets", "atomics", 13, zeros(1, "uint32"), zeros(26, "uint32"), grid=2),
    row("histogram", "atomics", 16, words(40, 4), zeros(8, "uint32"), 40, grid=3),
    row("histogram_shared", "atomics", 32, words(80, 4), zeros(16, "uint32"), 80, grid=2),
    row("cas_loop_maximum", "atomics", 16, rand(14, -50, 50, 3), i32(-7), 14),
    row("cas_saturating_bytes", "atomics", 24, words(24, 3), u32(0x00F00010), 24),
    row("hash_insert", "atomics", 1, _KEYS, zeros(32, "uint32"), zeros(20, "uint32"), 20, 32),
    row("hash_drain", "atomics", 16, zeros(32, "uint32"), zeros(2, "uint32"), _KEYS, 20, 32),
    row("spin_lock", "atomics", 8, zeros(1, "uint32"), zeros(1, "uint32"), words(8, 2)),
    row("ticket_lock", "atomics", 6, zeros(2, "uint32"), zeros(1, "uint32")),
    row("queue_ring", "atomics", 12, zeros(3, "uint32"), zeros(2, "uint32"), zeros(1, "uint32"), 3),
    row("compact_by_atomics", "atomics", 32, rand(30, -5, 5, 2), zeros(1), zeros(1, "uint32"), zeros(30), 30),
    row("last_block_sums", "atomics", 8, rand(32, -99, 99, 2), zeros(4), zeros(1, "uint32"), zeros(1), grid=4),
    row("bytes_signed", "memory", 24, edges(22, 0, "int8"), zeros(22, "int8"), 22),
    row("bytes_unsigned", "memory", 24, words(21, 7, "uint8"), zeros(21, "uint8"), zeros(21, "uint32"), 21),
    row("halves", "memory", 24, edges(22, 0, "int16"), edges(22, 4, "uint16"), zeros(22), zeros(22, "uint16"), 22),
    row("doublewords", "memory", 16, edges(16, 0, "int64"), zeros(16, "int64"), 16),
    row("vectors_2", "memory", 10, edges(18), zeros(18), 9),
    row("vectors_4", "memory", 8, edges(28, 0, "uint32"), zeros(28, "uint32"), 7),
    row("vectors_of_bytes", "memory", 9, words(36, 4, "uint8"), zeros(36, "uint8"), 9),
    row("vectors_of_halves", "memory", 9, edges(18, 5, "int16"), zeros(36, "int16"), 9),
    row("vectors_of_doublewords", "memory", 5, edges(10, 1, "int64"), zeros(10, "int64"), 5),
    row("bytes_of_a_word", "memory", 32, words(8, 4), zeros(32, "uint8")),
    row("bytes_between", "memory", 13, filled(27, 0xEE, "uint8")),
    row("structures", "memory", 8, _ITEMS, zeros(24, "uint32"), 6),
    row("constants", "memory", 16, words(16, 9), zeros(16), 16),
    row("device_variable", "memory", 9, zeros(9)),
    row("local_array", "memory", 6, words(6, 2), zeros(6, "uint32"), 6),
    row("local_bytes", "memory", 6, u32(0, 1, 0xABC, 0x12345678, 0xFFFFFFFF, 0x10), zeros(6, "uint32"), 6),
    row("shared_reverse", "memory", 40, edges(40), zeros(40)),
    row("shared_bytes", "memory", 32, words(32, 5, "uint8"), zeros(32, "uint8")),
    row("shared_mixed", "memory", 32, words(32, 5), zeros(32, "uint32")),
    row("generic_pointer", "memory", 32, rand(32, 0, 99, 5), zeros(32)),
    row("volatile_words", "memory", 10, rand(10, 0, 99, 5), zeros(10)),
    row("parameters_small", "memory", 5, 200, -100, 60000, -30000, zeros(5)),
    row("parameters_wide", "memory", 5, -(2**40) + 12345, 77, 2**63 + 5, zeros(5, "int64")),
    row("parameters_many", "memory", 7, 1, -2, 3, -4, 2**31 - 1, -(2**31), 0x5A5A5A5A, 1000, -77, 13, zeros(7)),
    row("offsets", "memory", (4, 3), wrap(range(100, 136), "int32"), zeros(12), 7),
]  # fmt: skip
