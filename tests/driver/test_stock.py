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


def test_stock_kernels_are_kept_compiled(monkeypatch, tmp_path):
    """The second time no compiler is called; a change of our own files, or a damaged entry, compiles anew."""
    from qgpu.cuda import pipeline
    from qgpu.driver import code

    calls = []
    compile_file = pipeline.compile_file
    monkeypatch.setattr(pipeline, "compile_file", lambda *given: (calls.append(given), compile_file(*given))[1])
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path))
    path = folder() / "matmul.cu"
    shapes = [((1, 1, 1), (2, 2, 1)), ((2, 1, 1), (3, 1, 1)), ((1, 2, 1), (1, 2, 2))]
    fresh, kept = code.code_of_file(path), code.code_of_file(path)
    assert len(calls) == 1
    assert kept.parameters == fresh.parameters and kept.file == fresh.file
    for shape in shapes:
        programs = [made.program_for(*shape) for made in (fresh, kept)]
        assert [[(dict(b.fields), b.line, b.instructions) for b in one.blocks] for one in programs[:1]] == [
            [(dict(b.fields), b.line, b.instructions) for b in one.blocks] for one in programs[1:]
        ]
    (entry,) = (tmp_path / code.KEPT).iterdir()
    entry.write_text("{")
    code.code_of_file(path)
    assert len(calls) == 2
    monkeypatch.setattr(code, "_own_files", lambda: "changed")
    code.code_of_file(path)
    assert len(calls) == 3
