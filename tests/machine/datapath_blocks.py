"""Random blocks and runs for the datapath: every choice of the subset, operands on edges, near-miss addresses."""

from __future__ import annotations

from random import Random

from tests.machine.datapath_runs import REPAIRS, Run, full, repair, start
from tests.machine.random_launches import word

from qgpu.isa import encoding, subset, tokens
from qgpu.isa.program import Block, Launch, Program

POOL = 24
ROWS = (0, 1, 7, 8, 9, 127, 128, 1023, 1535, 1536, 1700, 2047)


def pick(rng: Random, name: str) -> str:
    return rng.choice(sorted(subset.PRESENT[name]))


def addresses(rng: Random, allocated: dict[int, int]) -> int:
    """Mostly inside the map, aligned or nearly so, or just past an end."""
    kind = rng.randrange(8)
    if kind < 5:
        row = rng.choice(sorted(allocated))
        return 64 * row + 4 * rng.randrange(16) + rng.choice((0, 0, 0, 0, 0, 1, 2, 3))
    if kind == 5:
        return 8 * rng.choice(ROWS) + rng.randrange(8)
    if kind == 6:
        return rng.choice((0x3FFC, 0x3FFD, 0x4000, 0xFFFFFFFC, 0x80000000, 0x7FFFFFFC))
    return word(rng)


def random_block(rng: Random) -> dict[str, int]:
    """Any block of the subset; half of them with operands that make addresses."""
    f: dict[str, int | str] = {name: pick(rng, name) for name in subset.PRESENT}
    for name, described in encoding.BY_NAME.items():
        if name not in f and name not in subset.ABSENT_FIELDS:
            f[name] = rng.getrandbits(described.width)
    f["d_e"], f["d_b"] = rng.sample(range(1, 16), 2)
    f["imm"] = rng.choice((rng.randrange(-64, 64), rng.randrange(-0x8000, 0x8000)))
    for port in ("pa", "pq", "pt"):
        f[port] = rng.randrange(POOL)
    if f["p_src"] == "b":
        f["m_op"] = "first"
    if f["m_op"] in subset.PRODUCTS:
        f["alu_b"] = rng.choice(sorted(subset.AFTER_PRODUCT))
    elif f["m_op"] != "first":
        f["m2_sel"] = rng.choice(sorted(subset.AMOUNTS))
        f["alu_b"] = rng.choice(sorted(subset.PRESENT["alu_b"] - subset.BOUNDS))
    f["collect"] = rng.choice(("none", "sync"))  # what a warp exchanges needs DATA in between: see random launches
    if f["atomic"] != "none":
        f["store"] = rng.choice(("b32", "none") if f["atomic"] in ("inc", "dec") else ("b32", "b64", "none"))
    if f["atomic"] == "none" or f["store"] != "b32":
        f["d_o"] = 0
    if f.get("d_o"):
        f["rc"] = f["d_o"]
    for wide in ("load_wide", "store_wide"):
        f[wide] = int(rng.random() < 0.1)
    if f["alu_a"] not in subset.QUICK and f["load"] != "none":
        f |= rng.choice(({"alu_a": "add"}, {"load": "none"}))
    if rng.random() < 0.4:
        f["load"] = "none"
    elif rng.random() < 0.6:
        f |= {"a_sel": rng.choice("AP"), "b_sel": rng.choice(("zero", "I")), "b_shift": 0}
        f |= {"imm": 4 * rng.randrange(-3, 4), "alu_a": rng.choice(("add", "sub", "first"))}
        f |= {"ra": rng.choice(ADDRESS_REGISTERS), "pa": rng.choice(ADDRESS_PARAMETERS)}
    if rng.random() < 0.6:
        f |= {"sa_sel": rng.choice("ABT"), "rb": rng.choice(ADDRESS_REGISTERS), "pt": rng.choice(ADDRESS_PARAMETERS)}
        f |= {"sb_sel": rng.choice(("zero", "I"))}
    if f["store"] == "b64" and f["atomic"] == "cas" and f["rb"] == f["d_e"]:
        f["rb"] = 0
    if f["branch"] == "trap" and rng.random() < 0.8:
        f["branch"] = "next"
    return full(f)


ADDRESS_REGISTERS = (1, 2, 3, 4)
ADDRESS_PARAMETERS = range(8, 14)


def random_run(rng: Random, blocks: int, executions: int) -> Run:
    """A fresh launch of a few quads whose registers hold edge cases, then ``executions`` random EXEC."""
    made = [repair(k) for k in REPAIRS] + [random_block(rng) for _ in range(blocks)]
    quads = sorted({0, rng.randrange(tokens.QUADS)})
    threads = tokens.THREADS_PER_CTA
    allocated = {row: (1 << 64) - 1 for row in (1, 2, 16, 100, 200, 255)}
    allocated[rng.choice((3, 150, 240))] = rng.getrandbits(64) | rng.getrandbits(64)
    pool = [word(rng) for _ in range(POOL - 6)]
    for at in ADDRESS_PARAMETERS:
        pool[at - 6] = addresses(rng, allocated)
    lines = {row: (word(rng), word(rng)) for at in allocated for row in range(8 * at, 8 * at + 8, 3)}
    program = Program("datapath", tuple(Block({k: v for k, v in f.items() if v}) for f in made), 0, tuple(pool))
    cta = rng.choice(((threads, 1, 1), (8, 4, 4), (1, 32, 4)))
    run = start(Launch(program, (1, 1, 1), cta, (), lines, allocated), made, quads)
    for row in rng.sample(sorted(lines), 6) + [rng.choice(ROWS) for _ in range(4)]:
        run.read(row)
        if rng.random() < 0.7:  # what GO has wiped, among others
            run.write(row, word(rng), word(rng))
    for quad in quads:
        run.execute(0, quad)
        for register in rng.sample(range(1, 16), 15):
            near = register in ADDRESS_REGISTERS
            same = rng.random() < 0.2
            words = [addresses(rng, allocated) if near else word(rng) for _ in range(4)]
            run.set_register(quad, register, [words[0]] * 4 if same else words)
    for quad in quads:
        for stage in REPAIRS:
            run.execute(stage, quad)
    for _ in range(executions):
        quad = rng.choice(quads)
        if rng.random() < 0.15:
            lanes = rng.randrange(1, 16)
            run.mask(quad, lanes, rng.choice([i for i in range(4) if lanes >> i & 1]))
        run.execute(rng.randrange(len(REPAIRS), len(made)), quad)
    return run
