"""One EXEC: what a block does to its lanes, before any DATA or MEM token goes out (docs/machine.md, "A block").

``run_block`` changes predicates, stage registers, exchange buffers, PCs and flags, and returns what the tokens after
the EXEC must carry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from qgpu.isa import encoding, tokens
from qgpu.isa.operations import ALU, CONDITION, UNIT_M, shuffle
from qgpu.isa.state import State
from qgpu.isa.values import signed

LOAD_BYTES = {"none": 0, "u8": 1, "s8": 1, "u16": 2, "s16": 2, "b32": 4, "b64": 8}
STORE_BYTES = {"none": 0, "b8": 1, "b16": 2, "b32": 4, "b64": 8}


@dataclass(frozen=True)
class Store:
    """A store or atomic that waits for its MEM: ``words`` low and high operand, ``compare`` for compare-and-swap."""

    lane: int
    address: int
    size: int
    atomic: str
    words: tuple[int, int]
    compare: tuple[int, int]


@dataclass(frozen=True)
class Effect:
    """``destinations``: (register, lane -> word) in token order, without an atomic's old value. ``fault``: (cause,
    lane, address). ``event``: an active lane took a back-edge, waits or exited. ``gathered``: the members if this
    was a collect. ``loads``: (lane, address, bytes) of what was read."""

    fields: Mapping[str, int]
    active: tuple[int, ...]
    destinations: tuple[tuple[int, Mapping[int, int]], ...]
    stores: tuple[Store, ...]
    fault: tuple[int, int, int] | None
    event: bool
    gathered: int | None
    loads: tuple[tuple[int, int, int], ...] = ()


def special(state: State, name: str, quad: int, lane: int) -> int:
    """Lane special X (docs/machine.md, "Specials")."""
    row, here = state.threads[4 * quad + lane], 4 * (quad % tokens.QUADS_PER_WARP) + lane
    return {
        "zero": 0,
        "tid.x": row & 0xFF,
        "tid.y": row >> 8 & 0xFF,
        "tid.z": row >> 16 & 0xFF,
        "laneid": here,
        "warpid": quad // tokens.QUADS_PER_WARP,
        "activemask": state.mask[quad] << 4 * (quad % tokens.QUADS_PER_WARP),
        "lanemask_eq": 1 << here,
        "lanemask_lt": (1 << here) - 1,
        "lanemask_le": (2 << here) - 1,
        "lanemask_gt": 0xFFFFFFFF & -(2 << here),
        "lanemask_ge": 0xFFFFFFFF & -(1 << here),
    }[name]


def _parameter(state: State, word: int) -> int:
    return state.parameters.get(word >> 1, 0) >> 32 * (word & 1) & 0xFFFFFFFF


def _load(state: State, kind: str, address: int) -> tuple[int, int]:
    """(L, H) of a load that may be done; the row wraps inside the memory, whatever the fault rules then say."""
    address %= tokens.MEMORY_BYTES
    low, high = state.memory.get(address >> 3, (0, 0))
    if kind == "b64":
        return low, high
    word = (high if address & 4 else low) >> 8 * (address & 3)
    if kind == "none":
        return 0, 0
    if kind == "b32":
        return (high if address & 4 else low), 0
    bits = 8 * LOAD_BYTES[kind]
    return (signed(word, bits) & 0xFFFFFFFF if kind[0] == "s" else word & (1 << bits) - 1), 0


def _access_fault(state: State, address: int, size: int, wide: int) -> int | None:
    """0 out of bounds, 1 misaligned, None if the access is right. Misalignment is said first."""
    if address % (16 if wide else size):
        return 1
    return None if state.may_touch(address, size) else 0


def run_block(state: State, block: int, quad: int) -> Effect:
    """Run ``block`` on the masked lanes of ``quad``."""
    parts = state.program.get(block, [0] * tokens.PARTS)
    f = encoding.decode(tuple(parts))
    name = {field: encoding.choice(field, f[field]) for field in encoding.CHOICES}
    active = tuple(i for i in range(4) if state.mask[quad] >> i & 1)
    base = 4 * quad
    imm = f["imm"] & 0xFFFFFFFF
    p, q, t = (_parameter(state, f[port]) for port in ("pa", "pq", "pt"))
    y = state.cta[f["y"]]
    early: dict[int, int] = {}
    late: dict[int, int] = {}
    stage: dict[int, int] = {}
    stores: list[Store] = []
    loads: list[tuple[int, int, int]] = []
    load_faults: list[tuple[int, int, int]] = []
    store_faults: list[tuple[int, int, int]] = []
    traps: list[tuple[int, int, int]] = []
    taken: set[int] = set()
    guards: dict[int, bool] = {}
    gathered = reduce(or_, (state.members[f["collect_parity"]][base + i] for i in active), 0)
    stage_read = [[*state.stage[quad][f[port]]] for port in ("stage_1", "stage_2")]
    for i in active:
        regs = state.registers[quad][i]
        ra, rb, rc = (regs[f[port]] if f[port] else 0 for port in ("ra", "rb", "rc"))
        x = special(state, name["x"], quad, i)
        a = {"zero": 0, "A": ra, "P": p, "Y": y, "X": x, "I": imm}[name["a_sel"]]
        b = {"zero": 0, "B": rb, "I": imm, "X": x, "P": p}[name["b_sel"]]
        bs = b << f["b_shift"] & 0xFFFFFFFF
        r = ALU[name["alu_a"]](a, bs)
        s = {"zero": 0, "A": ra, "B": rb, "T": t}[name["sa_sel"]]
        s = s + {"zero": 0, "BS": bs, "I": imm}[name["sb_sel"]] & 0xFFFFFFFF
        loaded, loaded_high = _load(state, name["load"], r)
        v, in_range = 0, False
        if name["collect"].startswith("shfl"):
            here = 4 * (quad % tokens.QUADS_PER_WARP) + i
            source, in_range = shuffle(name["collect"], here, bs, imm)
            warp = quad // tokens.QUADS_PER_WARP * tokens.WARP_SIZE
            v = state.exchange[f["collect_parity"]][warp + source]
        elif name["collect"] == "ballot":
            warp = quad // tokens.QUADS_PER_WARP * tokens.WARP_SIZE
            for j in range(tokens.WARP_SIZE):
                lane = state.lanes[warp + j]
                here_published = gathered >> j & 1 and lane.exists and not lane.exited
                if here_published and state.votes[f["collect_parity"]][warp + j]:
                    v |= 1 << j
        stage[i] = {"none": 0, "R": r, "L": loaded}[name["stage_w"]]
        s1, s2 = (row[i] for row in stage_read)
        if name["stage_w"] != "none":
            s1 = stage[i] if f["stage_1"] == f["stage_wi"] else s1
            s2 = stage[i] if f["stage_2"] == f["stage_wi"] else s2
        m1 = {"zero": 0, "A": ra, "R": r, "L": loaded, "S1": s1, "V": v, "B": rb, "Q": q}[name["m1_sel"]]
        m2 = {"zero": 0, "B": rb, "I": imm, "Q": q, "L": loaded, "S2": s2, "R": r, "A": ra}[name["m2_sel"]]
        c = {"zero": 0, "C": rc, "S2": s2, "X": x, "I": imm, "Q": q, "V": v, "L": loaded}[name["c_sel"]]
        m = UNIT_M[name["m_op"]](m1, m2, rc)
        d = ALU[name["alu_b"]](m, c)
        if f["p_write"]:
            pair = {"a": (a, bs), "b": (m, c)}.get(name["p_src"])
            bit = in_range if pair is None else CONDITION[name["cond"]](*pair)
            row = state.predicates[quad]
            row[f["p_index"]] = row[f["p_index"]] & ~(1 << i) | bit << i
        g = bool(state.predicates[quad][f["g_index"]] >> i & 1 ^ f["g_neg"])
        guards[i] = g
        if f["g_sel"] and not g:
            d = c
        early[i] = {"R": r, "L": loaded, "H": loaded_high}[name["e_sel"]]
        late[i] = d
        size = LOAD_BYTES[name["load"]]
        if size and (g or not f["g_load"]):
            fault = _access_fault(state, r, size, f["load_wide"])
            if fault is not None:
                load_faults.append((fault, i, r))
            loads.append((i, r, size))
        size = STORE_BYTES[name["store"]]
        if size and (g or not f["g_store"]):
            fault = _access_fault(state, s, size, f["store_wide"])
            if fault is not None:
                store_faults.append((2 + fault, i, s))
            stores.append(Store(i, s, size, name["atomic"], (d, rc), (early[i], rb)))
        if g or not f["g_branch"]:
            taken.add(i)
            if name["branch"] == "trap":
                traps.append((tokens.CAUSES.index("trap"), i, 0))
    first_fault = next(iter([*load_faults, *store_faults, *traps]), None)
    if first_fault is None:
        if name["stage_w"] != "none":
            state.stage[quad][f["stage_wi"]] = [stage.get(i, 0) for i in range(4)]
        _end(state, f, name["branch"], block, quad, active, taken, late, guards, q)
    destinations = tuple((f[port], words) for port, words in (("d_e", early), ("d_b", late)) if f[port])
    event = bool(
        name["branch"] == "gather" or (taken and (name["branch"] == "exit" or (name["branch"] == "bra" and f["back"])))
    )
    collected = gathered if name["collect"] != "none" else None
    return Effect(f, active, destinations, tuple(stores), first_fault, event, collected, tuple(loads))


def _end(state: State, f: Mapping[str, int], branch: str, block: int, quad: int, active: tuple[int, ...],
         taken: set[int], late: Mapping[int, int], guards: Mapping[int, bool], q: int) -> None:  # fmt: skip
    """New PCs and flags of the active lanes, and the quad's new group."""
    warp, base = quad // tokens.QUADS_PER_WARP, 4 * quad
    members = 0
    for i in active:
        lane = state.lanes[base + i]
        lane.waiting = False
        lane.pc = f["target"] if branch == "bra" and i in taken else block + 1 & 0xFF
        if branch == "exit" and i in taken:
            lane.exited = True
        elif branch == "bar":
            lane.blocked = True
        elif branch == "gather":
            member = state.registers[quad][i][f["ra"]] if f["member"] and f["ra"] else 0 if f["member"] else q
            lane.waiting, lane.gather = True, (member, lane.pc)
            members |= member
            state.members[f["publish_parity"]][base + i] = member
            # what is computed can only be published by its DATA; a register is there as it is
            own = state.registers[quad][i][f["ra"]] if f["ra"] else 0
            state.exchange[f["publish_parity"]][base + i] = late[i] if f["d_b"] else own
            state.votes[f["publish_parity"]][base + i] = guards[i]
    if branch == "gather":
        state.warp_gather[warp] = (members, block + 1 & 0xFF)
    _regroup(state, quad, bool(branch == "bra" and f["back"] and f["yield"] and taken))


def lead(lanes: int, leader: int) -> int:
    """The old leader if it is in ``lanes``, else the first lane of them cyclically after it."""
    return next(i % 4 for i in range(leader, leader + 4) if lanes >> i % 4 & 1)


def _regroup(state: State, quad: int, yields: bool) -> None:
    lanes = state.lanes[4 * quad : 4 * quad + 4]
    live = [i for i, n in enumerate(lanes) if n.exists and not n.exited and not n.waiting]
    runnable = [i for i in live if not lanes[i].blocked]
    group, old = state.group[quad], state.leader[quad]
    if yields and runnable:
        after = [i % 4 for i in range(old + 1, old + 4) if i % 4 in runnable]
        if old not in runnable:
            chosen = after[0]
        else:
            chosen = next((i for i in after if lanes[i].pc != lanes[old].pc), old)
        group.pc, group.leader = lanes[chosen].pc, chosen
        group.lanes = sum(1 << i for i in runnable if lanes[i].pc == group.pc)
    elif pool := runnable or live:
        group.pc = min(lanes[i].pc for i in pool)
        group.lanes = sum(1 << i for i in pool if lanes[i].pc == group.pc)
        group.leader = lead(group.lanes, old)
    else:
        group.lanes = 0
