"""The lowering's parts one by one: what it refuses, its order of blocks, its registers, what fits a block."""

import pytest
from tests.cuda.harness import kernel_from_file
from tests.cuda.random_ir import Maker

from qgpu.cuda.flow import loops, reverse_postorder
from qgpu.cuda.ir import Reg, Type, successors
from qgpu.cuda.lower import lower
from qgpu.cuda.lower_flow import layout, plain_branches
from qgpu.cuda.lower_match import Matcher
from qgpu.cuda.lower_nodes import Graph
from qgpu.cuda.lower_registers import Code, TooMany, numbered
from qgpu.cuda.lower_requests import Leave, Memory, Place, ToPredicate, ToRegister, ToStage, Word
from qgpu.cuda.lower_requests import Stage as StageRegister
from qgpu.cuda.optimize import optimize
from qgpu.cuda.pipeline import compile_file, compile_source
from qgpu.errors import PtxError, UnsupportedError
from qgpu.isa import encoding

# ---- What is refused ----

REFUSED = """__device__ int table[4];
__global__ void k(int* a, short* b, long long* c, int n) {
  __shared__ int part[4];
  a[0] = a[1] >> n;
  a[2] = a[3] / n;
  b[1] = b[0];
  c[0] = c[1] + 1;
  part[threadIdx.x] = 1;
  __syncthreads();
  a[4] = part[0] + table[n];
  a[5] = atomicAdd(a + 6, 1);
  a[6] = __popc(n) + __shfl_sync(0xffffffff, n, 1);
}
"""


def test_everything_refused_is_told_at_once_with_its_line(small_machine):
    with pytest.raises(UnsupportedError) as caught:
        compile_source(REFUSED, "bad.cu")
    text = str(caught.value)
    assert text.startswith("bad.cu: kernel k holds ")
    for line in (4, 5, 7, 9, 11, 12):
        assert f"bad.cu:{line} (PTX line " in text, line
    for hint in ("shifts", "division", "64-bit", "barriers", "old value", "a warp"):
        assert hint in text
    assert "shr.s32" in text and "bar.sync" in text  # the instructions as the PTX has them


def test_too_many_registers(small_machine):
    sums = "".join(f"  int s{k} = a[{k}];\n" for k in range(20))
    loop = "".join(f"    s{k} = s{k} * s{(k + 1) % 20} + i;\n" for k in range(20))
    out = "".join(f"  a[{k}] = s{k};\n" for k in range(20))
    source = f"__global__ void k(int* a, int n) {{\n{sums}  for (int i = 0; i < n; i++) {{\n{loop}  }}\n{out}}}\n"
    with pytest.raises(UnsupportedError, match=r"big.cu:\d+: kernel k needs \d\d registers at the same time.* has 15"):
        compile_source(source, "big.cu")


def test_a_kernel_that_is_not_there():
    source = "__global__ void one(int* a) { *a = 1; }\n__global__ void two(int* a) { *a = 2; }\n"
    with pytest.raises(PtxError, match="there is no kernel three; there are: one, two"):
        compile_source(source, "k.cu", "three")
    with pytest.raises(PtxError, match="several kernels, one, two"):
        compile_source(source, "k.cu")
    with pytest.raises(PtxError, match="no kernel in it"):
        compile_source("__device__ int f() { return 1; }", "k.cu")
    assert compile_source(source, "k.cu", "two").name == "two"


def test_a_kernel_without_anything_to_do():
    kernel = compile_source("__global__ void k() {}", "k.cu")
    assert [dict(block.fields) for block in kernel.program.blocks] == [
        {"branch": encoding.CHOICES["branch"].index("exit")}
    ]


def test_traps_and_lines():
    kernel = compile_source("__global__ void k(int* a, int n) {\n  if (n < 0)\n    __trap();\n  *a = n;\n}", "k.cu")
    trap = encoding.CHOICES["branch"].index("trap")
    assert [block.line for block in kernel.program.blocks if block.fields.get("branch") == trap] == [3]
    assert kernel.lines == tuple(block.line for block in kernel.program.blocks)
    assert sum(block.instructions for block in kernel.program.blocks) == 5  # compare, branch, trap, store, exit


# ---- The order of blocks ----


