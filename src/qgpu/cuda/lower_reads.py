"""What requests and filled blocks read and write, and what a written value costs."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.cuda.ir import Reg
from qgpu.cuda.lower_nodes import Node
from qgpu.cuda.lower_ports import Fields
from qgpu.cuda.lower_requests import (
    Collect,
    Gather,
    Leave,
    Memory,
    Request,
    ToPair,
    ToPredicate,
    ToRegister,
    ToStage,
)

UNIFORM_COST, LANE_COST, SECOND_COST, BLOCK_COST = 1.25, 4.5, 1.0, 1.0
"""Tokens, as a guess: a register write of one value for all lanes, of one a lane; a second one's marker; EXEC."""


def roots(request: Request) -> tuple[Node, ...]:
    """The nodes a request names."""
    match request:
        case Memory(address=address, value=value, guard=guard, high=high, compare=compare):
            return tuple(node for node in (address, value, guard, high, compare) if node is not None)
        case Leave(guard=guard):
            return () if guard is None else (guard,)
        case Gather(members=members, word=word, vote=vote):
            return tuple(node for node in (members, word, vote) if node is not None)
        case Collect(lane=lane):
            return () if lane is None else (lane,)
    return (request.node,)


def roots_written(request: Request) -> tuple[Node, ...]:
    """The node a request itself writes somewhere."""
    return (request.node,) if isinstance(request, ToRegister | ToStage | ToPredicate | ToPair) else ()


def reads_register(fields: Fields, register: Reg) -> bool:
    return register in read_registers(fields)


def read_places(fields: Fields) -> list[object]:
    """The registers and stage registers that a block reads."""
    return [fields[port] for port in ("ra", "rb", "rc", "stage_1", "stage_2") if port in fields]


def read_registers(fields: Fields) -> set[Reg]:
    """The registers and predicates that a block reads."""
    found = {content for port in ("ra", "rb", "rc", "g_index") if isinstance(content := fields.get(port), Reg)}
    # An old value is sent to a register that port C must name; what that held counts only if something reads C.
    if fields.get("d_o") == fields.get("rc") and fields.get("c_sel") != "C":
        found -= {fields.get("d_o"), None} - {fields.get(port) for port in ("ra", "rb")}  # type: ignore[arg-type]
    # A predicate written by the block itself is not read from before.
    if fields.get("p_write") and fields.get("p_index") == fields.get("g_index"):
        found.discard(fields["p_index"])
    return found


def written_registers(fields: Fields) -> set[Reg]:
    found = {content for port in ("d_e", "d_b", "d_o") if isinstance(content := fields.get(port), Reg)}
    if fields.get("p_write"):
        found.add(fields["p_index"])  # type: ignore[arg-type]
    return found


def has_room(there: Sequence[Request], request: Request) -> bool:
    """Whether a block with these requests may have room for one more of this kind."""
    count = sum(type(other) is type(request) for other in there)
    return count < (2 if isinstance(request, ToRegister) else 1) and request not in there


def value_cost(request: Request) -> float:
    if isinstance(request, ToPair):
        return 2 * (UNIFORM_COST if request.node.uniform else LANE_COST) + SECOND_COST
    if not isinstance(request, ToRegister):
        return 0.0
    return UNIFORM_COST if request.node.uniform else LANE_COST


def by_size(node: Node) -> tuple[int, int]:
    return node.size, node.order


def by_order(node: Node) -> int:
    return node.order
