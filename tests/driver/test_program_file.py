"""Program files: what is read back launches as what was written, and whatever else a file says is refused."""

import json
import os

import numpy as np
import pytest

from qgpu.conformance import levels
from qgpu.conformance.table import table
from qgpu.driver import Device
from qgpu.driver.code import code_of_file, entries_of
from qgpu.driver.kernel import Kernel
from qgpu.driver.program_file import _checksum, entry_of, load, save
from qgpu.driver.stock import folder
from qgpu.errors import CompileError, PtxError, QgpuError

MANY = """#include <stdio.h>
struct Pair { signed char a; int b; };
__device__ int counter = 5;
__device__ int* pointer = &counter;
__constant__ short table[3] = {10, 20, 30};
__global__ void first(int* out, Pair p) {
  extern __shared__ int s[];
  int a[4];
  for (int i = 0; i < 4; i++) a[i] = i * p.b;
  s[threadIdx.x] = table[threadIdx.x] + a[p.a & 3];
  int sum = __syncthreads_count(threadIdx.x < 2);
  out[threadIdx.x] = s[threadIdx.x] + sum;
  if (threadIdx.x == 0) { (*pointer)++; printf("%d of %s\\n", counter, "five"); }
}
__global__ void second(int* out) { out[0] = counter; }
"""


@pytest.fixture
def many(tmp_path):
    (tmp_path / "many.cu").write_text(MANY)
    save(tmp_path / "many.qgpu", entries_of(tmp_path / "many.cu"))
    return tmp_path / "many.qgpu"


def test_kernels_launch_as_before(many, monkeypatch):
    def outcome_of(path):
        said: list[str] = []
        with Device("interpreter", printed=said.append) as device:
            module = device.module(path)
            out = device.zeros(3)
            pair = np.array((2, 100), np.dtype([("a", "i1"), ("b", "i4")], align=True))
            first, second = module.kernel("first"), module.kernel("second")
            launches = [first[grid, 3](out, pair, shared=12, sanitize=True) for grid in (1, 2, (1, 2))]
            launches.append(second[1, 1](out[2:]))
            tokens = [launch.tokens for launch in launches]
            return set(module.kernels), tokens, out.numpy().tolist(), said, repr(first), launches[0].file

    wanted = outcome_of(many.with_suffix(".cu"))
    monkeypatch.setattr("qgpu.cuda.compile.find_compiler", lambda name=None: pytest.fail("compiled"))
    found = outcome_of(many)
    assert found == wanted
    assert found[2:4] == ([212, 222, 10], ["6 of five\n", "7 of five\n8 of five\n", "9 of five\n10 of five\n"])


@pytest.mark.parametrize("name", ["matmul", "scan_of_warps", "transpose_tiled", "grid_3d", "barrier_votes"])
def test_rows_of_the_table_give_the_same_tokens(name, tmp_path):
    rows = [row for row in table().values() if row.name == name or row.kernel == name]
    for one in rows[:1]:
        code = levels.code_of(one, "clang")
        save(tmp_path / "k.qgpu", [entry_of(code.name, code.file, code.parameters, code.image)])
        again = code_of_file(tmp_path / "k.qgpu")
        device = Device("interpreter")
        tokens = []
        for kernel in (Kernel(device, code), Kernel(device, again)):
            values = [levels._place(device, part) if isinstance(part, np.ndarray) else part for part in one.arguments]
            tokens.append(kernel[one.grid, one.cta, one.shared](*values, max_tokens=levels.MAX_TOKENS).tokens)
            del values
        assert tokens[0] == tokens[1]


def test_a_kernel_is_chosen_by_its_name(many):
    with pytest.raises(PtxError, match="there are several kernels, first, second"):
        code_of_file(many)
    with pytest.raises(PtxError, match="there is no kernel third; there are: first, second"):
        code_of_file(many, "third")
    one = entries_of(many.with_suffix(".cu"), names=("second",))
    save(many, one)
    assert code_of_file(many).name == "second"


