"""What ``qgpu verify`` sees: launches between texts, states, a picture; and that it sees what is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.checkpoint.bases import Form, write
from tests.checkpoint.test_build import launch_of, small
from typer.testing import CliRunner

from qgpu.checkpoint.build import build
from qgpu.checkpoint.files import stored
from qgpu.checkpoint.launches import computed
from qgpu.checkpoint.plot import plot
from qgpu.checkpoint.verify import Fidelity, recovered
from qgpu.cli import app
from qgpu.driver.samples import samples


@dataclass
class Fibonacci:
    """A launch of the small circuit: from the first number on, the machine writes the others."""

    prompt: list[int]
    written: list[int]
    reads: dict[int, list[int]] = field(default_factory=dict)


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, Path, Fibonacci]:
    form = Form(nested=False)
    source = write(tmp_path / "base", form)
    folder = build(str(source), tmp_path / "merged", layout="flat", front=small(form.hidden, form.intermediate)).folder
    numbers = [i - form.vocabulary for i in launch_of(form, 16)]
    return source, folder, Fibonacci(numbers[:1], numbers[1:])


def overwrite(folder: Path, name: str, change: float) -> None:
    """Add to all of a tensor's bfloat16 numbers that are not zero."""
    tensor = stored(folder / "model.safetensors")[name]
    values = np.memmap(tensor.path, np.uint16, "r+", tensor.start, tensor.shape)
    floats = (values.astype(np.uint32) << 16).view(np.float32)
    values[...] = (np.where(floats != 0, floats + np.float32(change), 0).astype(np.float32).view(np.uint32) >> 16)
    values.flush()


def test_launches_between_texts(model: tuple[Path, Path, Fibonacci]) -> None:
    _, folder, sample = model
    found = computed(folder, [sample], "bfloat16")
    assert found.good and found.tokens == len(sample.written) and found.launches == 1
    other = Fibonacci(sample.prompt, [*sample.written[:-1], sample.written[-1] + 1])
    assert computed(folder, [other], "bfloat16").wrong == 1


def test_a_machine_that_touches_the_base_is_seen(model: tuple[Path, Path, Fibonacci]) -> None:
    source, folder, sample = model
    gpu = json.loads((folder / "qgpu.json").read_text())["gpu_layers"]
    overwrite(folder, f"model.layers.{gpu}.linear_attn.in_proj_a.weight", 600.0)  # takes the muting column away
    assert not computed(folder, [sample], "bfloat16").untouched
    assert recovered(folder, source) == ["layers.0.linear_attn.in_proj_a.weight: differs"]


def test_the_picture() -> None:
    """A dot for every position of both rows, higher where the divergence is larger."""
    run = Fidelity("bfloat16", 3, 1e-3, 1e-4, 1.0, 1.0, 0.0, True, (1e-2, 1e-3, 0.0), (1e-4, 1e-5))
    svg = ElementTree.fromstring(plot([run, run]))
    dots = [dot for dot in svg.iter("{http://www.w3.org/2000/svg}circle") if dot.get("r") == "2"]
    assert len(dots) == 2 * 5
    heights = [float(dot.get("cy", "0")) for dot in dots[:5]]
    assert heights[0] < heights[1] < heights[3] < heights[4] < heights[2]


@pytest.mark.full
def test_the_whole_machine_in_a_small_base_by_the_command_line(tmp_path: Path) -> None:
    """Build and verify as a user does; a launch of a stock kernel between texts, its result through READ."""
    source = write(tmp_path / "base", Form(intermediate=6144))
    run = CliRunner()
    made = run.invoke(app, ["build", str(tmp_path / "merged"), "--base", str(source)])
    assert made.exit_code == 0, made.output
    asked = [str(tmp_path / "merged"), "--base", str(source), "--dtype", "bfloat16", "--launches", "1", "--json"]
    told = run.invoke(app, ["verify", *asked, "--plot", str(tmp_path / "kl.svg")])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    answers = sum(len(answer) for answer in samples(1)[0].reads.values())
    assert found["launches"][0]["tokens"] == len(samples(1)[0].written) + 2 * answers
    assert (tmp_path / "kl.svg").read_text().startswith("<svg")