@pytest.mark.parametrize("seed", range(30))
def test_layout(seed):
    """Every block after all that lead to it, back-edges apart, and the blocks of a loop together."""
    function = layout(plain_branches(Maker(seed).function))
    place = {block.label: position for position, block in enumerate(function.blocks)}
    assert set(place) == set(reverse_postorder(function)) and function.blocks[0].label == "entry"
    back = {(latch, loop.header) for loop in loops(function) for latch in loop.latches}
    for block in function.blocks:
        for target in successors(block):
            assert (place[target] > place[block.label]) != ((block.label, target) in back)
    for loop in loops(function):
        places = sorted(place[label] for label in loop.blocks)
        assert places == list(range(places[0], places[0] + len(places)))


@pytest.mark.parametrize("seed", range(20))
def test_plain_branches_end_switches_and_combined_conditions(seed):
    function = plain_branches(optimize(Maker(seed).function))
    labels = [block.label for block in function.blocks]
    assert len(set(labels)) == len(labels)
    assert all(target in labels for block in function.blocks for target in successors(block))
    assert not any(type(block.terminator).__name__ == "Switch" for block in function.blocks)


# ---- Registers ----


def reg(name, predicate=False):
    return Reg(name, Type.PRED if predicate else Type.B32)


def test_values_needed_together_get_different_registers():
    a, b, c = reg("a"), reg("b"), reg("c")
    codes = [
        Code({"d_b": a}, (1,)),
        Code({"d_b": b}, (2,)),
        Code({"ra": a, "rb": b, "d_b": c}, (3,)),
        Code({"ra": c, "branch": "exit"}, ()),
    ]
    numbers = numbered(codes)
    assert numbers[a] != numbers[b]
    assert numbers[c] in (numbers[a], numbers[b])  # a block reads before it writes
    assert all(1 <= number <= 15 for number in numbers.values())


def test_a_value_carried_around_a_loop_keeps_its_register():
    carried, inside = reg("carried"), reg("inside")
    codes = [
        Code({"d_b": carried}, (1,)),
        Code({"d_b": inside}, (2,)),
        Code({"ra": inside, "rb": carried}, (1, 3)),
        Code({"branch": "exit"}, ()),
    ]
    numbers = numbered(codes)
    assert numbers[carried] != numbers[inside]


def test_a_guard_that_is_read_for_the_last_time_is_not_overwritten_by_its_own_block():
    old, new = reg("old", True), reg("new", True)
    codes = [
        Code({"p_write": 1, "p_index": old}, (1,)),
        Code({"p_write": 1, "p_index": new, "g_index": old, "g_store": 1}, (2,)),
        Code({"g_index": new, "g_branch": 1, "branch": "exit"}, ()),
    ]
    numbers = numbered(codes)
    assert numbers[old] != numbers[new]


def test_too_many_predicates():
    flags = [reg(f"p{k}", True) for k in range(5)]
    codes = [Code({"p_write": 1, "p_index": flag}, (k + 1,)) for k, flag in enumerate(flags)]
    codes += [Code({"g_index": flag, "g_store": 1}, (k + 6,)) for k, flag in enumerate(flags[:-1])]
    codes += [Code({"g_index": flags[-1], "branch": "exit"}, ())]
    with pytest.raises(TooMany) as caught:
        numbered(codes)
    assert (caught.value.needed, caught.value.predicates) == (5, True)


# ---- What fits a block ----


class Bench:
    """Nodes over registers a to e and words, and a matcher to which nothing else is known."""

    def __init__(self):
        self.graph = Graph()
        self.a, self.b, self.c, self.d, self.e = (self.graph.leaf(reg(name), False, False) for name in "abcde")
        self.x, self.y = self.graph.special("x", "tid.x"), self.graph.special("y", "ctaid.x")
        self.p, self.q = self.graph.word(6), self.graph.word(7)

    def places(self, node):
        if node.kind == "const":
            return [Place("imm", node.value), Place("word", Word(constant=node.value))]
        if node.kind == "word":
            return [Place("word", Word(node.value))]
        if node.kind in ("x", "y"):
            return [Place(node.kind, node.name)]
        return [Place("reg", node.register)] if node.kind == "reg" else []

    def fit(self, *requests):
        def predicate(node):
            return node.register or reg(f"p{node.order}", True)

        return Matcher(self.places, predicate, lambda node: node.kind == "preg", lambda node: True).fit(requests)

    def load(self, address):
        return self.graph.load("b32", address, None, False)


