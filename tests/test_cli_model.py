"""info, cast and export, with a small circuit in the machine's place."""

import json

import pytest
from typer.testing import CliRunner

import qgpu.machine.machine
from qgpu.circuit.examples import fibonacci
from qgpu.cli import app


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(qgpu.machine.machine, "machine_circuit", lambda: fibonacci(4))
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path / "cache"))


def qgpu_(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_info_json():
    status, out, error = qgpu_("info", "--json")
    facts = json.loads(out)
    assert (status, error) == (0, "")
    # the contract's sizes, in plain numbers
    sizes = {"rom_blocks": 256, "memory_words": 4096, "threads_per_cta": 128, "warp_size": 32, "registers": 15}
    assert {name: facts[name] for name in sizes} == sizes
    assert facts["layers"] == len(facts["by_layer"]) and facts["layers"] % 4 == 0
    assert sum(layer["neurons"] for layer in facts["by_layer"]) > 0
    assert 0 < facts["min_margin_float32"] <= facts["min_margin_bf16"] <= 0.5
    assert facts["vocabulary"] == 16 and facts["nonzeros"] > 0


def test_info_text_has_a_line_for_every_layer():
    facts = json.loads(qgpu_("info", "--json")[1])
    lines = qgpu_("info")[1].splitlines()
    assert "warp size          32" in lines
    table = lines[lines.index("layer  heads  neurons  signals") + 1 :]
    rows = [[int(number) for number in line.split()] for line in table]
    assert rows == [[layer[key] for key in ("layer", "heads", "neurons", "alive")] for layer in facts["by_layer"]]


def test_cast_makes_it_anew_and_tells_the_same(tmp_path):
    told = qgpu_("info")[1]
    (entry,) = (tmp_path / "cache" / "bare").iterdir()
    before = (entry / "network.safetensors").stat().st_mtime_ns
    assert qgpu_("info")[1] == told
    assert (entry / "network.safetensors").stat().st_mtime_ns == before
    assert qgpu_("cast")[1] == told
    assert (entry / "network.safetensors").stat().st_mtime_ns > before


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_export_writes_a_stock_checkpoint(tmp_path, dtype):
    for _ in range(2):  # a checkpoint is replaced
        status, out, error = qgpu_("export", tmp_path / "model", "--dtype", dtype)
        assert (status, error) == (0, "") and out == f"{tmp_path / 'model'}: 4 layers of a stock Qwen3.5, {dtype}\n"
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["model_type"], config["dtype"], config["vocab_size"]) == ("qwen3_5_text", dtype, 16)
    assert (tmp_path / "model" / "model.safetensors").stat().st_size > 0


def test_export_leaves_other_things_alone(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("x")
    status, out, error = qgpu_("export", tmp_path / "thesis")
    assert (status, out) == (2, "") and "there is something else there, no checkpoint" in error
    assert (tmp_path / "thesis" / "chapter1.tex").exists()
    assert qgpu_("export", tmp_path / "thesis" / "chapter1.tex")[0] == 2


def test_prove_reads_the_weights_and_nothing_else(tmp_path):
    status, out, _ = qgpu_("prove", "--json")
    facts = json.loads(out)
    assert status == 0 and facts["holds"] and facts["context"] == 262_144 and facts["state_loss"] < 1e-6
    assert 0.1 < facts["min_margin_float32"] <= facts["min_margin_bf16"] <= 0.5
    assert "proved from" in qgpu_("prove")[1]


def test_prove_names_what_is_wrong_with_a_file(tmp_path):
    from dataclasses import replace

    from qgpu.foundry import cast

    made = cast(fibonacci(4))
    name = next(name for name in made.sparse if name.endswith("gate_proj.weight"))
    matrix = made.sparse[name]
    flipped = replace(matrix, values=-matrix.values)
    replace(made, sparse={**made.sparse, name: flipped}).save(tmp_path / "flipped.safetensors")
    status, out, _ = qgpu_("prove", tmp_path / "flipped.safetensors")
    assert status == 1 and "the proof does not hold" in out and "layer 0, neuron" in out
    (tmp_path / "none").write_text("x")
    status, _, error = qgpu_("prove", tmp_path / "none")
    assert status == 2 and "not a safetensors file" in error
