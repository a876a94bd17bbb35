"""The cast cache, with a small circuit in the machine's place."""

import json
import os

import pytest

import qgpu.machine.machine
from qgpu.circuit.examples import fibonacci
from qgpu.driver import bare
from qgpu.errors import QgpuError


@pytest.fixture
def casts(monkeypatch, tmp_path):
    """How often the machine was cast; the cache is a folder of the test's own."""
    made = []

    def circuit():
        made.append(1)
        return fibonacci(4)

    monkeypatch.setattr(qgpu.machine.machine, "machine_circuit", circuit)
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path / "cache"))
    return made


def test_the_second_call_casts_nothing(casts):
    said = []
    first, report = bare.bare(said.append)
    again, same = bare.bare(said.append)
    assert len(casts) == 1 and len(said) == 1
    assert same == json.loads(json.dumps(report))
    assert (again.shape, set(again.sparse)) == (first.shape, set(first.sparse))
    assert len(report["layers"]) == first.shape.layers


def test_force_casts_anew_and_replaces(casts):
    bare.bare()
    before = bare.entry().stat().st_ino
    bare.bare(force=True)
    assert len(casts) == 2
    assert bare.entry().stat().st_ino != before
    assert [path.name for path in bare.entry().parent.iterdir()] == [bare.entry().name]


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"x"), lambda path: path.unlink()])
@pytest.mark.parametrize("name", [bare.NETWORK, bare.REPORT])
def test_an_entry_that_is_not_whole_is_cast_anew(casts, spoil, name):
    bare.bare()
    spoil(bare.entry() / name)
    bare.bare()
    bare.bare()
    assert len(casts) == 2


def test_other_sources_have_another_entry(casts, monkeypatch, tmp_path):
    place = bare.entry()
    root = tmp_path / "qgpu"
    for package in bare.PACKAGES:
        (root / package).mkdir(parents=True)
        (root / package / "a.py").write_text("x = 1\n")
    (root / "__init__.py").write_text("")
    monkeypatch.setattr(qgpu, "__file__", str(root / "__init__.py"))
    keys = [bare.source_key()]
    (root / "machine" / "a.py").write_text("x = 2\n")
    keys.append(bare.source_key())
    (root / "machine" / "a.py").rename(root / "machine" / "b.py")
    keys.append(bare.source_key())
    (root / "driver").mkdir()
    (root / "driver" / "a.py").write_text("x = 3\n")  # no part of the weights
    assert len(set(keys)) == 3 and keys[-1] == bare.source_key()
    assert bare.entry() != place


def test_old_entries_are_removed(casts, monkeypatch):
    for number in range(bare.KEPT + 2):
        monkeypatch.setattr(bare, "source_key", lambda number=number: f"{number}" * 64)
        bare.bare()
        os.utime(bare.entry(), (number, number))
    kept = sorted(path.name[0] for path in bare.entry().parent.iterdir())
    assert kept == ["2", "3", "4", "5"]


def test_without_a_cache_the_network_is_made_each_time(casts, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path / "file"))
    assert bare.bare()[0].shape == bare.bare()[0].shape
    assert len(casts) == 2


def test_the_dense_checkpoint_is_written_once(casts):
    folder = bare.dense_checkpoint("bfloat16")
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert bare.dense_checkpoint("bfloat16") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp
    assert bare.dense_checkpoint("float32") != folder
    assert len(casts) == 1


def test_a_dense_checkpoint_needs_a_place(casts, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(QgpuError, match="the dense checkpoint cannot be written"):
        bare.dense_checkpoint("bfloat16")
