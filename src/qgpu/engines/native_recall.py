"""Which rows a key or query selected at the same inputs before, compiled.

A *settled* part (see ``native_masks``) depends on the levels of its terms alone, to the bit, as long as its inputs are
whole numbers. So what its weights gave once is kept under these levels; an engine starts with nothing kept.
"""

from __future__ import annotations

import numpy as np

from qgpu.engines.native_math import compiled

# what keys and queries selected. An entry: three words of levels, 1 + part, number of rows, where they are in the pool
MEMO, MEMO_WORDS, POOL = 1 << 15, 8, 1 << 18


@compiled
def memo_place(memo, tag, words0, words1, words2):  # type: ignore[no-untyped-def]
    """The entry of these levels, or the one to replace by them."""
    mixed = (words0 ^ (words1 * np.uint64(0xD6E8FEB86659FD93)) ^ np.uint64(tag)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29)) ^ words2) * np.uint64(0xBF58476D1CE4E5B9)
    at = np.int64((mixed >> np.uint64(32)) & np.uint64(MEMO - 1))
    for step in range(4):
        place = at ^ step
        if memo[place, 3] == 0 or (
            memo[place, 0] == words0
            and memo[place, 1] == words1
            and memo[place, 2] == words2
            and memo[place, 3] == np.uint64(tag)
        ):
            return place
    return at


@compiled
def recalled(part, ptr, term, level, recent, memo):  # type: ignore[no-untyped-def]
    """Whether it is known which rows a settled part selects at these levels; then ``recent[part]`` is the entry, else
    it holds the levels alone."""
    words0, words1, words2 = np.uint64(0), np.uint64(0), np.uint64(0)
    first, end = ptr[part], ptr[part + 1]
    for t in range(first, min(end, first + 8)):
        words0 = (words0 << np.uint64(8)) | np.uint64(np.int64(level[term[t]]) & np.int64(255))
    if end > first + 8:
        for t in range(first + 8, min(end, first + 16)):
            words1 = (words1 << np.uint64(8)) | np.uint64(np.int64(level[term[t]]) & np.int64(255))
        for t in range(first + 16, end):
            words2 = (words2 << np.uint64(8)) | np.uint64(np.int64(level[term[t]]) & np.int64(255))
    if (
        recent[part, 3] != 0
        and recent[part, 0] == words0
        and recent[part, 1] == words1
        and recent[part, 2] == words2
    ):
        return True
    tag = part + 1
    place = memo_place(memo, tag, words0, words1, words2)
    for n in range(MEMO_WORDS):
        recent[part, n] = memo[place, n]
    if (
        recent[part, 3] == np.uint64(tag)
        and recent[part, 0] == words0
        and recent[part, 1] == words1
        and recent[part, 2] == words2
    ):
        return True
    recent[part, 0], recent[part, 1], recent[part, 2], recent[part, 3] = words0, words1, words2, np.uint64(0)
    return False


@compiled
def remember(part, recent, memo, pool_row, pool_value, pool_used, where, what, count):  # type: ignore[no-untyped-def]
    """Keep what the levels in ``recent[part]`` select. Everything is forgotten where there is no room."""
    if pool_used[0] + count > len(pool_row):
        pool_used[0] = 0
        recent[:, 3] = np.uint64(0)
        memo[:, 3] = np.uint64(0)
    offset = pool_used[0]
    pool_used[0] += count
    for n in range(count):
        pool_row[offset + n], pool_value[offset + n] = where[n], what[n]
    recent[part, 3] = np.uint64(part + 1)
    recent[part, 4] = np.uint64(count)
    recent[part, 5] = np.uint64(offset)
    place = memo_place(memo, part + 1, recent[part, 0], recent[part, 1], recent[part, 2])
    for n in range(MEMO_WORDS):
        memo[place, n] = recent[part, n]
