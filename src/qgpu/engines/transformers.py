"""The dense engine: a checkpoint folder in the stock ``Qwen3_5ForCausalLM``, no code of ours inside the model.

Slow (every zero is multiplied) and the reference: what this engine says is what anyone who loads the checkpoint gets.
Reading a trace in prefill (``check``) is some 30 times faster than decoding it, so checks are done that way.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM
from transformers.utils import logging as transformers_logging

from qgpu.engines.protocol import Array, EngineError, check_ids, first_mismatch

CHUNK = 256  # tokens of one prefill pass
LOGIT_BYTES = 64 << 20  # logits that stand in memory at a time


class TransformersEngine:
    """See ``protocol.Engine``. ``folder``: a checkpoint of the text model; ``dtype``: "bfloat16" or "float32";
    ``device``: what torch runs on, "cpu", "cuda", "cuda:1" or "mps". EngineError where there is none of that."""

    def __init__(self, folder: Path | str, dtype: str = "bfloat16", device: str = "cpu") -> None:
        self._device = _device(device)
        if not (Path(folder) / "config.json").is_file():
            raise EngineError(f"{folder}: no checkpoint there (config.json is missing); write one with export_dense")
        transformers_logging.set_verbosity_error()  # it warns of optional GPU kernels, at every load
        transformers_logging.disable_progress_bar()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = Qwen3_5ForCausalLM.from_pretrained(
                str(folder), dtype=getattr(torch, dtype), local_files_only=True
            ).eval().to(self._device)  # fmt: skip
        self.config = self.model.config
        self.reset()

    @property
    def position(self) -> int:
        return self._position

    def reset(self) -> None:
        self._cache = DynamicCache(config=self.config)
        self._position = 0
        self._last: torch.Tensor | None = None  # final hidden state of the last token, [hidden]

    @torch.inference_mode()
    def _run(self, ids: Array) -> torch.Tensor:
        """Final hidden states [n, hidden] of up to CHUNK tokens."""
        tokens = torch.from_numpy(ids.astype(np.int64))[None].to(self._device)
        out = self.model.model(input_ids=tokens, cache=self._cache, use_cache=True)
        self._cache = out.cache
        self._position += len(ids)
        hidden: torch.Tensor = out.last_hidden_state[0]
        self._last = hidden[-1]
        return hidden

    @torch.inference_mode()
    def _argmax(self, hidden: torch.Tensor) -> list[int]:
        rows = max(1, LOGIT_BYTES // (4 * self.config.vocab_size))
        parts = [self.model.lm_head(hidden[i : i + rows]).argmax(-1) for i in range(0, len(hidden), rows)]
        return [int(i) for part in parts for i in part]

    def feed(self, ids: Sequence[int], argmax: bool = False) -> list[int] | None:
        array = check_ids(ids, self.config.vocab_size)
        result: list[int] = []
        for start in range(0, len(array), CHUNK):
            hidden = self._run(array[start : start + CHUNK])
            if argmax:
                result += self._argmax(hidden)
        return result if argmax else None

    def next(self) -> int:
        if self._last is None:
            raise EngineError("nothing was fed yet: feed a prompt first")
        return self._argmax(self._last[None])[0]

    def generate(self, limit: int, stops: Collection[int] = ()) -> list[int]:
        result: list[int] = []
        while len(result) < limit:
            result.append(self.next())
            self.feed(result[-1:])
            if result[-1] in stops:
                break
        return result

    def check(self, ids: Sequence[int]) -> int | None:
        before = -1 if self._last is None else self.next()
        predicted = self.feed(ids, argmax=True) or []
        return first_mismatch([before, *predicted[:-1]], ids) if len(ids) else None

    def state(self, layer: int, head: int) -> Array:
        types = self.config.layer_types
        if not (0 <= layer < len(types) and types[layer] == "linear_attention"):
            raise EngineError(f"layer {layer} has no DeltaNet state")
        if not 0 <= head < self.config.linear_num_value_heads:
            raise EngineError(f"layer {layer} has {self.config.linear_num_value_heads} heads, there is no head {head}")
        states = self._cache.layers[layer].recurrent_states
        if self._position == 0 or states[0] is None:
            return np.zeros((self.config.linear_key_head_dim, self.config.linear_value_head_dim), np.float32)
        return states[0][0, head].to("cpu", torch.float32).numpy().copy()

    def snapshot(self) -> object:
        last = None if self._last is None else self._last.clone()
        return copy.deepcopy(self._cache), self._position, last

    def restore(self, snapshot: object) -> None:
        if not (isinstance(snapshot, tuple) and len(snapshot) == 3):
            raise EngineError("this is no snapshot of a transformers engine")
        saved: tuple[Any, int, torch.Tensor | None] = snapshot
        self._cache, self._position, self._last = copy.deepcopy(saved[0]), saved[1], saved[2]


def _device(name: str) -> torch.device:
    """The device of that name, if there is one here."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise EngineError(f"device {name!r}: torch cannot use it here ({reason}): choose another, or cpu") from None
    return device