def changed(path, change):
    """The file with its content changed and its checksum made right."""
    document = json.loads(path.read_text())
    change(document)
    body = {key: document.get(key) for key in ("machine", "kernels")}
    document["sha256"] = _checksum(body)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is no program file of qgpu"),
        (b"\x80\x04pickle", "this is no program file"),
        (b"[1, 2]", "this is no program file"),
        (b'{"format": "other"}', "this is no program file"),
        (b"[" * 100_000, "this is no program file"),
        (b'{"format": "qgpu program", "version": 99}', "version 99 of program files, 1 is known: compile it anew"),
        (b'{"format": "qgpu program", "version": 1}', "the file is damaged"),
    ],
)
def test_what_is_no_program_file(tmp_path, content, message):
    (tmp_path / "x.qgpu").write_bytes(content)
    with pytest.raises(CompileError, match=message):
        load(tmp_path / "x.qgpu")
    with pytest.raises(CompileError, match="No such file"):
        load(tmp_path / "y.qgpu")


def test_a_flipped_byte_is_found(many):
    text = many.read_text()
    many.write_text(text.replace('"shared_bytes": 4', '"shared_bytes": 8', 1))
    assert many.read_text() != text
    with pytest.raises(CompileError, match="the file is damaged: its checksum"):
        load(many)


def _first(document):
    return document["kernels"][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(kernels=5),
        lambda d: d.update(kernels=[5]),
        lambda d: _first(d).pop("programs"),
        lambda d: _first(d).update(programs=[]),
        lambda d: _first(d)["programs"][0]["blocks"].append("frobnicate=1"),
        lambda d: _first(d)["programs"][0].update(blocks=[".program k", "b0: branch=bra target=9"]),
        lambda d: _first(d)["parameters"][0].update(offset=4000),
        lambda d: _first(d)["parameters"][0].update(size=-4),
        lambda d: _first(d)["parameters"][0].update(surprise=1),
        lambda d: _first(d)["variables"][0].update(word=200),
        lambda d: _first(d)["variables"][0].update(size=1),
        lambda d: _first(d)["variables"][0].update(initial="???"),
        lambda d: _first(d)["local"].update(bytes_per_thread=10**9),
        lambda d: _first(d)["printf"].update(buffer="nothing"),
        lambda d: _first(d).update(shared_bytes="4"),
        lambda d: _first(d).update(zeroed=[[1]]),
        lambda d: _first(d).update(name=None),
        lambda d: _first(d).update(sources=[1]),
    ],
)
def test_content_that_no_kernel_can_have(many, change):
    changed(many, change)
    with pytest.raises(CompileError, match=r"many.qgpu: the file says what no kernel can be: .* compile it anew"):
        load(many)


def test_programs_for_another_machine(many):
    changed(many, lambda document: document.update(machine="0" * 16))
    with pytest.raises(CompileError, match="it was compiled for another machine"):
        load(many)


def test_a_file_is_written_whole_or_not_at_all(many, monkeypatch, tmp_path):
    before = many.read_bytes()
    entries = list(load(many).values())
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(QgpuError, match="many.qgpu: cannot be written: No space left on device"):
        save(many, entries)
    assert many.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many.cu", "many.qgpu"]
    monkeypatch.undo()
    with pytest.raises(QgpuError, match="cannot be written: "):
        save(many / "x.qgpu", entries)
    save(tmp_path / "new" / "x.qgpu", entries)
    assert (tmp_path / "new" / "x.qgpu").read_bytes() == before


def test_what_is_written_is_what_was_read(many):
    before = many.read_bytes()
    save(many, list(load(many).values()))
    assert many.read_bytes() == before


def test_the_stock_kernels_have_short_programs_for_few_dims():
    entry = entries_of(folder() / "matmul.cu")[0]
    sizes = {len(found.blocks) for found in entry.programs.values()}
    assert len(sizes) > 1
    assert len(entry.image.program_for((1, 1, 1), (4, 1, 1)).blocks) == min(sizes)
