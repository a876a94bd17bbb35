"""Bases from a hub: a local server stands for it, and each download is a process of its own, as for a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkpoint.hub_server import COMMITS, Hub, serve

from qgpu.checkpoint.errors import MergeError
from qgpu.checkpoint.hub import fetch

FETCH = "import sys; from qgpu.checkpoint.hub import fetch; print(fetch(sys.argv[1], sys.argv[2] or None))"
COMMAND = "import sys; from qgpu.cli import main; sys.exit(main())"
NAME = "owner/base"
WEIGHTS = bytes(range(256)) * (60 << 10)  # 15 MB: the library keeps what it has by pieces of 10


@pytest.fixture
def hub(tmp_path: Path):
    folders = {}
    for revision, commit in COMMITS.items():
        folder = folders[commit] = tmp_path / revision
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"model_type": "llama", "revision": revision}))
        (folder / "model.safetensors").write_bytes(WEIGHTS)
        (folder / "pytorch_model.bin").write_bytes(b"not wanted")
    with serve(Hub(NAME, folders)) as served:
        yield served


def run(hub: Hub, home: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1",
                    "HF_HUB_DISABLE_TELEMETRY": "1", **more}  # fmt: skip
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120)


def test_a_base_is_downloaded_once_and_found_offline(hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = run(hub, home, "-c", FETCH, NAME, "", HF_TOKEN="hf_secret")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert folder.is_relative_to(home) and "Bearer hf_secret" in hub.tokens
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not (folder / "pytorch_model.bin").exists()
    hub.folders.clear()  # the hub knows nothing any more
    again = run(hub, home, "-c", FETCH, NAME, "", HF_HUB_OFFLINE="1")
    assert again.stdout.strip() == str(folder), again.stderr


def test_a_broken_download_goes_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.break_after["model.safetensors"] = 12 << 20
    done = run(hub, tmp_path / "home", "-c", FETCH, NAME, "v2")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert json.loads((folder / "config.json").read_text())["revision"] == "v2"
    assert hub.ranges == [f"bytes={10 << 20}-"]


@pytest.mark.parametrize(
    ("name", "options", "more", "said"),
    [
        ("owner/none", (), {}, "there is no such repository"),
        (NAME, ("--revision", "v9"), {}, "there is no such revision"),
        (NAME, (), {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE"),
        (NAME, (), {"HF_ENDPOINT": "http://127.0.0.1:1"}, "cannot be reached"),
        (NAME, (), {}, "the base has to be a dense Qwen3.5"),
    ],
)
def test_what_goes_wrong_is_one_message(
    hub: Hub, tmp_path: Path, name: str, options: tuple[str, ...], more: dict[str, str], said: str
) -> None:
    out = tmp_path / "merged"
    done = run(hub, tmp_path / "home", "-c", COMMAND, "build", str(out), "--base", name, *options, **more)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert not out.exists() and not list(tmp_path.glob(".merged*"))


def test_folders_have_no_revisions(tmp_path: Path) -> None:
    assert fetch(str(tmp_path)) == tmp_path
    with pytest.raises(MergeError, match="no revisions"):
        fetch(str(tmp_path), "main")
    with pytest.raises(MergeError, match="there is no such folder"):
        fetch(str(tmp_path / "nowhere"))
