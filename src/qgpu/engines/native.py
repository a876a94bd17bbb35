"""The native engine: evaluates a cast network's own weights, sparse and without torch, one token after another.

The weights are laid out by ``native_plan``; ``native_units`` and ``native_masks`` find at load time, from the
weights, what can be shared or left out, ``native_screen`` what need not be looked at; ``native_kernel`` is the
compiled loop over tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.engines.native_cache import prepared
from qgpu.engines.native_kernel import MAX_SAMPLES, POSITION, SAMPLES, TICK, Memory, make_memory, run
from qgpu.engines.native_nets import Nets
from qgpu.engines.native_plan import PARTS, Plan, make_claims
from qgpu.engines.native_screen import Screen, make_screen
from qgpu.engines.native_turns import AT_EMBEDDING, DONE, FULL, come_back, leave, turns
from qgpu.engines.native_units import Units, make_units
from qgpu.engines.native_wave import doubt, forget, make_wave, touched
from qgpu.engines.protocol import Array, EngineError, check_ids, first_mismatch
from qgpu.foundry.network import Network
from qgpu.foundry.stock import has_deltanet

NO_IDS = np.zeros(0, np.int64)
DTYPES = ("bfloat16", "float32")
KEPT = ("x", "odd_list", "odd_flag", "ring", "ring_kind", "ring_rho", "energy", "count")  # what a snapshot copies whole
KEPT_OF_WAVE = ("past", "past_kind", "answer")


class NativeEngine:
    """See ``protocol.Engine``.

    network: a cast network or its file. dtype: of the activations, "bfloat16" (rounded where the stock model in
    bfloat16 rounds; quicker, as signals stay exact) or "float32". Sums are float32 either way. ``screening=False``
    computes every row of every token: slow, and the reference for what screening leaves out; ``netlist=False`` looks at
    every token anew, and is the reference for what is kept between tokens. folder: where to keep what is made of the
    network; None to make it anew. Raises EngineError for a network that it cannot evaluate.
    """

    def __init__(
        self, network: Network | Path | str, dtype: str = "bfloat16", screening: bool = True, netlist: bool = True,
        folder: Path | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise EngineError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
        if not isinstance(network, Network):
            network = Network.load(Path(network))
        self.network = network
        self._rounds = dtype == "bfloat16"
        self._screening = screening
        netlist = netlist and screening and self._rounds
        kept = prepared(network, folder, netlist)
        self._plan: Plan = kept.plan
        self._whole: tuple[Units, Screen] | None = None
        self._tuned = False
        self._memory: Memory = make_memory(self._plan, 0, 0)
        self._nets: Nets | None = kept.nets if netlist else None
        if self._nets is not None:
            self._wave = make_wave(self._plan, self._nets)
            self._values = kept.values
        layer_of = np.repeat(np.arange(self._plan.layers), np.diff(self._plan.cell_ptr))
        places = zip(layer_of.tolist(), self._plan.cell_head.tolist(), strict=True)
        self._cells = {place: cell for cell, place in enumerate(places)}

    @property
    def position(self) -> int:
        return int(self._memory.count[POSITION])

    def reset(self) -> None:
        m = self._memory
        m.state[m.used.astype(bool)] = 0
        m.used[:] = 0
        m.ring_kind[:] = 0
        m.count[POSITION] = 0
        if self._nets is not None:
            self._wave.past_kind[:] = 0
            touched(self._wave, self._nets)

    def _tables(self) -> tuple[Units, Screen]:
        """What ``native_kernel`` needs beside the plan, made when it is first needed. Watches are chosen anew, once it
        is known which signals are rarely on: that changes what is looked at, never a result."""
        if self._whole is None:
            claims = make_claims(self.network, self._plan, self._rounds)
            units = make_units(self._plan, self._rounds, claims)
            screen = make_screen(self._plan, units, self._rounds, claims)
            self._whole = units, screen
            fresh = make_memory(self._plan, len(screen.masks.term_ptr) - 1, len(units.neuron))
            self._memory = self._memory._replace(level=fresh.level, todo=fresh.todo, stamp=fresh.stamp)
        if not self._tuned and self._memory.count[SAMPLES] >= MAX_SAMPLES:
            units, screen = self._whole
            share = self._memory.activity / np.float32(MAX_SAMPLES)
            claims = make_claims(self.network, self._plan, self._rounds)
            self._whole = units, make_screen(self._plan, units, self._rounds, claims, share)
            self._tuned = True
        return self._whole

    def _run_whole(self, ids: Array, answers: Array, written: Array, stops: Array, start: int = 0) -> int:
        units, screen = self._tables()
        done: int = run(
            self._plan, units, screen, self._memory, ids, answers, written, stops, self._screening, self._rounds, start
        )
        return done

    def _run(self, ids: Array, answers: Array, written: Array, stops: Array) -> int:
        nets = self._nets
        if nets is None:
            return self._run_whole(ids, answers, written, stops)
        if not len(ids) and len(answers) == 1:
            answers[0] = self._wave.answer[0]
            return 0
        fed = count = 0
        while True:
            fed, count, item, token = turns(
                self._plan, nets, self._values, self._wave, self._memory, ids, answers, written, stops, fed, count
            )
            if item == DONE:
                return int(count)
            if item == FULL:
                forget(self._wave, nets)
                continue
            self._step_aside(nets, item, token)
            if fed < len(ids):
                if fed < len(answers):
                    answers[fed] = self._wave.answer[0]
                fed += 1
            else:
                written[count] = token
                count += 1
                if token in stops:
                    return int(count)

    def _step_aside(self, nets: Nets, item: int, token: int) -> None:
        """Feed a token that the netlist has no codes for, from ``item`` on."""
        self._tables()
        start = leave(self._plan, nets, self._wave, self._memory, item)
        if item >= 0:
            doubt(self._wave, nets)
        answer = np.zeros(1, np.int64)
        self._run_whole(np.array([token], np.int64), answer, NO_IDS, NO_IDS, start)
        come_back(self._plan, nets, self._wave, self._memory)
        self._wave.answer[0] = answer[0]
        touched(self._wave, nets)

    def feed(self, ids: Sequence[int], argmax: bool = False) -> list[int] | None:
        array = check_ids(ids, self.network.shape.vocabulary).astype(np.int64)
        answers = np.zeros(len(array) if argmax else 0, np.int64)
        self._run(array, answers, NO_IDS, NO_IDS)
        return answers.tolist() if argmax else None

    def next(self) -> int:
        if not self.position:
            raise EngineError("nothing was fed yet: feed a prompt first")
        answer = np.zeros(1, np.int64)
        self._run(NO_IDS, answer, NO_IDS, NO_IDS)
        return int(answer[0])

    def generate(self, limit: int, stops: Collection[int] = ()) -> list[int]:
        if not self.position:
            raise EngineError("nothing was fed yet: feed a prompt first")
        written = np.zeros(max(limit, 0), np.int64)
        count = self._run(NO_IDS, NO_IDS, written, np.array(sorted(stops), np.int64))
        return written[:count].tolist()

    def activity(self, ids: Sequence[int]) -> Array:
        """Feed tokens, and count: uint16 [len(ids), layers, 2], how many dims of the residual stream each layer's mixer
        and MLP changed at each of them."""
        array = check_ids(ids, self.network.shape.vocabulary).astype(np.int64)
        found = np.zeros((len(array), self._plan.layers, 2), np.uint16)
        for row in range(len(array)):
            if self._nets is None:
                self._run_whole(array[row : row + 1], NO_IDS, NO_IDS, NO_IDS)
            else:
                self._step_aside(self._nets, AT_EMBEDDING, int(array[row]))
            found[row] = self._memory.changed.reshape(-1, 2)
        return found

    def check(self, ids: Sequence[int]) -> int | None:
        if not len(ids):
            return None
        before = self.next() if self.position else -1
        answers = self.feed(ids, argmax=True) or []
        return first_mismatch([before, *answers[:-1]], ids)

    def state(self, layer: int, head: int) -> Array:
        shape = self.network.shape
        if not (0 <= layer < shape.layers and 0 <= head < shape.linear_heads and has_deltanet(layer)):
            raise EngineError(f"there is no DeltaNet head {head} in layer {layer}")
        cell = self._cells.get((layer, head))  # heads without key rows are not kept: they never hold anything
        return np.zeros((PARTS, PARTS), np.float32) if cell is None else self._memory.state[cell].copy()

    def snapshot(self) -> object:
        m = self._memory
        rows = np.flatnonzero(m.used)  # only rows that were ever written
        kept = {name: getattr(m, name).copy() for name in KEPT}
        if self._nets is not None:
            kept |= {name: getattr(self._wave, name).copy() for name in KEPT_OF_WAVE}
        return kept, rows, m.state.reshape(-1, PARTS)[rows]

    def restore(self, snapshot: object) -> None:
        if not (isinstance(snapshot, tuple) and len(snapshot) == 3 and isinstance(snapshot[0], dict)):
            raise EngineError("this is no snapshot of a native engine")
        saved: tuple[dict[str, Array], Array, Any] = snapshot
        m = self._memory
        kept, rows, values = saved
        if set(kept) != {*KEPT, *(KEPT_OF_WAVE if self._nets is not None else ())} or len(kept["x"]) != len(m.x):
            raise EngineError("this snapshot is of another network")
        m.state[m.used.astype(bool)] = 0
        m.used[:] = 0
        m.used.reshape(-1)[rows] = 1
        m.state.reshape(-1, PARTS)[rows] = values
        own = m.count[[TICK, SAMPLES]]  # go on: what was looked at since must not pass for looked at again
        for name in KEPT:
            getattr(m, name)[...] = kept[name]
        m.count[[TICK, SAMPLES]] = own
        if self._nets is not None:
            for name in KEPT_OF_WAVE:
                getattr(self._wave, name)[...] = kept[name]
            touched(self._wave, self._nets)
