"""Files are written whole or not at all, and nothing but what was asked for is replaced."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qgpu.errors import QgpuError
from qgpu.writing import write_text


def broken() -> Iterator[str]:
    yield "half"
    raise OSError(28, "No space left on device")


def test_what_is_there_stays_until_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write_text(path, ["one", "\n"])
    with pytest.raises(QgpuError, match="a.txt: cannot be written: No space left"):
        write_text(path, broken())
    assert path.read_text() == "one\n" and os.listdir(path.parent) == ["a.txt"]


def test_who_may_read_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "one")
    path.chmod(0o600)
    write_text(path, "two")
    assert path.read_text() == "two" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "there" / "a.txt")
    for text in ("one", "two"):
        write_text(link, text)
        assert link.is_symlink() and (tmp_path / "there" / "a.txt").read_text() == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_written_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through")
    reader.join(10)
    assert found == ["through"] and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full here")
def test_a_device_stays_one() -> None:
    with pytest.raises(QgpuError, match="/dev/full: cannot be written: No space left on device"):
        write_text(Path("/dev/full"), "x")
    assert Path("/dev/full").is_char_device()
