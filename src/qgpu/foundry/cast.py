"""cast: a circuit becomes a network. Read this page first: it is the list of stages.

circuit --validate--> netlist --lower--> rows --schedule, pack--> stages --place--> slots --emit--> weights
                                                                                    \\--prove--> certificate
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu.circuit.ir import Circuit

from .audit import sealed
from .emit import Frame, emit, neurons_a_layer
from .errors import FoundryError
from .lower import lower
from .netlist import Netlist, prune
from .network import Network
from .numbers import anchors_for
from .place import Placement, place, slots_within, smallest_hidden
from .plan import Room
from .prove import needed_allowance, prove
from .report import Report, report_on
from .rows import Allowance
from .schedule import fullest
from .settle import schedule
from .validate import validate

NEURON_STEP = 64
RETRIES = 16


@dataclass(frozen=True)
class Options:
    """Limits of the cast model.

    ``heads``: DeltaNet heads a layer. ``max_intermediate``: neurons a layer. ``intermediate``: the size to write,
    None: the smallest multiple of 64 that fits. ``hidden``: residual dims in all, None: the smallest multiple of 64
    that fits. ``max_hidden``: residual dims in all that packing is to reach, None: no packing. ``text_dims``: dims (the
    first ones) left to something else, never read or written. ``max_layers``: a limit on layers.
    """

    heads: int = 16
    max_intermediate: int = 6144
    intermediate: int | None = None
    hidden: int | None = None
    max_hidden: int | None = None
    text_dims: int = 0
    max_layers: int = 64


def cast(circuit: Circuit, options: Options | None = None) -> Network:
    """The network of a circuit, with its certificate. Raises FoundryError with every fault of the stage that found
    some."""
    return cast_with_report(circuit, options)[0]


def cast_with_report(circuit: Circuit, options: Options | None = None) -> tuple[Network, Report]:
    """As ``cast``, and what a person wants to know about it."""
    options = options or Options()
    netlist = prune(validate(circuit))
    placement, frame = arrange(netlist, options)
    certificate = prove(placement, frame)
    network = sealed(emit(placement, frame, certificate))
    return network, report_on(placement, network)


def arrange(netlist: Netlist, options: Options) -> tuple[Placement, Frame]:
    """Lower, schedule, pack and place, again with other allowances if one stage took more than an earlier one left
    it."""
    limit = options.intermediate or options.max_intermediate
    room = Room(options.heads, limit, options.max_layers)
    target = slots_within(options.max_hidden, options.text_dims) if options.max_hidden else None
    allowance = Allowance()
    lowered = lower(netlist)
    crowded: dict[int, int] = {}
    for _ in range(RETRIES):
        if allowance != lowered.allowance:
            lowered = lower(netlist, allowance)
        plan = schedule(lowered, room, target)
        placement = place(plan)
        crowded = {layer: count for layer, count in enumerate(neurons_a_layer(placement)) if count > limit}
        if crowded:  # clears came on top of a full layer: leave it room for them
            fewer = dict(room.crowded)
            for layer, count in crowded.items():
                fewer[layer] = max(fewer.get(layer, limit) - (count - limit) - limit // 64 - 1, limit // 4)
            room = replace(room, crowded=tuple(sorted(fewer.items())))
            continue
        frame = frame_of(placement, options)
        allowed, needed = allowance, needed_allowance(placement, frame.hidden)
        if needed.scale <= allowed.scale and needed.clear <= allowed.clear:
            return placement, frame
        allowance = Allowance(max(allowed.scale, 1.25 * needed.scale), max(allowed.clear, 1.5 * needed.clear))
    layer, count = max(crowded.items(), key=lambda item: item[1], default=(0, 0))
    full = f"layer {layer} needs {count} neurons, {limit} are allowed"
    reason = full if crowded else "the error bounds do not settle"
    raise FoundryError(netlist.name, "placement", [reason])


def frame_of(placement: Placement, options: Options) -> Frame:
    """The model's sizes. FoundryError if the hidden size that was asked for does not hold the circuit."""
    hidden = options.hidden or smallest_hidden(placement.slots, options.text_dims)
    needed = placement.slots + options.text_dims + len(anchors_for(hidden))
    if needed > hidden:
        plan = placement.schedule
        alive, layer = fullest(plan)
        raise FoundryError(
            plan.lowered.netlist.name,
            "placement",
            [
                f"{needed} residual dims are needed ({alive} live signals in layer {layer}, "
                f"{options.text_dims} for text, {len(anchors_for(hidden))} anchors), hidden is {hidden}"
            ],
        )
    widest = max(neurons_a_layer(placement), default=0)
    intermediate = options.intermediate or max(1, -(-widest // NEURON_STEP)) * NEURON_STEP
    return Frame(hidden, intermediate, options.heads, options.text_dims)
