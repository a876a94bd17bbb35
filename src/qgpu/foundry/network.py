"""The foundry's product: a Qwen3.5-shaped network as sparse tensors, and its file.

Everything an engine needs is here and nothing else: no circuit, no names of a machine. Tensor names and shapes are
those of the stock text model (``embed_tokens.weight``, ``layers.N.linear_attn.in_proj_qkv.weight``,
``layers.N.mlp.gate_proj.weight``, ``norm.weight``, ``lm_head.weight`` ...), so that a dense checkpoint is a plain
scatter of these values into zeros.

A tensor that is absent is zero, with three exceptions that have a stock default of their own and are always written out
by ``dense``: RMSNorm weights are stored zero-centred as the stock model does (absent = 0 = scale 1), ``A_log`` and
``linear_attn.norm.weight`` are given explicitly for every linear layer.

All values are exactly representable in bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Shape:
    """Sizes of the cast model; all of them stock Qwen3.5 config entries. Layer i is full attention iff i % 4 == 3."""

    hidden: int
    layers: int
    intermediate: int
    vocabulary: int
    linear_heads: int = 16
    head_dim: int = 128
    conv_kernel: int = 4
    attention_heads: int = 1
    key_value_heads: int = 1
    attention_head_dim: int = 64
    rms_norm_eps: float = 1e-6


@dataclass(frozen=True, eq=False)
class Sparse:
    """A matrix by its non-zeros. ``rows``, ``cols``: int32 [n]; ``values``: float32 [n]; sorted by row, then column."""

    shape: tuple[int, ...]
    rows: Array
    cols: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Lookup:
    """A tall matrix (embedding or output head) of which only a few columns are used.

    Entry [id, dims[j]] = codes[id, j] * scales[j] + offsets[j]. ``dims``: int32 [J]; ``codes``: int8 [vocabulary, J];
    ``scales``, ``offsets``: float32 [J].
    """

    shape: tuple[int, int]
    dims: Array
    codes: Array
    scales: Array
    offsets: Array


@dataclass(frozen=True, eq=False)
class Network:
    """``sparse``: name -> Sparse (matrices; conv1d.weight as [channels, 4] with the middle dim of the stock shape
    dropped). ``vectors``: name -> dense float32 vector (A_log, dt_bias, norm weights). ``embedding``, ``head``: see
    Lookup. ``states``: for each memory of the circuit that a host may want to read: name -> (layer, head, row bits,
    columns), where column c is stored in value dims (c, c + 64) as bit and complement. A column of a gather has no
    complement. ``certificate``: the margin proof's summary, plain JSON values (see ``prove``), with ``text_dims``
    (the first dims, which nothing here reads or writes), ``anchor_dims`` (constants of every token, powers of two)
    and ``scale_bits`` (a signal worth 1 enters a layer as 2**-scale_bits). ``ranges``: "lo" and "hi", int16
    [2 * layers + 1, hidden]: what each dim is claimed to hold at each boundary (see ``ranges``), and
    "trusted", int32 [n, 4] (see ``audit``), for the proof from the weights.
    """

    shape: Shape
    sparse: Mapping[str, Sparse]
    vectors: Mapping[str, Array]
    embedding: Lookup
    head: Lookup
    states: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, Array] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write one safetensors file (metadata as JSON in its header), to a temporary file first, then rename."""
        from . import file

        file.write(self, Path(path))

    @staticmethod
    def load(path: Path) -> Network:
        """Read a file that ``save`` wrote. Raises ``ValueError`` naming the file and what is wrong with it."""
        from . import file

        return file.read(Path(path))

    def dense(self, name: str) -> Array:
        """The stock tensor of that name, float32, in the stock shape. Raises KeyError for a name it does not have."""
        from .stock import stock_shapes

        result = np.zeros(stock_shapes(self.shape)[name], np.float32)
        table = {"embed_tokens.weight": self.embedding, "lm_head.weight": self.head}.get(name)
        if table is not None:
            result[:, table.dims] = table.codes * table.scales + table.offsets
        elif name in self.vectors:
            result[:] = self.vectors[name]
        elif name in self.sparse:
            matrix = self.sparse[name]
            result.reshape(len(result), -1)[matrix.rows, matrix.cols] = matrix.values
        return result
