"""What the passes want to know of control flow: order, dominators, loops, liveness. All linear or nearly so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.cuda.ir import BasicBlock, Function, Reg, reads, successors, writes

EXIT = ""
"""The name of the place after every exit, in post-dominators."""


def predecessors(function: Function) -> dict[str, list[str]]:
    """For every block, the blocks that go on to it, in layout order."""
    found: dict[str, list[str]] = {block.label: [] for block in function.blocks}
    for block in function.blocks:
        for target in successors(block):
            found[target].append(block.label)
    return found


def _postorder(root: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
    order: list[str] = []
    seen = {root}
    stack = [(root, iter(edges[root]))]
    while stack:
        label, rest = stack[-1]
        following = next((target for target in rest if target not in seen), None)
        if following is None:
            order.append(label)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(edges[following])))
    return order


def _edges(function: Function) -> dict[str, tuple[str, ...]]:
    return {block.label: successors(block) for block in function.blocks}


def reverse_postorder(function: Function) -> list[str]:
    """Labels of the blocks that can be reached; a block comes before those it leads to, back-edges apart."""
    return _postorder(function.blocks[0].label, _edges(function))[::-1]


def _immediate_dominators(root: str, edges: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Nearest strict dominator of every node that can be reached from the root, by iteration over reverse postorder."""
    order = _postorder(root, edges)
    number = {label: position for position, label in enumerate(order)}
    coming: dict[str, list[str]] = {label: [] for label in order}
    for label in order:
        for target in edges[label]:
            coming[target].append(label)
    dominator: dict[str, str] = {root: root}
    changed = True
    while changed:
        changed = False
        for label in reversed(order[:-1]):
            known = [source for source in coming[label] if source in dominator]
            best = known[0]
            for other in known[1:]:
                while best != other:
                    if number[best] < number[other]:
                        best = dominator[best]
                    else:
                        other = dominator[other]
            if dominator.get(label) != best:
                dominator[label] = best
                changed = True
    del dominator[root]
    return dominator


def immediate_dominators(function: Function) -> dict[str, str]:
    """For every block that can be reached, but the entry, the nearest block that all ways to it pass."""
    return _immediate_dominators(function.blocks[0].label, _edges(function))


def immediate_postdominators(function: Function) -> dict[str, str]:
    """For every block that can end, the nearest place all its ways to the end pass: a block, or EXIT.

    Blocks of an endless loop have no entry.
    """
    backward: dict[str, list[str]] = {block.label: [] for block in function.blocks}
    backward[EXIT] = []
    for block in function.blocks:
        targets = successors(block)
        for target in targets or (EXIT,):
            backward[target].append(block.label)
    return _immediate_dominators(EXIT, backward)


def dominates(dominators: Mapping[str, str], above: str, below: str) -> bool:
    """Whether every way to ``below`` passes ``above`` (a block dominates itself)."""
    while below != above:
        if below not in dominators:
            return False
        below = dominators[below]
    return True


@dataclass(frozen=True)
class Loop:
    """A natural loop: ``blocks`` include the header; ``latches`` jump back to it."""

    header: str
    latches: tuple[str, ...]
    blocks: frozenset[str]


def loops(function: Function) -> tuple[Loop, ...]:
    """The natural loops by header, outer ones before the inner ones they hold (in reverse postorder of headers)."""
    dominators = immediate_dominators(function)
    coming = predecessors(function)
    order = reverse_postorder(function)
    reached = set(order)
    found = []
    for header in order:
        latches = tuple(label for label in coming[header] if label in reached and dominates(dominators, header, label))
        if not latches:
            continue
        inside = {header}
        waiting = list(latches)
        while waiting:
            label = waiting.pop()
            if label not in inside:
                inside.add(label)
                waiting += [source for source in coming[label] if source in reached]
        found.append(Loop(header, latches, frozenset(inside)))
    return tuple(found)


def irreducible_edges(function: Function) -> tuple[tuple[str, str], ...]:
    """Edges that go backwards in reverse postorder to a block that does not dominate where they come from.

    There are none exactly when the flow is reducible: when every loop is entered at one block only.
    """
    dominators = immediate_dominators(function)
    order = reverse_postorder(function)
    number = {label: position for position, label in enumerate(order)}
    return tuple(
        (block.label, target)
        for block in function.blocks
        if block.label in number
        for target in successors(block)
        if number[target] <= number[block.label] and not dominates(dominators, target, block.label)
    )


@dataclass(frozen=True)
class Liveness:
    """Registers whose value may still be read, at the start and at the end of every block."""

    at_start: Mapping[str, frozenset[Reg]]
    at_end: Mapping[str, frozenset[Reg]]


def live_before(block: BasicBlock, after: frozenset[Reg]) -> frozenset[Reg]:
    """What is live at the start of a block when ``after`` is live at its end."""
    live = set(after)
    for instruction in (block.terminator, *reversed(block.instructions)):
        live.difference_update(writes(instruction))
        live.update(reads(instruction))  # of a guarded write, the old value too
    return frozenset(live)


def liveness(function: Function) -> Liveness:
    """Live registers by iteration backwards. Nothing is live at exits."""
    blocks = {block.label: block for block in function.blocks}
    at_start: dict[str, frozenset[Reg]] = dict.fromkeys(blocks, frozenset())
    at_end = dict(at_start)
    coming = predecessors(function)
    order = _postorder(function.blocks[0].label, _edges(function))
    waiting = dict.fromkeys(order)
    while waiting:
        label = next(iter(waiting))
        del waiting[label]
        block = blocks[label]
        after = frozenset().union(*(at_start[target] for target in successors(block)))
        before = live_before(block, after)
        at_end[label] = after
        if before != at_start[label]:
            at_start[label] = before
            waiting.update(dict.fromkeys(coming[label]))
    return Liveness(at_start, at_end)
