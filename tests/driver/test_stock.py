"""Where stock kernels are found."""

from pathlib import Path

import pytest

from qgpu.driver.stock import folder, names, resolve
from qgpu.errors import CompileError

ROOT = Path(__file__).parents[2]


def test_the_package_holds_the_kernels_of_the_checkout():
    assert folder().resolve() == ROOT / "kernels"
    assert names() == sorted(path.stem for path in (ROOT / "kernels").glob("*.cu")) and "dot" in names()


def test_a_name_is_a_stock_kernel_unless_there_is_such_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve("dot").resolve() == ROOT / "kernels" / "dot.cu"
    assert resolve("dot.cu") == Path("dot.cu")
    assert resolve("elsewhere/dot") == Path("elsewhere/dot")
    (tmp_path / "dot").write_text("")
    assert resolve("dot") == Path("dot")


def test_a_name_that_is_neither_lists_what_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CompileError, match="^dott: there is no such file, and no stock kernel of that name: .*, dot, "):
        resolve("dott")
