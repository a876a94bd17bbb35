"""Variables, local memory and printf: what a kernel is told of its memory, and that placing it changes no result."""

import struct

import numpy as np
import pytest
from tests.cuda.harness import HEAD, REGISTERS, ir_of, kernel_from_source, launch

from qgpu.cuda.evaluate import run
from qgpu.cuda.expand_printf import BUFFER_BYTES, text_of_buffer
from qgpu.cuda.frontend import translate
from qgpu.cuda.ir import Print
from qgpu.cuda.ir_text import text_of
from qgpu.cuda.memory import LOCAL as HIDDEN
from qgpu.cuda.memory import SHARED_FIRST, shared_addresses
from qgpu.cuda.optimize import optimize
from qgpu.cuda.pipeline import prepare
from qgpu.cuda.promote import promote_locals
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import UnsupportedError


def placed(source, arguments, grid=1, cta=1):
    """Runs a prepared kernel as the driver would: every hidden word filled, memory laid out. Its arrays, its text."""
    parts = prepare(kernel_from_source(source)[0])
    memory = bytearray(64)
    words = bytearray(4 * (1 + max((p.offset + p.size for p in parts.function.parameters), default=0) // 4))
    arrays = []

    def room(data, align=16):
        memory.extend(bytes(-len(memory) % align))
        memory.extend(data)
        return len(memory) - len(data)

    for parameter, value in zip(parts.function.parameters, arguments, strict=False):
        if isinstance(value, np.ndarray):
            arrays.append((room(value.tobytes()), value))
            value = arrays[-1][0]
        words[parameter.offset : parameter.offset + parameter.size] = int(value).to_bytes(parameter.size, "little")
    places = {variable.name: room(variable.initial, variable.align) for variable in parts.variables}
    for variable in parts.variables:
        words[4 * variable.word : 4 * variable.word + 4] = places[variable.name].to_bytes(4, "little")
        for reference in variable.references:
            at = places[variable.name] + reference.offset
            target = places[reference.variable] + reference.addend
            memory[at : at + reference.width] = target.to_bytes(reference.width, "little")
    if parts.local_bytes:
        place = next(parameter.offset for parameter in parts.function.parameters if parameter.name == HIDDEN)
        words[place : place + 4] = room(bytes(parts.local_bytes * cta)).to_bytes(4, "little")
    run(parts.function, bytes(words), memory, (grid,), (cta,))
    text, lost = "", 0
    if parts.printf is not None:
        place = places[parts.printf.buffer.name]

        def string_at(address):
            return bytes(memory[address : memory.index(0, address)]).decode()

        text, lost = text_of_buffer(memory[place : place + BUFFER_BYTES], parts.printf.formats, string_at)
    found = [np.frombuffer(bytes(memory[at : at + a.nbytes]), a.dtype) for at, a in arrays]
    return found, text, lost, parts


VARIABLES = """
__constant__ int table[5] = {1, 4, 9, 16, 25};
__device__ int counter = 100;
__device__ int values[3] = {7, 8, 9};
__device__ int* pointer = &values[1];
__device__ long long wide[2] = {1ll << 40, -3};
__global__ void k(int* out, int n) {
  int i = threadIdx.x;
  out[i] = table[(i + n) % 5] + pointer[i & 1] + (int)(wide[i & 1] >> 8) + atomicAdd(&counter, 1);
}
"""


def test_module_variables_lie_behind_hidden_parameters():
    found, _, _, parts = placed(VARIABLES, [np.zeros(6, np.int32), 2], cta=6)
    table, wide = [1, 4, 9, 16, 25], [1 << 40, -3]
    expected = [table[(i + 2) % 5] + (8, 9)[i & 1] + (wide[i & 1] >> 8) + 100 + i for i in range(6)]
    assert found[0].tolist() == np.array(expected, np.int64).astype(np.int32).tolist()
    assert {v.name for v in parts.variables} == {"table", "counter", "values", "pointer", "wide"}
    assert parts.function.variables == ()
    assert [v.word for v in parts.variables] == list(range(2, 7))  # behind the kernel's own two
    assert dict((v.name, v.initial) for v in parts.variables)["table"] == struct.pack("<5i", *table)
    # What is placed and what is not must do the same.
    plain = launch(kernel_from_source(VARIABLES)[0], [np.zeros(6, np.int32), 2], (1,), (6,))
    assert found[0].tolist() == plain[0].tolist()


LOCAL = """
__global__ void k(const int* a, int* out, int n) {
  int stack[8]; short small[4];
  for (int i = 0; i < 8; i++) stack[(i * 3) & 7] = a[i] + threadIdx.x;
  for (int i = 0; i < 4; i++) small[i ^ (n & 3)] = (short)(a[i] * 1000);
  int s = 0;
  for (int i = 0; i < n; i++) s = s * 3 + stack[i & 7] - small[s & 3];
  out[threadIdx.x] = s;
}
"""


def test_local_arrays_are_each_threads_own():
    a = np.arange(3, 11).astype(np.int32)
    found, _, _, parts = placed(LOCAL, [a, np.zeros(5, np.int32), 7], cta=5)
    expected = []
    for thread in range(5):
        stack, small, s = [0] * 8, [0] * 4, 0
        for i in range(8):
            stack[(i * 3) & 7] = int(a[i]) + thread
        for i in range(4):
            small[i ^ 3] = int(a[i]) * 1000
        for i in range(7):
            s = s * 3 + stack[i & 7] - small[s & 3]
        expected.append(s)
    assert found[1].tolist() == expected
    assert parts.local_bytes == 40 and parts.function.parameters[3].name == HIDDEN


def test_locals_that_are_no_arrays_become_registers():
    body = "mov.b32 %r1, spot; st.local.v2.b32 [%r1], {%r5, 7}; st.local.b16 [spot+8], %h1; ld.local.b64 %d1, [spot];"
    body += "ld.local.s16 %r2, [%r1+8]; ld.param.b32 %r3, [a]; "
    body += "st.global.b64 [%r3], %d1; st.global.b32 [%r3+8], %r2; ret;"
    function = translate(
        parse_ptx(
            f"{HEAD}.entry k(.param .u32 a)\n{{\n.local .align 8 .b8 spot[16];\n{REGISTERS}\n"
            f"mov.b32 %r5, 258; mov.b16 %h1, -2; {body}\n}}\n", "k.ptx"
        ),
        "k",
    )  # fmt: skip
    promoted = promote_locals(optimize(function))
    assert promoted.variables == () and "local" not in text_of(promoted)
    found = launch(promoted, [np.zeros(3, np.int32)])
    assert found[0].tolist() == [258, 7, -2] == launch(function, [np.zeros(3, np.int32)])[0].tolist()


def test_an_array_indexed_at_run_time_stays_in_memory():
    assert "local" in text_of(promote_locals(kernel_from_source(LOCAL)[1]))


# ---- Shared memory ----


def test_shared_memory_has_addresses_and_dynamic_comes_last():
    source = """extern __shared__ int dynamic[];
    __global__ void k(int* o) { __shared__ char small[3]; __shared__ int big[4];
      small[o[0] & 1] = 1; big[threadIdx.x] = o[1]; dynamic[o[2]] = 2; __syncthreads();
      o[3] = small[o[4] & 1] + big[o[5]] + dynamic[o[6]]; }"""
    parts = prepare(kernel_from_source(source)[0])
    addresses, static = shared_addresses(parts.function)
    assert parts.shared_bytes == static and parts.dynamic_shared
    assert sorted(addresses.values())[-1] == SHARED_FIRST + static == addresses["dynamic"]
    assert static == 20


def test_too_much_shared_memory_is_refused_with_numbers():
    source = "__global__ void k(int* o) { __shared__ int s[2000]; s[o[0]] = 1; __syncthreads(); o[1] = s[o[2]]; }"
    with pytest.raises(UnsupportedError, match="big.cu: kernel k declares 8,000 bytes of __shared__.* has 4,096"):
        prepare(kernel_from_source(source)[0], "big.cu")


# ---- printf ----

PRINTS = r"""
__device__ const char* names[2] = {"odd", "even"};
__global__ void k(int* a) {
  int i = threadIdx.x;
  if (i & 1) printf("%d: %s\n", i, names[a[i] & 1]);
  printf("thread %d of %u: %lld %c%%\n", i, blockDim.x, (long long)a[i] << 33, 'A' + i);
  printf("done\n");
}
"""


def text_of_prints(values):
    names = ("odd", "even")
    lines = []
    for i, value in enumerate(values):
        lines += [f"{i}: {names[value & 1]}\n"] if i & 1 else []
        lines += [f"thread {i} of {len(values)}: {value << 33} {chr(65 + i)}%\n", "done\n"]
    return sorted("".join(lines).splitlines())


def test_printf_through_the_buffer_and_by_the_evaluator():
    values = [5, -2, 9]
    _, text, lost, parts = placed(PRINTS, [np.array(values, np.int32)], cta=3)
    assert sorted(text.splitlines()) == text_of_prints(values) and lost == 0
    assert parts.local_bytes == 0  # the values need no memory of their own
    assert not any(isinstance(item, Print) for block in parts.function.blocks for item in block.instructions)
    printed: list[str] = []
    function = kernel_from_source(PRINTS)[0]
    memory = bytearray(64 + 12)
    memory[64:] = np.array(values, np.int32).tobytes()
    run(function, (64).to_bytes(4, "little"), memory, (1,), (3,), printed=printed)
    assert sorted("".join(printed).splitlines()) == text_of_prints(values)


def test_records_that_find_no_place_are_counted():
    source = '__global__ void k(int* a) { for (int i = 0; i < a[0]; i++) printf("%d %d\\n", i, a[1]); }'
    _, text, lost, _ = placed(source, [np.array([200, 7], np.int32)])
    kept = (BUFFER_BYTES - 4) // 12
    assert text == "".join(f"{i} 7\n" for i in range(kept)) and lost == (200 - kept) * 12


def test_a_format_that_is_no_literal_is_refused():
    source = "__global__ void k(char* a) {\n  printf(a, 1);\n}"
    with pytest.raises(UnsupportedError, match=r"test\.cu:2 .*printf\n.*the format of printf must be a literal"):
        prepare(kernel_from_source(source)[0])


def test_vprintf_is_a_print():
    function = ir_of("call (%r1), vprintf, (%r2, %r3); ret;")
    assert "print %r2, %r3" in text_of(function)
