"""Merging: small bases of every form, with a small circuit in the machine's place, in the stock model."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.bases import Form, write
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration

from qgpu.checkpoint.build import build, notes_of
from qgpu.checkpoint.errors import MergeError
from qgpu.checkpoint.front import Front, front
from qgpu.checkpoint.verify import fidelity, recovered
from qgpu.circuit.examples import fibonacci

FORMS = {
    "tied, nested, vision and MTP": Form(),
    "untied, two value heads a key head, flat": Form(tied=False, ratio=2, nested=False),
    "tied, four shards": Form(shards=4, ratio=2),
    "an MLP too narrow for the machine": Form(nested=False, intermediate=64),
}


def launch_of(form: Form, count: int) -> list[int]:
    """What the machine of these tests writes after its token 1: Fibonacci numbers, modulo 2**16, as merged ids."""
    numbers = [1, 1]
    while len(numbers) < count:
        numbers.append((numbers[-1] + numbers[-2]) % (1 << 16))
    return [form.vocabulary + n for n in numbers]


@cache
def small(hidden: int, intermediate: int) -> Front:
    return front(fibonacci(), hidden, intermediate)


def merged(tmp_path: Path, form: Form, layout: str = "flat", **more: object) -> tuple[Path, Path]:
    source = write(tmp_path / "base", form)
    made = build(str(source), tmp_path / "merged", layout=layout, front=small(form.hidden, form.intermediate), **more)  # type: ignore[arg-type]
    return source, made.folder


def load(folder: Path, dtype: torch.dtype = torch.bfloat16) -> Qwen3_5ForCausalLM:
    return Qwen3_5ForCausalLM.from_pretrained(str(folder), dtype=dtype, local_files_only=True).eval()


@pytest.mark.parametrize("name", FORMS)
def test_a_merged_model_is_its_base_and_computes(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    source, folder = merged(tmp_path, form)
    assert recovered(folder, source) == []
    for dtype in ("float32", "bfloat16"):
        found = fidelity(folder, source, dtype)
        assert found.embedded and found.machine <= 1e-12
        # float32: the epsilon of RMSNorm weighs D'/D times as much as before, which shows on embeddings this small
        assert found.kl < (1e-7 if dtype == "float32" else 3 * max(found.noise_kl, 1e-4))
        assert found.top1 > 0.9
    launch = launch_of(form, 24)
    for dtype in (torch.float32, torch.bfloat16):
        model = load(folder, dtype)
        for before in ([], [3, 1, 4, 1, 5]):  # text before the launch changes nothing of it
            with torch.inference_mode():
                logits = model(torch.tensor([[*before, *launch]])).logits[0, len(before) :]
            assert logits.argmax(-1).tolist()[:-1] == launch[1:]
            best = logits.float().topk(2).values
            assert (best[:, 0] - best[:, 1] >= 40).all()


def test_machine_tokens_leave_the_base_as_it_was(tmp_path: Path) -> None:
    """DeltaNet states of the base after text, and after the same text and a launch; and launches alone reach no text
    dim."""
    form = Form(nested=False)
    _, folder = merged(tmp_path, form)
    model, gpu = load(folder), notes_of(folder)["gpu_layers"]
    launch = launch_of(form, 12)
    with torch.inference_mode():
        cache = model(torch.tensor([[9, 8, 7]]), use_cache=True).cache
        before = [cache.layers[gpu + i].recurrent_states[0].clone() for i in range(3)]
        for token in launch:
            model(torch.tensor([[token]]), cache=cache, use_cache=True)
        for i, state in enumerate(before):
            assert torch.equal(state, cache.layers[gpu + i].recurrent_states[0]) and bool(state.any())
        hidden = model(torch.tensor([launch]), output_hidden_states=True).hidden_states
        assert all(not bool(state[..., : form.hidden].any()) for state in hidden)


def test_the_folder_is_whole(tmp_path: Path) -> None:
    """Nested: configs, stop ids, vision and MTP to the bit, several shards with their index, float32 norms, a card."""
    form = Form(shards=2)
    source, folder = merged(tmp_path, form, layout="nested", shard=1 << 20)
    config = json.loads((folder / "config.json").read_text())
    text = config["text_config"]
    assert config["model_type"] == "qwen3_5" and text["model_type"] == "qwen3_5_text"
    assert text["mamba_ssm_dtype"] == "float32" and config["tie_word_embeddings"] is True
    assert text["layer_types"] == (["linear_attention"] * 3 + ["full_attention"]) * (text["num_hidden_layers"] // 4)
    assert text["hidden_size"] == form.hidden + notes_of(folder)["machine_dims"]
    stops = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
    assert stops[:2] == [7, 8] and len(stops) == 2 + 65
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(
        (folder / file).stat().st_size - 8 - int.from_bytes((folder / file).open("rb").read(8), "little")
        for file in set(index["weight_map"].values())
    )
    assert (folder / "chat_template.jinja").read_text() == "{{ messages }}"
    assert "Apache-2.0" in (folder / "README.md").read_text()
    assert not list(tmp_path.glob(".*")), "nothing half-written stays"


def test_images_and_second_tokens_in_the_merged_width(tmp_path: Path) -> None:
    """The nested folder in the stock model of images and text: every tensor has its place, the tower's features are the
    base's with zeros behind them, and an image in a text gives the base's distributions. MTP's projection, by hand."""
    form = Form()
    source, folder = merged(tmp_path, form, layout="nested")
    assert recovered(folder, source) == []
    pixels, grid = torch.randn(16, 3 * 2 * 16 * 16), torch.tensor([[1, 4, 4]])
    ids = torch.tensor([[5, 300, 300, 300, 300, 9, 8]])
    kinds = (ids == 300).int()
    found = []
    for where in (source, folder):
        model, told = Qwen3_5ForConditionalGeneration.from_pretrained(
            str(where), dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
        assert not told["missing_keys"] and not told["mismatched_keys"], told
        with torch.inference_mode():
            features = model.eval().model.get_image_features(pixels, grid).pooler_output[0]
            logits = model(ids, pixel_values=pixels, image_grid_thw=grid, mm_token_type_ids=kinds).logits[0]
        found.append((features, logits))
    (before, said), (after, says) = found
    assert torch.equal(after[:, : form.hidden], before) and not bool(after[:, form.hidden :].any())
    text = torch.log_softmax(says.double(), -1)[:, : form.vocabulary]
    assert float((text - torch.log_softmax(said.double(), -1)).abs().max()) < 0.02  # norms are rounded to bfloat16
    wide, narrow = (
        load_file(where / "model.safetensors")["mtp.fc.weight"].float() for where in (folder, source)
    )  # fmt: skip
    pair = torch.randn(2, form.hidden)
    width = wide.shape[0]
    padded = torch.zeros(2, width)
    padded[:, : form.hidden] = pair
    assert torch.allclose((wide @ padded.reshape(-1))[: form.hidden], narrow @ pair.reshape(-1), atol=1e-4)


def test_an_interrupted_build_goes_on(tmp_path: Path) -> None:
    form = Form(nested=False)
    source = write(tmp_path / "base", form)

    class Stop(Exception):
        pass

    def stop(text: str) -> None:
        if text.startswith("writing"):
            raise Stop

    with pytest.raises(Stop):
        build(str(source), tmp_path / "merged", layout="flat", front=small(128, 256), shard=1 << 20, say=stop)
    assert not (tmp_path / "merged").exists()
    kept = [path for path in (tmp_path / ".merged.part").glob("*.safetensors")]
    before = {path.name: path.stat().st_mtime_ns for path in kept}
    assert len(before) == 1
    build(str(source), tmp_path / "merged", layout="flat", front=small(128, 256), shard=1 << 20)
    assert all((tmp_path / "merged" / name).stat().st_mtime_ns == at for name, at in before.items())
    assert recovered(tmp_path / "merged", source) == []


def test_bases_that_do_not_fit_are_refused_in_one_message(tmp_path: Path) -> None:
    source = write(tmp_path / "base", Form(nested=False))

    def refused() -> str:
        with pytest.raises(MergeError) as caught:
            build(str(source), tmp_path / "merged", front=small(128, 256))
        assert not (tmp_path / "merged").exists()
        return str(caught.value)

    path = source / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "the download is not complete" in refused()
    path.write_bytes(b"PK\x03\x04 a pickle, perhaps")
    assert "not a whole safetensors file" in refused()
    path.write_bytes(whole)
    config = json.loads((source / "config.json").read_text())
    larger = {**config, "intermediate_size": 192, "num_hidden_layers": 8, "layer_types": None}
    (source / "config.json").write_text(json.dumps(larger))
    text = refused()
    assert "[256, 128], the config says [192, 128]" in text and "missing" in text and "faults" in text
    (source / "config.json").write_text(json.dumps({**config, "model_type": "llama"}))
    assert "the base has to be a dense Qwen3.5" in refused()
    path.unlink()
    (source / "config.json").write_text(json.dumps(config))
    assert "only safetensors are read" in refused()
    with pytest.raises(MergeError, match="there is no such folder"):
        build(str(tmp_path / "nowhere"), tmp_path / "merged")


def test_a_folder_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(MergeError, match="something else there"):
        build("any/base", tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "x"