@pytest.fixture
def bench():
    return Bench()


def test_load_multiply_and_atomic_share_a_block(bench):
    g = bench.graph
    load = bench.load(g.alu("add", bench.p, g.shift_left(bench.a, 2)))
    fields = bench.fit(Memory(bench.q, g.m("mul.lo", load, bench.b), "b32", "add"), Leave("exit"))
    assert fields is not None
    assert (fields["a_sel"], fields["b_sel"], fields["b_shift"], fields["load"]) == ("P", "B", 2, "b32")
    assert {fields["m1_sel"], fields["m2_sel"]} == {"L", "A"} and fields["ra"] == reg("b")
    assert (fields["sa_sel"], fields["pt"], fields["branch"]) == ("T", Word(7), "exit")


def test_index_of_a_thread_takes_one_block(bench):
    g = bench.graph
    index = g.alu("add", g.m("mul.lo", bench.y, g.word(0)), bench.x)
    fields = bench.fit(ToRegister(index, reg("i")))
    assert fields is not None
    assert (fields["a_sel"], fields["m1_sel"], fields["m2_sel"], fields["c_sel"]) == ("Y", "R", "Q", "X")


@pytest.mark.parametrize(
    "case", ["two loads", "four registers", "two uses of ALU A", "product compared", "three results"]
)
def test_what_does_not_fit(bench, case):
    g, a, b, c, d = bench.graph, bench.a, bench.b, bench.c, bench.d
    requests = {
        "two loads": [ToRegister(g.alu("add", bench.load(a), bench.load(b)), reg("r"))],
        "four registers": [
            ToRegister(g.alu("add", a, b), reg("r")),
            ToRegister(g.alu("add", g.m("mul.lo", c, d), bench.e), reg("s")),
        ],
        "two uses of ALU A": [ToStage(g.alu("add", a, b), StageRegister(0)), ToRegister(bench.load(c), reg("r"))],
        "product compared": [ToPredicate(g.compare("eq", g.m("mul.lo", a, b), c), reg("p", True))],
        "three results": [ToRegister(node, reg(f"to {node}")) for node in (a, b, c)],
    }[case]
    assert bench.fit(*requests) is None


def test_select_with_its_own_comparison(bench):
    """The minimum of two registers is one block: both are operands of ALU A for the comparison, and of unit M and C."""
    g = bench.graph
    smaller = g.select(bench.a, bench.b, g.compare("lt.s", bench.a, bench.b))
    fields = bench.fit(ToRegister(smaller, reg("r")))
    assert fields is not None
    assert fields["g_sel"] == 1 and fields["p_write"] == 1 and fields["p_index"] == fields["g_index"]


# ---- How good it is ----


@pytest.mark.parametrize(
    ("name", "blocks"),
    [("dot", 3), ("saxpy", 3), ("vector_add", 3), ("scalar_sub", 3), ("matvec", 8), ("matmul", 12), ("trips", 7),
     ("atomic_sum", 6), ("divergent", 8)],
)  # fmt: skip
def test_stock_kernels_do_not_grow(name, blocks):
    """Blocks of the program for all shapes, a budget: lower it when the lowering gets better."""
    from tests.cuda.harness import KERNELS

    assert len(compile_file(KERNELS / f"{name}.cu").program.blocks) <= blocks


def test_nothing_parts_the_lanes_in_a_kernel_without_branches():
    """A choice between two loads is made with guards: no block but the last one ends in a branch or exit."""
    source = """__global__ void k(const int* a, const int* b, int* out) {
      int i = threadIdx.x;
      out[i] = i & 1 ? a[i] : b[i];
    }"""
    blocks = compile_source(source, "k.cu").program.blocks
    assert all(not block.fields.get("branch") for block in blocks[:-1])


def test_a_function_can_be_lowered_twice():
    from tests.cuda.harness import KERNELS

    function = kernel_from_file(KERNELS / "matmul.cu", "matmul")[1]
    assert lower(function) == lower(function)
