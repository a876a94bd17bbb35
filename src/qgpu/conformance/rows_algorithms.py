"""Rows for whole algorithms: matrices, images, graphs, numbers, hashes, generators."""

from __future__ import annotations

import hashlib

import numpy as np

from qgpu.conformance.inputs import Array, edges, i32, rand, u32, words, wrap, zeros
from qgpu.conformance.table import row


def text(line: str, size: int = 0) -> Array:
    """A text as bytes, filled up with zeros."""
    return np.frombuffer(line.encode().ljust(size, b"\0"), "uint8").copy()


_TEXT = "the quick brown fox jumps over the lazy dog"
_STARTS = i32(0, 3, 4, 9, 16, 16, 43)
_GRID = rand(24, 0, 9, 3)
_DISTANCES = np.where(np.eye(6, dtype=bool), 0, rand(36, 1, 30, 5).reshape(6, 6)).astype("int32").reshape(-1)
_GRAPH_STARTS = i32(0, 2, 4, 5, 5, 7, 8, 8)
_GRAPH_EDGES = i32(1, 2, 0, 4, 3, 5, 6, 2)
_SUDOKU = wrap([(3 * (i // 9) + i // 27 + i % 9) % 9 + 1 for i in range(81)], "uint8")
_FAULTY = np.where(np.arange(81) == 40, 9 - (_SUDOKU % 9), _SUDOKU).astype("uint8")
_LOWER = np.tril(rand(36, -3, 3, 7).reshape(6, 6), -1).astype("int32").reshape(-1)
_SHA = np.frombuffer(b"".join(hashlib.sha256(bytes([i])).digest() for i in range(4)), "uint32").copy()
_MANY = u32(0, 1, 2, 9, 15, 16, 17, 255, 65535, 65536, 2**31, 2**32 - 1)

ROWS = [
    row("transpose_tiled", "grids", (4, 4), rand(35, -99, 99), zeros(35), 5, 7, grid=(2, 2)),
    row("matmul_tiled", "grids", (4, 4), rand(36, -99, 99, 1), rand(36, -99, 99, 2), zeros(36), 6, grid=(2, 2),
        full=True),
    row("matmul_tiled 3x3", "grids", (4, 4), rand(9, -99, 99, 1), rand(9, -99, 99, 2), zeros(9), 3),
    row("matrix_power_mod", "grids", (2, 2), u32(1, 1, 1, 0), zeros(4, "uint32"), 2, 45, 10007),
    row("triangular_solve_mod", "grids", 6, _LOWER, rand(6, -20, 20), zeros(6), 6),
    row("stencil_1d", "grids", 8, edges(21), zeros(21), 21, grid=3),
    row("stencil_2d", "grids", (4, 2), _GRID, zeros(24), 6, 4, grid=(2, 2)),
    row("stencil_3d", "grids", (3, 3, 3), rand(27, -99, 99), zeros(27)),
    row("stencil_shared_halo", "grids", 16, rand(40, -99, 99), zeros(40), 40, grid=3),
    row("convolution_1d", "grids", 16, rand(14, -9, 9), i32(1, -2, 3, 4, -1), zeros(14), 14, 5),
    row("convolution_2d", "grids", (5, 4), words(20, 6, "uint8"), wrap([1, -2, 1, 0, 5, 0, -1, 2, -1], "int8"),
        zeros(20, "uint8"), 5, 4, full=True),
    row("convolution_2d 3x2", "grids", (3, 2), words(6, 6, "uint8"), wrap([1, 2, 1, 2, 4, 2, 1, 2, 1], "int8"),
        zeros(6, "uint8"), 3, 2),
    row("life", "grids", (6, 5), rand(30, 0, 1, 4, "uint8"), zeros(30, "uint8"), 6, 5, full=True),
    row("life 4x3", "grids", (4, 3), wrap([0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0], "uint8"), zeros(12, "uint8"), 4, 3),
    row("rule_110", "grids", 32, rand(32, 0, 1, 4, "uint32"), 5),
    row("image_grey", "grids", 16, words(60, 2, "uint8"), zeros(15, "uint8"), 15),
    row("image_threshold_flip", "grids", 7, words(28, 2, "uint8"), zeros(28, "uint8"), 7, 100, grid=4),
    row("image_blend", "grids", 16, words(14, 2), words(14, 3), zeros(14, "uint32"), 14, 77),
    row("image_integral_row", "grids", 4, words(24, 2, "uint8"), zeros(24), 6),
    row("dilate_bits", "grids", 8, rand(8, 0, 2**20, 2, "uint32"), zeros(8, "uint32"), 8),
    row("mandelbrot_fixed", "grids", (6, 4), zeros(24, "uint8"), 6, 4, 10),
    row("floyd_warshall_pass", "grids", (8, 8), _DISTANCES, 6, 2),
    row("floyd_warshall", "grids", (6, 6), _DISTANCES, 6),
    row("bfs_step", "grids", 8, _GRAPH_STARTS, _GRAPH_EDGES, i32(0, 1, 1, -1, -1, -1, -1), zeros(1), 1, 7),
    row("connected_components", "grids", 10, i32(0, 1, 5, 6, 3, 8), i32(1, 2, 6, 7, 4, 3), zeros(9), 9, 6),
    row("sparse_matvec", "grids", 8, _GRAPH_STARTS, _GRAPH_EDGES, edges(8), rand(7, -9, 9), zeros(7), 7),
    row("needleman_wunsch", "grids", 6, text("gattac"), text("gcatgc"), zeros(49), 6),
    row("edit_distance", "grids", 32, text("kitten sitting"), text("sitting kitchens"), zeros(1), 14, 16),
    row("knapsack", "grids", 32, i32(3, 4, 5, 9, 14), i32(3, 4, 4, 10, 15), zeros(30), 5, 29),
    row("gcd_modulo", "numbers", 8, u32(0, 12, 1071, 2**32 - 1, 7, 270, 65536, 1), u32(5, 18, 462, 65535, 0, 192,
        2**31, 1), zeros(8, "uint32"), 8),
    row("gcd_binary", "numbers", 8, u32(0, 12, 1071, 2**32 - 1, 7, 270, 65536, 1), u32(5, 18, 462, 65535, 0, 192,
        2**31, 1), zeros(8, "uint32"), 8),
    row("collatz_steps", "numbers", 8, u32(1, 2, 3, 6, 7, 9, 16, 12), zeros(8), 8),
    row("power_modulo", "numbers", 3, u32(2, 123456789, 65537), u32(10, 5, 3), zeros(3, "uint32"), 4294967291, 3,
        full=True),
    row("sieve", "numbers", 4, zeros(50, "uint8"), 50),
    row("is_prime", "numbers", 12, u32(0, 1, 2, 3, 4, 25, 97, 91, 121, 127, 143, 113), zeros(12, "uint32"), 12),
    row("square_root", "numbers", 12, _MANY, zeros(12, "uint32"), 12),
    row("fibonacci", "numbers", 8, zeros(8, "uint64")),
    row("inverse_modulo", "numbers", 6, i32(1, 2, 3, 10, 13, 26), zeros(6), 26, 6),
    row("popcount_ways", "numbers", 12, _MANY, zeros(12, "uint32"), 12),
    row("bit_tricks", "numbers", 12, _MANY, zeros(60, "uint32"), 12),
    row("morton_codes", "numbers", 12, words(12, 3), zeros(12, "uint32"), 12),
    row("wide_product", "numbers", 6, edges(6, 4, "uint64"), edges(6, 8, "uint64"), zeros(12, "uint64")),
    row("decimal_digits", "numbers", 4, u32(0, 4294967295, 1000000007, 42), zeros(40, "uint8"), 4),
    row("n_queens", "numbers", 5, zeros(5 * 24, "uint32"), zeros(1), 5),
    row("sudoku_check", "numbers", 32, _SUDOKU, zeros(1, "uint32"), full=True),
    row("sudoku_check with a fault", "numbers", 32, _FAULTY, zeros(1, "uint32")),
    row("string_search", "numbers", 44, text(_TEXT), text("the"), zeros(43, "uint8"), 43, 3),
    row("string_lengths", "numbers", 4, text("one\0three\0\0twelve and more\0"), i32(0, 4, 10, 11), zeros(4), 4),
    row("count_words", "numbers", 64, text(_TEXT), zeros(1), 43),
    row("upper_case_reversed", "numbers", 44, text(_TEXT), zeros(43, "uint8"), 43),
    row("lcg_streams", "numbers", 8, words(8, 2), zeros(8, "uint32"), 5),
    row("xorshift_streams", "numbers", 8, words(8, 2), zeros(8, "uint32"), 4),
    row("splitmix_64", "numbers", 6, edges(6, 9, "uint64"), zeros(6, "uint64")),
    row("lfsr_16", "numbers", 8, words(8, 2, "uint16"), zeros(8, "uint16"), 6),
    row("hash_fnv", "numbers", 6, text(_TEXT), _STARTS, zeros(6, "uint32"), 6),
    row("hash_jenkins", "numbers", 6, text(_TEXT), _STARTS, zeros(6, "uint32"), 6),
    row("hash_murmur_final", "numbers", 12, _MANY, zeros(12, "uint32"), 12),
    row("crc32_bits", "numbers", 5, text(_TEXT), _STARTS[:6].copy(), zeros(5, "uint32"), 5),
    row("crc32_table", "numbers", 16, text(_TEXT), zeros(16, "uint32"), 16),
    row("adler_32", "numbers", 4, text(_TEXT), zeros(4, "uint32"), 20),
    row("sha256_rounds", "numbers", 2, _SHA, zeros(16, "uint32"), 8),
    row("sha256_rounds of 16 rounds", "numbers", 2, _SHA, zeros(16, "uint32"), 16, full=True),
    row("sha256_schedule", "numbers", 4, words(80, 3)),
    row("chacha_quarter_rounds", "numbers", 4, u32(0x11111111, 0x01020304, 0x9B8D6F43, 0x01234567,
        *(int(x) for x in words(12, 3)))),
    row("tea_encrypt", "numbers", 4, words(4, 1), words(8, 2), 8),
    row("base64", "numbers", 8, words(21, 4, "uint8"), zeros(28, "uint8"), 21),
    row("polynomial_horner", "numbers", 8, rand(6, -99, 99), edges(8, 1), zeros(8), 5, 8),
    row("dot_bytes", "numbers", 12, words(12, 1), words(12, 2), zeros(12), 12),
    row("brainfuck_like", "numbers", 4, text("++[->+++<]>-"), rand(32, 0, 2, 3, "uint8"), zeros(4, "uint8"), 12),
]  # fmt: skip
