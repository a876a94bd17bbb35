"""Fields of random blocks that load, store and do atomics: mostly aligned, lanes side by side or all at one place."""

from __future__ import annotations

from random import Random

from qgpu.isa import subset
from qgpu.isa.execute import LOAD_BYTES, STORE_BYTES
from qgpu.isa.program import FIRST_PARAM

Fields = dict[str, int | str]

ARRAYS = 2
"""Parameters from FIRST_PARAM on that hold addresses of arrays."""


def loads(rng: Random) -> Fields:
    size = rng.choice(sorted(subset.PRESENT["load"] - {"none"}))
    f: Fields = {"load": size, "g_load": rng.randrange(2), "load_wide": int(rng.random() < 0.1)}
    if rng.random() < 0.9:
        f |= {"a_sel": "P", "pa": FIRST_PARAM + rng.randrange(ARRAYS), "b_sel": "X", "x": "tid.x", "alu_a": "add"}
        f |= {"b_shift": shift_of(LOAD_BYTES[size]) if rng.random() < 0.9 else rng.randrange(4)}
    return f


def stores(rng: Random) -> Fields:
    """A store or an atomic, with all that the circuits ask of one."""
    size = rng.choice(sorted(subset.PRESENT["store"] - {"none"}))
    atomic = "none"
    if size in ("b32", "b64") and rng.random() < 0.6:
        atomic = rng.choice(sorted(subset.PRESENT["atomic"] - ({"inc", "dec"} if size == "b64" else set())))
    f: Fields = {"store": size, "atomic": atomic, "g_store": rng.randrange(2), "store_wide": int(rng.random() < 0.07)}
    f |= {"sa_sel": rng.choice(("zero", "A", "B", "T")), "sb_sel": rng.choice(("zero", "BS", "I"))}
    if rng.random() < 0.9:
        f |= {"sa_sel": "T", "pt": FIRST_PARAM + rng.randrange(ARRAYS), "sb_sel": "zero"}
        if rng.random() < (0.4 if atomic != "none" else 0.8):
            f |= {"sb_sel": "BS", "b_sel": "X", "x": rng.choice(("tid.x", "laneid"))}
            f |= {"b_shift": shift_of(STORE_BYTES[size]) if rng.random() < 0.9 else rng.randrange(4)}
    if atomic == "cas" and rng.random() < 0.6:  # what is there is what is looked for
        f |= {"load": size, "e_sel": "L", "a_sel": "P", "pa": f.get("pt", FIRST_PARAM), "load_wide": 0}
        f |= {"alu_a": "first" if f["sb_sel"] == "zero" else "add"}
    return f


def destinations(rng: Random, f: Fields) -> Fields:
    """Different ones, or none; an atomic's old value among them."""
    early, late, old = rng.sample(range(1, 16), 3)
    found: Fields = {}
    if rng.random() < 0.5:
        found |= {"d_e": early, "e_sel": f.get("e_sel") or rng.choice(("R", "L", "H") if "load" in f else ("R",))}
    if rng.random() < 0.6:
        found["d_b"] = late
    if f.get("atomic", "none") != "none" and f["store"] != "b64" and rng.random() < 0.7:
        found |= {"d_o": old, "rc": old}
    if f.get("atomic") == "cas" and f["store"] == "b64":
        found["rb"] = rng.choice([r for r in range(16) if r not in (early, late)])
    return found


def shift_of(size: int) -> int:
    return max(size, 1).bit_length() - 1
