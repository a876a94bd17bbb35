"""Stores and atomics from their EXEC to the last DATA of their rows, and the old values after them: random blocks with
colliding addresses, against a model on Python integers."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

from tests.machine.random_launches import word
from tests.machine.test_atomics import NEW, near
from tests.machine.unit import Inputs, Unit

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import constant
from qgpu.circuit.word import Word
from qgpu.isa import encoding, values
from qgpu.machine.parts import Ranks
from qgpu.machine.results import Halves
from qgpu.machine.rows import rows

OPS, SIZES = encoding.CHOICES["atomic"], encoding.CHOICES["store"]
BYTES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
LANES = {f"{name}{i}": width for name, width in (("address", 14), ("late", 32), ("early", 32), ("b", 32), ("c", 32))
         for i in range(4)}  # fmt: skip
WIDTHS = {"exec": 1, "mem": 1, "read": 1, "is_mem": 1, "is_read": 1, "sub": 2, "position": 5, "store": 3, "atomic": 4,
          "d_o": 4, "lanes": 4, "active": 4, "row": 64, "is_old": 1, "low": 4, "high": 4, **LANES}  # fmt: skip


def build(b: Builder, i: Inputs) -> dict[str, Any]:
    bit = {name: i[name][0] for name in ("exec", "mem", "read", "is_mem", "is_read", "is_old")}
    count = i["active"]
    two, three, four = (b.lookup(f"count{n}", sum(count, constant(0)), {n: 1}) for n in (2, 3, 4))
    ctx = SimpleNamespace(
        token=SimpleNamespace(kind={"EXEC": bit["exec"], "MEM": bit["mem"], "READ": bit["read"]}),
        marker={"MEM": bit["is_mem"], "READ": bit["is_read"]}, sub=i["sub"], position=i["position"].bits,
        rom={"store": i["store"], "atomic": i["atomic"], "d_o": i["d_o"]}, active=i["active"].bits,
        ranks=Ranks([], two, three, four),
    )  # fmt: skip
    lanes = {name: [i[f"{name}{lane}"] for lane in range(4)] for name in ("address", "late", "early", "b", "c")}
    path = SimpleNamespace(
        store_address=lanes["address"], store_lane=i["lanes"].bits, late=lanes["late"], early=lanes["early"],
        b=lanes["b"], c=lanes["c"], row=i["row"],
    )  # fmt: skip
    low, high = b.bus_word("out.low", 16), b.bus_word("out.high", 16)
    found = rows(b, ctx, path, bit["is_old"], Halves(i["low"].bits, i["high"].bits), (low, high))  # type: ignore[arg-type]
    form = Word("form", (found.old.long, found.old.mixed, found.old.wide))
    return {"more": found.more, "lane": found.lane, "row": found.row, "data": found.data, "ends": found.ends,
            "quarter": Word("quarter", tuple(found.quarter)), "low": low, "high": high,
            "form": form}  # fmt: skip


class Case:
    """One EXEC with what follows: ``tokens``, and what must be seen at each."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.tokens, self.wanted = rng, [], []
        size = rng.choice(sorted(BYTES))
        self.bytes = BYTES[size]
        op = rng.choice(OPS) if self.bytes >= 4 and rng.random() < 0.6 else "none"
        if self.bytes == 8 and op in ("inc", "dec"):
            op = "none"
        self.op, self.d_o = op, rng.randrange(1, 16) if op != "none" and self.bytes < 8 and rng.random() < 0.8 else 0
        self.active = rng.randrange(1, 16)
        lanes = self.active & (15 if rng.random() < 0.5 else rng.getrandbits(4))
        self.lanes = [i for i in range(4) if lanes >> i & 1]
        few = [self.bytes * rng.randrange(0x4000 // self.bytes) for _ in range(2)]
        few += [a ^ 4 if self.bytes < 8 else a for a in few] + [8 * (a // 8) for a in few]
        self.address = [rng.choice(few) for _ in range(4)]
        if self.bytes < 4 and rng.random() < 0.7:
            row = 8 * rng.randrange(2048)
            self.address = [row + self.bytes * rng.randrange(8 // self.bytes) for _ in range(4)]
        self.late, self.early, self.b, self.c = ([self.word() for _ in range(4)] for _ in range(4))
        self.memory = {a >> 3: (self.word(), self.word()) for a in self.address}
        self.old = dict(enumerate(self.c))
        for i in self.lanes:
            self.likely(i)
        self.exec = self.fields() | {"exec": 1, "lanes": lanes} | {f"c{i}": c for i, c in enumerate(self.c)}
        self.exec |= {f"{n}{i}": w for n in ("early", "late") for i, w in enumerate(getattr(self, n))}
        self.exec |= {f"address{i}": a for i, a in enumerate(self.address)}
        self.follow()

    def word(self) -> int:
        return self.rng.choice((word(self.rng), self.rng.randrange(-3, 4) & 0xFFFFFFFF, 5))

    def likely(self, lane: int) -> None:
        """Operands that are near what the memory holds."""
        if self.op == "none" or self.rng.random() < 0.3:
            return
        low, high = self.memory[self.address[lane] >> 3]
        if self.bytes == 8:
            self.late[lane], self.c[lane] = near(self.rng, low, 32), near(self.rng, high, 32)
            self.early[lane], self.b[lane] = self.rng.choice(((low, high), (low, high ^ 1), (low ^ 1 << 31, high)))
        else:
            old = high if self.address[lane] & 4 else low
            self.late[lane], self.early[lane] = near(self.rng, old, 32), near(self.rng, old, 32)

    def fields(self) -> dict[str, int]:
        """What the block's encoding and the mask say at every token."""
        size = next(name for name, n in BYTES.items() if n == self.bytes)
        return {"store": SIZES.index(size), "atomic": OPS.index(self.op), "d_o": self.d_o, "active": self.active}

    def written(self) -> list[tuple[int, int, int]]:
        """(lane, row, new bits) of each MEM; also leaves ``memory`` and ``old`` as they are in the end."""
        found = []
        if self.op == "none":
            for row in dict.fromkeys(self.address[i] >> 3 for i in self.lanes):
                mine = [i for i in self.lanes if self.address[i] >> 3 == row]
                low, high = self.memory[row]
                content = bytearray((low | high << 32).to_bytes(8, "little"))
                for i in mine:
                    data = (self.late[i] | self.c[i] << 32).to_bytes(8, "little")[: self.bytes]
                    content[self.address[i] % 8 : self.address[i] % 8 + self.bytes] = data
                found.append((mine[0], row, int.from_bytes(content, "little")))
            return found
        bits = 8 * self.bytes
        for i in self.lanes:
            row, shift = self.address[i] >> 3, 8 * (self.address[i] % 8)
            low, high = self.memory[row]
            whole, ones = low | high << 32, (1 << bits) - 1
            old, operand = whole >> shift & ones, (self.late[i] | self.c[i] << 32) & ones
            hit = old == (self.early[i] | self.b[i] << 32) & ones
            whole = whole & ~(ones << shift) | NEW[self.op](old, operand, hit, bits) << shift
            self.memory[row] = (whole & 0xFFFFFFFF, whole >> 32)
            if bits == 32:
                self.old[i] = old
            found.append((i, row, whole))
        return found

    def emit(self, token: dict[str, int], **wanted: int) -> None:
        self.tokens.append(self.fields() | token)
        self.wanted.append(wanted)

    def follow(self) -> None:
        before = dict(self.memory)
        todo = self.written()

        def following(n: int) -> dict[str, int]:
            if n == len(todo):
                return {"more": 0}
            return {"more": 1, "lane": todo[n][0], "row": todo[n][1]}

        self.emit(self.exec, quarter=0, ends=0, **following(0))
        self.emit({}, **following(0))  # DATA of the first destination
        for n, (lane, row, new) in enumerate(todo):
            low, high = before[row]
            here = {"is_mem": 1, "sub": lane}
            payloads = values.row_form(new & 0xFFFFFFFF, new >> 32)
            quarters = {1: (0,), 2: (0, 2), 3: (0, 1, 2), 4: (0, 1, 2, 3)}[len(payloads)]
            now = {f"b{i}": w for i, w in enumerate(self.b)}
            for place in range(len(payloads) + 1):
                token = here | {"position": 1 << place}
                if place == 0:
                    token |= now | {"mem": 1, "row": low | high << 32}
                done = place == len(payloads)
                shown = {} if done else {"payload": payloads[place]}
                self.emit(token, data=new, ends=int(done), quarter=0 if done else 1 << quarters[place], **shown,
                          **following(n + 1))  # fmt: skip
            before[row] = (new & 0xFFFFFFFF, new >> 32)
        if self.d_o and todo:
            words = [self.old[i] for i in range(4) if self.active >> i & 1]
            long = int(any(not values.fits(w) for w in words))
            mixed = int(len(set(words)) > 1)
            wide = values.lane_form(words)[0]
            for lane in range(4):
                if self.active >> lane & 1:
                    self.emit({"is_old": 1, "low": 1 << lane, "high": 1 << lane}, low=self.old[lane] & 0xFFFF,
                              high=self.old[lane] >> 16, form=long | mixed << 1 | wide << 2)  # fmt: skip
        low, high = self.word(), self.word()
        self.emit({"read": 1, "is_read": 1, "position": 1, "row": low | high << 32}, data=low | high << 32, quarter=1,
                  low=0, high=0)  # fmt: skip


def test_rows_of_random_blocks() -> None:
    rng = Random(12)
    runs = [[Case(rng) for _ in range(8)] for _ in range(400)]
    tokens = [[token for case in run for token in case.tokens] for run in runs]
    wanted = [[want for case in run for want in case.wanted] for run in runs]
    unit = Unit(WIDTHS, build, tokens)
    wrong = []
    for place, seen in unit:
        for n, shown in enumerate(seen):
            if shown is None:
                continue
            want = wanted[n][place]
            got = dict(shown)
            if shown["quarter"] and "payload" in want:
                got["payload"] = shown["data"] >> 16 * (shown["quarter"].bit_length() - 1) & 0xFFFF
            if not shown["more"]:
                got |= {name: want[name] for name in ("lane",) if name in want}
            if bad := {k: (hex(got.get(k, -1)), hex(v)) for k, v in want.items() if got.get(k) != v}:
                wrong.append((n, place, bad, tokens[n][place]))
    assert wrong[:3] == []
    cases = [case for run in runs for case in run]
    assert all(count > 30 for count in Counter(case.op for case in cases).values())
