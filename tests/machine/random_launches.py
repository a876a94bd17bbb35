"""Random launches inside what the circuits implement: edge-heavy words, mostly valid addresses, branches of both
kinds."""

from __future__ import annotations

from random import Random

from tests.isa.mend import mended
from tests.machine.random_memory import destinations, loads, shift_of, stores

from qgpu.isa import encoding, subset
from qgpu.isa.execute import LOAD_BYTES, STORE_BYTES
from qgpu.isa.program import FIRST_PARAM, Block, Launch, Program

EDGES = (0, 1, 2, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFF, 0x8000, 0xFFFF8000, 0xFFFF7FFF, 0x10000, 0xAAAAAAAA)
ARRAY = 64
WORDS = 32


def word(rng: Random) -> int:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(EDGES)
    if kind == 1:
        return rng.randrange(-40, 40) & 0xFFFFFFFF
    return rng.getrandbits(32) if kind == 2 else rng.getrandbits(rng.randrange(1, 33))


def _fields(rng: Random, index: int, count: int) -> dict[str, int | str]:
    register = lambda: rng.randrange(16)  # noqa: E731
    parameter = lambda: rng.randrange(0, FIRST_PARAM + 8)  # noqa: E731
    specials = encoding.CHOICES["x"]
    any_of = lambda name: rng.choice(sorted(subset.PRESENT[name]))  # noqa: E731
    f: dict[str, int | str] = {
        "ra": register(), "rb": register(), "rc": register(), "imm": rng.choice((rng.randrange(-40, 40), rng.randrange(-32768, 32768))),  # noqa: E501
        "pa": parameter(), "pq": parameter(), "pt": parameter(), "x": rng.choice(specials), "y": rng.choice(("ctaid.x", "ctaid.y", "ctaid.z")),  # noqa: E501
        "a_sel": rng.choice(("zero", "A", "P", "Y", "X", "I")), "b_sel": rng.choice(("zero", "B", "I", "X", "P")),
        "b_shift": rng.randrange(4), "alu_a": any_of("alu_a"), "m1_sel": rng.choice(("zero", "A", "R", "L", "S1", "B", "Q")),  # noqa: E501
        "m2_sel": rng.choice(("zero", "B", "I", "Q", "L", "S2", "R", "A")), "m_op": any_of("m_op"),
        "c_sel": rng.choice(("zero", "C", "S2", "X", "I", "Q", "L")), "alu_b": any_of("alu_b"), "cond": rng.randrange(10),  # noqa: E501
        "p_write": rng.randrange(2), "p_index": rng.randrange(4), "p_src": rng.choice(("a", "b")), "g_index": rng.randrange(4),  # noqa: E501
        "g_neg": rng.randrange(2), "g_sel": rng.randrange(2), "stage_w": rng.choice(("none", "R", "L")),
        "stage_wi": rng.randrange(4), "stage_1": rng.randrange(4), "stage_2": rng.randrange(4),
    }  # fmt: skip
    if rng.random() < 0.35:
        f |= loads(rng)
    if rng.random() < 0.4:
        f |= stores(rng)
    f |= destinations(rng, f)
    last = index == count - 1
    kind = rng.random()
    if last:
        f["branch"] = "exit"
    elif kind < 0.3:
        target = rng.randrange(count)
        if target <= index and rng.random() < 0.6:
            target = rng.randrange(index + 1, count)
        f |= {"branch": "bra", "target": target, "back": int(target <= index), "g_branch": int(rng.random() < 0.8)}
        if rng.random() < 0.6:  # lanes part company
            f |= {
                "a_sel": "X",
                "x": "tid.x",
                "b_sel": "I",
                "imm": rng.randrange(0, 5),
                "b_shift": 0,
                "p_write": 1,
                "p_src": "a",
            }
            f |= {"g_index": f["p_index"], "load": "none"}
    elif kind < 0.36:
        f |= {"branch": "exit", "g_branch": 1}
    elif kind < 0.38:
        f |= {"branch": "trap", "g_branch": 1}
    return f


def launch(rng: Random, blocks: int | None = None) -> Launch:
    count = blocks or rng.randrange(1, 9)
    made = []
    for index in range(count):
        fields = _fields(rng, index, count)
        numbers = {k: encoding.CHOICES[k].index(v) if isinstance(v, str) else v for k, v in mended(fields).items()}
        made.append(Block({k: v for k, v in numbers.items() if v}))
    pool = (ARRAY, ARRAY + 4 * WORDS, *(word(rng) for _ in range(6)))
    rows = {ARRAY // 8 + i: (word(rng), word(rng)) for i in range(WORDS)}
    allocated = {1 + i: (1 << 64) - 1 for i in range(8 * WORDS // 64)}
    cta = rng.choice(((1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (7, 1, 1), (10, 1, 1), (3, 2, 2), (33, 1, 1)))
    grid = rng.choice(((1, 1, 1), (1, 1, 1), (2, 1, 1), (2, 2, 2)))
    return Launch(Program("random", tuple(made), 0, pool), grid, cta, (), rows, allocated)


def straight(rng: Random, count: int) -> Launch:
    """``count`` random blocks in a row, none of which branches or faults, on one quad of one to four lanes."""
    made = []
    for index in range(count):
        fields = _fields(rng, index, count)
        for name in ("branch", "target", "back", "g_branch"):
            fields.pop(name, None)
        load, store = fields.get("load", "none"), fields.get("store", "none")
        if load != "none":
            fields |= {"a_sel": "P", "pa": FIRST_PARAM, "b_sel": "X", "x": "tid.x", "alu_a": "add", "load_wide": 0}
        if store != "none":
            fields |= {"sa_sel": "T", "pt": FIRST_PARAM + rng.randrange(2), "sb_sel": rng.choice(("zero", "BS"))}
            fields |= {"b_sel": "X", "store_wide": 0}
            if load == "none":
                fields["x"] = rng.choice(("tid.x", "laneid"))
        if load != "none" or store != "none":
            size = max(LOAD_BYTES[str(load)], STORE_BYTES[str(store)])
            fields["b_shift"] = shift_of(size) + (rng.random() < 0.2 and size < 8)
        if index == count - 1:
            fields["branch"] = "exit"
        numbers = {k: encoding.CHOICES[k].index(v) if isinstance(v, str) else v for k, v in mended(fields).items()}
        made.append(Block({k: v for k, v in numbers.items() if v}))
    pool = (ARRAY, ARRAY + 4 * WORDS, *(word(rng) for _ in range(6)))
    rows = {ARRAY // 8 + i: (word(rng), word(rng)) for i in range(WORDS)}
    allocated = {1 + i: (1 << 64) - 1 for i in range(8 * WORDS // 64)}
    return Launch(
        Program("straight", tuple(made), 0, pool), (1, 1, 1), (rng.randrange(1, 5), 1, 1), (), rows, allocated
    )
