"""Control flow analyses against definitions by brute force over random graphs, and the verifier's faults."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from qgpu.cuda import flow
from qgpu.cuda.ir import (
    Address,
    BasicBlock,
    Branch,
    Compute,
    Const,
    Exit,
    Function,
    Guard,
    Jump,
    Load,
    Param,
    Reg,
    Special,
    Store,
    Type,
    VariableAddress,
    successors,
)
from qgpu.cuda.simplify import remove_unreachable
from qgpu.cuda.verify import VerifyError, faults, verify

P = Reg("p", Type.PRED)
REGISTERS = [Reg(f"r{i}", Type.B32) for i in range(4)]


@st.composite
def graphs(draw):
    """Functions of up to nine blocks with random targets and random moves among four registers."""
    count = draw(st.integers(1, 8))
    target = st.sampled_from([f"b{i}" for i in range(1, count + 1)])
    blocks = []
    for number in range(count + 1):
        moves = []
        for _ in range(draw(st.integers(0, 3))):
            to, of = draw(st.sampled_from(REGISTERS)), draw(st.sampled_from(REGISTERS))
            guard = Guard(P) if draw(st.booleans()) else None
            moves.append(Compute("mov", Type.B32, to, (of,), guard=guard))
        kind = draw(st.integers(0, 3))
        if kind == 0 and number:
            terminator = Exit()
        elif kind == 1 and number:
            terminator = Jump(draw(target))
        else:
            terminator = Branch(P, False, draw(target), draw(target))
        blocks.append(BasicBlock(f"b{number}", tuple(moves), terminator))
    return remove_unreachable(Function("k", (), (), tuple(blocks)))


def reachable(function, start, without=None):
    """Labels that can be reached from ``start`` without passing ``without``; EXIT after exits."""
    edges = {block.label: successors(block) or (flow.EXIT,) for block in function.blocks}
    edges[flow.EXIT] = ()
    found, waiting = set(), [start]
    while waiting:
        label = waiting.pop()
        if label != without and label not in found:
            found.add(label)
            waiting += edges[label]
    return found


def chain(parents, label):
    found = {label}
    while label in parents:
        label = parents[label]
        found.add(label)
    return found


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_dominators(function):
    labels = [block.label for block in function.blocks]
    nearest = flow.immediate_dominators(function)
    for label in labels:
        expected = {above for above in labels if above == label or label not in reachable(function, "b0", above)}
        assert chain(nearest, label) == expected
        assert {above for above in labels if flow.dominates(nearest, above, label)} == expected


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_postdominators(function):
    nearest = flow.immediate_postdominators(function)
    for block in function.blocks:
        ends = flow.EXIT in reachable(function, block.label)
        assert (block.label in nearest) == ends
        if ends:
            expected = {
                below.label
                for below in function.blocks
                if below is block or flow.EXIT not in reachable(function, block.label, below.label)
            }
            assert chain(nearest, block.label) == expected | {flow.EXIT}


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_loops(function):
    """A natural loop: its header dominates all of it, and every block in it reaches a latch without the header."""
    dominators = flow.immediate_dominators(function)
    backward = {
        (block.label, target)
        for block in function.blocks
        for target in successors(block)
        if flow.dominates(dominators, target, block.label)
    }
    found = flow.loops(function)
    assert {loop.header for loop in found} == {header for _, header in backward}
    for loop in found:
        assert set(loop.latches) == {latch for latch, header in backward if header == loop.header}
        expected = {loop.header} | {
            block.label
            for block in function.blocks
            if block.label != loop.header and set(loop.latches) & reachable(function, block.label, loop.header)
        }
        assert loop.blocks == expected


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_reducible_flow_is_what_falls_apart_without_its_back_edges(function):
    """Reducible means that the graph without edges to dominators has no cycle."""
    dominators = flow.immediate_dominators(function)
    edges = {
        block.label: [t for t in successors(block) if not flow.dominates(dominators, t, block.label)]
        for block in function.blocks
    }
    remaining = set(edges)
    while leaves := {label for label in remaining if not remaining & set(edges[label])}:
        remaining -= leaves
    assert (flow.irreducible_edges(function) == ()) == (not remaining)


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_reverse_postorder_puts_dominators_first(function):
    order = flow.reverse_postorder(function)
    assert sorted(order) == sorted(block.label for block in function.blocks)
    nearest = flow.immediate_dominators(function)
    assert all(order.index(above) < order.index(label) for label, above in nearest.items())


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_liveness(function):
    """Live: there is a way from here to a read without an unguarded write before it."""
    blocks = {block.label: block for block in function.blocks}
    found = flow.liveness(function)

    def is_live(register, label):
        seen, waiting = set(), [label]
        while waiting:
            label = waiting.pop()
            if label in seen:
                continue
            seen.add(label)
            block = blocks[label]
            for item in block.instructions:
                kept = item.guard is not None and item.dest == register
                guards = item.guard is not None and item.guard.register == register
                if register in item.sources or kept or guards:
                    return True
                if item.dest == register:
                    break
            else:
                if isinstance(block.terminator, Branch) and register == P:
                    return True
                waiting += successors(block)
        return False

    for label in blocks:
        expected = {register for register in [*REGISTERS, P] if is_live(register, label)}
        assert found.at_start[label] == expected
        after = frozenset().union(*(found.at_start[target] for target in successors(blocks[label])))
        assert found.at_end[label] == after


# ---- The verifier ----

R, S, W = Reg("r", Type.B32), Reg("s", Type.B32), Reg("w", Type.B64)
GOOD = Function("k", (), (), (BasicBlock("a", (Compute("add", Type.B32, R, (S, Const(1, Type.B32))),), Exit()),))


def faults_of(*instructions, terminator=None):
    return faults(replace(GOOD, blocks=(BasicBlock("a", instructions, terminator or Exit()),)))


def test_a_good_function_passes():
    assert verify(GOOD) is GOOD


def test_all_faults_are_reported_at_once():
    found = faults_of(
        Compute("add", Type.B32, R, (S,)),
        Compute("add", Type.B32, W, (S, W)),
        Compute("nothing", Type.B32, R, ()),
        Compute("mov", Type.B32, R, (Special("tid.w"),)),
        Compute("mov", Type.B32, R, (Param(2, Type.B32),)),
        Compute("mov", Type.B32, R, (VariableAddress("v", 0),)),
        Compute("mov", Type.B32, R, (Const(-1, Type.B32),)),
        Compute("mov", Type.B32, R, (S,), guard=Guard(S)),
        Compute("mov", Type.B64, Reg("r", Type.B64), (W,)),
        Load((R, R, R), "global", Address(W), 4),
        Store((Reg("h", Type.B16),), "nowhere", Address(R, None, 2), 4),
        Exit(),
        terminator=Branch(R, False, "b", "a"),
    )
    text = "\n".join(found)
    for expected in (
        "1 sources, expected 2", "the result is b64, expected b32", "source 2 is b64, expected b32",
        "there is no operation nothing", "there is no special register tid.w", "outside the 0 bytes of parameters",
        "there is no variable v", "the constant -1 does not fit b32", "the guard is no predicate",
        "r is b64 here and b32 elsewhere", "the address is b64, expected b32", "3 values of 4 bytes are no access",
        "h is narrower than 4 bytes", "there is no space nowhere", "the index is shifted by 2, expected 0 to 3",
        "a terminator in the middle of a block", "goes on to b, which does not exist", "goes back to the entry block",
        "the predicate is b32, expected pred",
    ):  # fmt: skip
        assert expected in text


def test_verify_raises_them_as_one_error():
    broken = replace(GOOD, blocks=(*GOOD.blocks, *GOOD.blocks, BasicBlock("c", (), Jump("d"))))
    try:
        verify(broken)
    except VerifyError as error:
        assert str(error).splitlines() == [
            "kernel k:", "a: there are two blocks of this name", "c: goes on to d, which does not exist"
        ]  # fmt: skip
    else:
        raise AssertionError("no fault was found")
