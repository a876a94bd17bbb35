"""The network as a netlist: what an event-driven evaluation follows from one changed value to the next.

A *net* is a residual dim between two of its writes: what the embedding puts there, or what one stage leaves there. A
net's value at a token is a *code*: value minus ``lo``, or a number for another value that was met. An *item* is the
least that is evaluated at once; items are numbered such that what an item decides is read by later ones alone. Readers
of a net are bits in a mask over all items. Kinds of items:

- CONE: what an MLP leaves in a residual dim, where its inputs can hold few enough values for a table;
- PIECE, TOTAL: the same for more inputs, as a sum of tables, each of some of the neurons; WHOLE: without a table;
- SELECT: which rows a head's key or query selects, and with which weights;
- KEEP: by what a head's state decays; WRITE and READ: what a head stores and what is read of it;
- SUM: a dim that heads write; HEAD: the output head.

All this says where values flow, not what they are: tables are empty, and filled by evaluating the plan's rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qgpu.engines.native_cones import Forms, Piece, cone_of
from qgpu.engines.native_form import eligible, readers
from qgpu.engines.native_plan import PARTS, Plan
from qgpu.engines.native_rows import FOLLOWED, INEXACT, MISSING
from qgpu.engines.native_values import make_values
from qgpu.engines.protocol import Array

CONE, PIECE, TOTAL, WHOLE, SELECT, KEEP, WRITE, READ, SUM, HEAD = range(10)
KEY_BITS = 128
UNKNOWN = 255  # code of an embedding's value that its net does not know
ZERO = 0  # the net that is always zero
MORE = 15  # codes for other values, of a net that may need them
HEAD_WORD, FIRST, BASE, WHICH = range(4)  # columns of ``Nets.item``
OLD, LIST = range(2)  # of ``Nets.rest``
KIND_BITS, NET_SHIFT, COUNT_MASK = 4, 16, 0xFFF  # of the first column: kind, inputs of a key, net that is decided
HASHED = 0xFFFFFFFF  # BASE of a selection without a table


class Nets(NamedTuple):
    """N: nets, I: items, C: cells (heads), R: reads (of the plan), P: delayed inputs, T: pieces, D: sums.

    ``item``, uint32 [I * 4], has in its first column the kind and the net that it decides. It reads inputs from quad
    FIRST on, as long as these are FOLLOWED. The codes of the inputs times their multipliers, added to BASE, are a place
    in a table of the kind. ``rest``, int32 [I, 2], has what is rarely asked for. By kind: CONE: OLD, the dim's net
    before; LIST, the neurons. PIECE: WHICH, the item of its total; LIST. TOTAL: its pieces are the items FIRST to BASE;
    OLD; LIST. WHOLE: OLD; LIST. SELECT: WHICH part (2 * cell: key, 2 * cell + 1: query); where BASE is HASHED inputs
    have places in a key of OLD bits. KEEP, WRITE, READ: WHICH cell. SUM: terms FIRST to BASE; OLD.
    """

    at: Array  # int32 [stages + 1, L]: the net of a dim before each stage
    lo: Array  # int16 [N]
    span: Array  # int16 [N]: codes below it are value - lo
    room: Array  # int16 [N]: codes are below it; those from span on are for other values
    level_of: Array  # int32 [N]: what its codes mean, a row of ``levels``; a roomy net has one of its own
    levels: Array  # float32 [., 256]
    embed_net: Array  # int32 [J]
    embed_code: Array  # uint8 [J, 256]
    fan_ptr: Array  # int32 [N + 1]
    fan_word: Array  # int32
    fan_mask: Array  # uint64
    item: Array
    rest: Array
    input: Array  # int32 [quads * 4]: net + multiplier (or place) * 2**16
    neuron_ptr: Array  # int32, by LIST
    neuron: Array  # int32
    put: Array  # float32: what the neuron's value is multiplied by
    sizes: Array  # int64 [4]: entries of tables: cones, pieces, selections, values
    item_ptr: Array  # int32 [layers + 1]
    row_net: Array  # int32, by entry of the plan's rows
    row_past: Array  # int32, by entry of the plan's rows: number of the delayed input
    write_item: Array  # int32 [C]
    read_item: Array  # int32 [C]
    delayed: Array  # uint8 [C]: it stores something of earlier tokens
    cone_table: Array  # uint8: codes, UNKNOWN where not evaluated yet
    piece_table: Array  # int8: see native_rows
    guard_ptr: Array  # int32 [I + 1], of a CONE or PIECE
    guard: Array  # uint32: net + code * 2**16 of an input that, at this code, leaves nothing to the item's others
    guard_fan: Array  # int32: where among the readers of that net the item stands
    plain_ptr: Array  # int32 [C + 1]
    plain: Array  # int32 [., 3]: a value dim that is one of two values, the tap it has (3: this token), and its net or
    # the number of its delayed input
    other_ptr: Array  # int32 [C + 1]
    other: Array  # int32 [., 3]: a value dim of another form; quad of its inputs; place in the table, -1 without one
    past_net: Array  # int32 [P]
    past_key: Array  # int64 [P]: layer * L + dim
    sum_dim: Array  # int32 [D]
    sum_item: Array  # int32 [D]
    sum_layer: Array  # int32 [layers + 1]: pointers
    sum_read: Array
    sum_val: Array  # float32
    to_ptr: Array  # int32 [R + 1]: items of the sums that a read goes to
    to_item: Array
    head_net: Array  # int32 [head columns]


class _Builder:
    """Nets and items in the order of the layers."""

    def __init__(self, p: Plan, lo: Array, hi: Array) -> None:
        self.p, self.lo_at, self.hi_at = p, lo, hi
        self.lo, self.span, self.roomy, self.room = [0], [1], [0], [1]
        self.items: list[tuple[int, ...]] = []
        self.rest: list[tuple[int, int]] = []
        self.keys: list[tuple[int, int, list[tuple[int, int]]]] = []  # cones with a table by mixed radix
        self.cones: list[tuple[int, Piece]] = []
        self.split: list[tuple[int, Piece]] = []  # items of kind PIECE
        self.fans: list[tuple[int, int]] = []  # (net, item)
        self.inputs: list[int] = [0] * 4
        self.neuron_ptr = [0]
        self.neurons: list[int] = []
        self.puts: list[float] = []
        self.sizes = [0, 0, 0, 0]
        self.now = np.zeros(len(p.dims), np.int32)
        entries = len(p.rows.rdim)
        self.row_net, self.row_past = np.zeros(entries, np.int32), np.zeros(entries, np.int32)
        self.past: dict[tuple[int, int], int] = {}
        self.forms = Forms(p.rows, self.row_net, self.room, self.roomy)

    def net(self, low: float, high: float, roomy: bool = False) -> int:
        self.lo.append(int(low))
        self.span.append(int(high - low) + 1)
        self.roomy.append(int(roomy))
        self.room.append(self.span[-1] + MORE * int(roomy))
        return len(self.lo) - 1

    def claimed(self, boundary: int, dim: int) -> tuple[float, float]:
        return min(0.0, float(self.lo_at[boundary, dim])), max(1.0, float(self.hi_at[boundary, dim]))

    def add(self, kind: int, nets: list[int], first: int = 0, base: int = 0, net: int = 0, old: int = 0, which: int = 0,
            neurons: int = 0, count: int = 0) -> int:  # fmt: skip
        number = len(self.items)
        self.items.append((kind | count << KIND_BITS | net << NET_SHIFT, first, base, which))
        self.rest.append((old, neurons))
        self.fans.extend((read, number) for read in nets if read != ZERO)
        return number

    def add_inputs(self, pairs: list[tuple[int, int]]) -> int:
        """Their first quad."""
        if not pairs:
            return 0
        first = len(self.inputs) // 4
        words = [net + (factor << 16) for net, factor in pairs] + [0] * (-len(pairs) % 4)
        for last in range(3, len(words) - 1, 4):
            words[last] |= FOLLOWED
        self.inputs.extend(words)
        return first

    def add_neurons(self, neurons: list[tuple[int, float]]) -> int:
        self.neurons.extend(n for n, _ in neurons)
        self.puts.extend(weight for _, weight in neurons)
        self.neuron_ptr.append(len(self.neurons))
        return len(self.neuron_ptr) - 2

    def place(self, table: int, size: int, start: int = 0) -> int:
        """Where a new table begins, and then the entry ``start``."""
        self.sizes[table] += size
        return self.sizes[table] - size + start

    def assign(self, row: int, count: int) -> None:
        """Rows from ``row`` on read the nets as they stand."""
        span = slice(self.p.rows.rptr[row], self.p.rows.rptr[row + count])
        self.row_net[span] = self.now[self.p.rows.rdim[span]]

    def read_by(self, row: int, count: int) -> list[int]:
        rptr = self.p.rows.rptr
        return [net for net in np.unique(self.row_net[rptr[row] : rptr[row + count]]).tolist() if net != ZERO]

    def embedding(self) -> tuple[Array, Array]:
        p = self.p
        nets, codes = [], np.full((len(p.embed_dims), 256), UNKNOWN, np.uint8)
        for j, dim in enumerate(p.embed_dims.tolist()):
            if p.base[dim] != 0:
                nets.append(ZERO)
                codes[j] = np.where(p.embed_values[j] == p.base[dim], 0, UNKNOWN)
                continue
            held = p.embed_values[j][np.unique(p.embed_codes[:, j])]
            whole = held[(held == np.round(held)) & (np.abs(held) < 100)]
            low, high = self.claimed(0, dim)
            if len(whole):
                low, high = min(low, float(whole.min())), max(high, float(whole.max()))
            self.now[dim] = self.net(low, high)
            nets.append(int(self.now[dim]))
            code = p.embed_values[j] - np.float32(low)
            codes[j] = np.where((code == np.round(code)) & (code >= 0) & (code <= high - low), code, UNKNOWN)
        return np.array(nets, np.int32), codes

    def select(self, part: int, row: int) -> bool:
        """Whether its key is short enough."""
        nets = self.read_by(row, PARTS)
        key = self.forms.key(nets)
        if key is not None:
            self.add(SELECT, nets, self.add_inputs(key[0]), self.place(2, key[2]), which=part)
            return True
        place, pairs = 0, []
        for net in nets:
            bits = max(1, (self.room[net] - 1).bit_length())
            if place // 64 != (place + bits - 1) // 64:
                place = -(-place // 64) * 64
            pairs.append((net, place))
            place += bits
        self.add(SELECT, nets, self.add_inputs(pairs), HASHED, old=place, which=part, count=len(pairs))
        return place <= KEY_BITS

    def value(self, cell: int, j: int, row: int) -> tuple[int, int, int]:
        """See ``Nets.other``."""
        taps = self.p.conv[cell, 2, j]
        key = None if np.any(taps[:3]) else self.forms.key(self.read_by(row, 1))
        return (j, 0, -1) if key is None else (j, self.add_inputs(key[0]), self.place(3, key[2]))

    def mlp(self, layer: int) -> None:
        p = self.p
        writers: dict[int, list[tuple[int, float]]] = {}
        reads: dict[int, list[int]] = {}
        for n in range(p.neuron_ptr[layer], p.neuron_ptr[layer + 1]):
            gate, up = p.neuron_rows[n].tolist()
            self.assign(gate, 1)
            self.assign(up, 1)
            reads[n] = self.read_by(gate, 1) + self.read_by(up, 1)
            for e in range(p.down_ptr[n], p.down_ptr[n + 1]):
                writers.setdefault(int(p.down_dim[e]), []).append((n, float(p.down_val[e])))
        fresh = self.now.copy()
        for dim, by in writers.items():
            old = int(self.now[dim])
            net = self.net(*self.claimed(2 * layer + 2, dim))
            fresh[dim] = net
            nets = sorted({old}.union(*(reads[n] for n, _ in by)) - {ZERO})
            cone = cone_of(self.forms, p.neuron_rows, by, nets, old)
            neurons = self.add_neurons(by)
            if cone is None:
                self.add(WHOLE, nets, net=net, old=old, neurons=neurons)
            elif len(cone) == 1:
                self.cones.append((len(self.items), cone[0]))
                self.add(CONE, [], net=net, old=old, neurons=neurons)
            else:
                start, total = len(self.items), len(self.items) + len(cone)
                for piece in cone:
                    self.split.append((len(self.items), piece))
                    self.add(
                        PIECE, [read for read, _ in piece.inputs], self.add_inputs(piece.inputs),
                        self.place(1, piece.size, piece.start), which=total, neurons=self.add_neurons(piece.neurons),
                    )  # fmt: skip
                self.add(TOTAL, [old], start, total, net, old, neurons=neurons)
        self.now = fresh

    def finish_cones(self) -> Array:
        """Give cones the inputs that matter, and their tables."""
        from qgpu.engines.native_enumerate import reduced

        p = self.p
        forms = [(*self.rest[at], self.items[at][0] >> NET_SHIFT) for at, _ in self.cones]
        lists = np.array(self.neuron_ptr)[np.array([form[1] for form in forms], np.int64)[:, None] + [0, 1]]
        levels = (np.array(self.lo)[:, None] + np.arange(256)).astype(np.float32)
        kept, places, table = reduced(
            [piece for _, piece in self.cones], np.array([form[2] for form in forms]), np.array([f[0] for f in forms]),
            lists, np.array(self.neurons, np.int32), np.array(self.puts, np.float32), p, self.row_net,
            np.array(self.lo, np.int16), np.array(self.span, np.int16), np.array(self.room, np.int16), levels,
        )  # fmt: skip
        for (at, piece), inputs, place in zip(self.cones, kept, places, strict=True):
            self.items[at] = (self.items[at][0], self.add_inputs(inputs), place, 0)
            if piece.plain:
                self.keys.append((at, place, inputs))
            self.fans.extend((net, at) for net, _ in inputs)
        return table


    def finish_pieces(self, cone_table: Array) -> tuple[Array, list[tuple[int, int, int]]]:
        """Tables of pieces, filled where they are by mixed radix; the guards of all items."""
        from qgpu.engines.native_enumerate import fill_pieces, guards

        p, room = self.p, np.array(self.room, np.int16)
        plain = [(at, piece) for at, piece in self.split if piece.plain]
        table = np.full(self.sizes[1], MISSING, np.int8)
        places = np.array([self.items[at][2] for at, _ in plain], np.int64)
        counts = np.array([len(piece.inputs) for _, piece in plain], np.int64)
        nets = np.array([net for _, piece in plain for net, _ in piece.inputs], np.int32)
        lists = np.array([self.rest[at][1] for at, _ in plain], np.int64)
        ptr = np.array(self.neuron_ptr, np.int64)
        ends = np.cumsum(counts)
        fill_pieces(
            ends - counts, ends, places, nets, ptr[lists], ptr[lists + 1], np.array(self.neurons, np.int32),
            np.array(self.puts, np.float32), p.neuron_rows, p.rows.rptr, p.rows.rval, p.rows.const, self.row_net,
            np.array(self.lo, np.int16), np.array(self.span, np.int16), room, np.arange(len(room), dtype=np.int32),
            (np.array(self.lo)[:, None] + np.arange(256)).astype(np.float32), table,
        )  # fmt: skip
        of_pieces = [piece.inputs for _, piece in plain]
        found = guards([at for at, _ in plain], places, of_pieces, room, table, MISSING, INEXACT)
        items, of_cones, inputs = [at for at, _, _ in self.keys], [k[1] for k in self.keys], [k[2] for k in self.keys]
        return table, found + guards(items, np.array(of_cones, np.int64), inputs, room, cone_table, UNKNOWN, UNKNOWN)


def make_nets(p: Plan, lo: Array, hi: Array) -> Nets | None:
    """``lo``, ``hi``: float32 [2 * layers + 1, L], what dims are claimed to hold; a wrong claim costs time alone. None
    where the network has no such form."""
    if not eligible(p, lo, hi):
        return None
    b = _Builder(p, lo, hi)
    live, cells, rptr = len(p.dims), len(p.cell_rows), p.rows.rptr
    at = np.zeros((2 * p.layers + 1, live), np.int32)
    item_ptr, sum_layer, sum_dim, sum_item = [0], [0], [], []
    sum_read: list[int] = []
    sum_val: list[float] = []
    values = make_values(p, True)
    plain: list[tuple[int, int, int]] = []
    other: list[tuple[int, int, int]] = []
    plain_ptr, other_ptr = [0], [0]
    write_item, read_item, delayed = np.zeros(cells, np.int32), np.zeros(cells, np.int32), np.zeros(cells, np.uint8)
    to: dict[int, list[int]] = {}
    of_read = np.repeat(np.arange(cells), np.diff(p.read_ptr)).tolist()
    read_at = {place: read for read, place in enumerate(zip(of_read, p.read_dim.tolist(), strict=True))}
    embed_net, embed_code = b.embedding()
    for layer in range(p.layers):
        at[2 * layer] = b.now
        inside = range(p.cell_ptr[layer], p.cell_ptr[layer + 1])
        for cell in inside:
            first = p.cell_rows[cell].tolist()
            for row, count in zip(first, (PARTS, PARTS, PARTS, PARTS, 1, 1), strict=True):
                b.assign(row, count)
            if not (b.select(2 * cell, first[1]) and b.select(2 * cell + 1, first[0])):
                return None
            b.add(KEEP, b.read_by(first[4], 1), which=cell)
        found: dict[int, list[tuple[int, float]]] = {}
        for cell in inside:
            first = p.cell_rows[cell].tolist()
            write_item[cell] = b.add(WRITE, b.read_by(first[2], PARTS), which=cell)
            read_item[cell] = b.add(READ, b.read_by(first[3], PARTS), which=cell)
            delayed[cell] = np.any(p.conv[cell, 2, :, :3])
            for j in range(PARTS):
                dim, tap = int(values.dim[cell, j]), int(values.tap[cell, j])
                if tap >= 0 and dim >= 0:
                    at_net = int(b.now[dim]) if tap == 3 else b.past.setdefault((layer, dim), len(b.past))
                    plain.append((j, tap, at_net))
                elif tap >= 0 and tap < 3:
                    plain.append((j, tap, -1))
                elif tap < 0:
                    other.append(b.value(cell, j, first[2] + j))
                if np.any(p.conv[cell, 2, j, :3]):
                    for e in range(rptr[first[2] + j], rptr[first[2] + j + 1]):
                        b.row_past[e] = b.past.setdefault((layer, int(p.rows.rdim[e])), len(b.past))
                channel = cell * PARTS + j
                for e in range(p.out_ptr[channel], p.out_ptr[channel + 1]):
                    found.setdefault(int(p.out_dim[e]), []).append((read_at[cell, j], float(p.out_val[e])))
            plain_ptr.append(len(plain))
            other_ptr.append(len(other))
        fresh = b.now.copy()
        for dim in sorted(found):
            low, high = b.claimed(2 * layer + 1, dim)
            fresh[dim] = b.net(low, high, high - low > 1)
            start = len(sum_read)
            sum_read.extend(read for read, _ in found[dim])
            sum_val.extend(value for _, value in found[dim])
            old = int(b.now[dim])
            item = b.add(SUM, [old], start, len(sum_read), int(fresh[dim]), old)
            sum_dim.append(dim)
            sum_item.append(item)
            for read, _ in found[dim]:
                to.setdefault(read, []).append(item)
        b.now = fresh
        at[2 * layer + 1] = b.now
        b.mlp(layer)
        item_ptr.append(len(b.items))
        sum_layer.append(len(sum_dim))
    at[2 * p.layers] = b.now
    head_net = b.now[p.head.dims]
    b.add(HEAD, head_net.tolist())
    if len(b.lo) >= FOLLOWED:
        return None
    cone_table = b.finish_cones()
    piece_table, guards = b.finish_pieces(cone_table)
    fan_ptr, fan_word, fan_mask, guard_ptr, guard, guard_fan = readers(b.fans, len(b.lo), guards, len(b.items))
    own = np.where(b.roomy, np.arange(len(b.lo)), -1)
    kinds, level_of = np.unique(np.column_stack([b.lo, b.span, own]), axis=0, return_inverse=True)
    to_item = [entry for read in range(len(p.read_dim)) for entry in to.get(read, [])]
    to_ptr = np.cumsum([0] + [len(to.get(read, [])) for read in range(len(p.read_dim))])
    places = np.array(list(b.past), np.int64).reshape(-1, 2)
    i32 = np.int32
    return Nets(
        at, np.array(b.lo, np.int16), np.array(b.span, np.int16), np.array(b.room, np.int16),
        level_of.reshape(-1).astype(i32), (kinds[:, :1] + np.arange(256)).astype(np.float32),
        embed_net, embed_code, fan_ptr, fan_word, fan_mask, np.array(b.items, np.uint32).reshape(-1),
        np.array(b.rest, i32), np.array(b.inputs, i32), np.array(b.neuron_ptr, i32), np.array(b.neurons, i32),
        np.array(b.puts, np.float32),
        np.array(b.sizes, np.int64), np.array(item_ptr, i32), b.row_net, b.row_past, write_item, read_item, delayed,
        cone_table, piece_table, guard_ptr, guard, guard_fan,
        np.array(plain_ptr, i32), np.array(plain, i32).reshape(-1, 3), np.array(other_ptr, i32),
        np.array(other, i32).reshape(-1, 3), at[2 * places[:, 0], places[:, 1]], places[:, 0] * live + places[:, 1],
        np.array(sum_dim, i32), np.array(sum_item, i32), np.array(sum_layer, i32), np.array(sum_read, i32),
        np.array(sum_val, np.float32), to_ptr.astype(i32), np.array(to_item, i32), head_net.astype(i32),
    )  # fmt: skip
