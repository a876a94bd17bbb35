"""Commands beside run and eval: compile, bench, doctor, completion; and what a terminal shows while a launch runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qgpu import cli_doctor
from qgpu.cli import app
from qgpu.cli_terminal import status
from qgpu.driver.stock import folder

ROOT = Path(__file__).parents[1]
INTERPRETER = ["--engine", "interpreter"]


def qgpu(*arguments, **options):
    """(status, standard output, standard error) of a command."""
    result = CliRunner().invoke(app, [*map(str, arguments)], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


# ---- compile


def test_what_is_compiled_runs_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, error = qgpu("compile", "dot")
    assert (status, error) == (0, "")
    assert re.fullmatch(
        r"dot\(const int\* a, const int\* b, int\* out, int n\): \d+ blocks\nwritten to dot.qgpu\n", out
    )
    arguments = ["--block", 3, "[1, 2, 3]", "b=[4, 5, 6]", "zeros:1", 3, "--trace", *INTERPRETER]
    wanted = qgpu("run", "dot", *arguments)
    monkeypatch.setattr("qgpu.cuda.compile.find_compiler", lambda name=None: pytest.fail("compiled"))
    assert qgpu("run", "dot.qgpu", *arguments) == wanted
    assert qgpu("asm", "dot.qgpu")[1].startswith(".program dot\n")


def test_compile_in_json_and_by_name(tmp_path):
    source = tmp_path / "many.cu"
    source.write_text("__global__ void a(int* o) { *o = 1; }\n__global__ void b(int* o) { *o = 2; }\n")
    document = json.loads(qgpu("compile", source, "--json")[1])
    assert document["file"] == str(tmp_path / "many.qgpu")
    assert [kernel["kernel"] for kernel in document["kernels"]] == ["a", "b"]
    qgpu("compile", source, "--kernel", "b", "-o", tmp_path / "b.qgpu")
    assert qgpu("run", tmp_path / "b.qgpu", "zeros:1", *INTERPRETER)[1].startswith("o = [2]\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.cu"], "missing.cu: there is no such file"),
        (["dot", "-o", "dot.bin"], "dot.bin: give a name that ends in .qgpu"),
        (["dot", "-o", "/dev/null/dot.qgpu"], "/dev/null/dot.qgpu: cannot be written: "),
        (["dot", "--kernel", "dott"], "there is no kernel dott"),
        (["x.qgpu"], "x.qgpu: this is a program file already"),
    ],
)
def test_compile_refuses(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    status, out, error = qgpu("compile", *arguments)
    assert (status, out) == (2, "") and message in error
    assert list(tmp_path.iterdir()) == []


def test_a_program_file_has_no_ptx(tmp_path):
    (tmp_path / "x.qgpu").write_text("{}")
    status, _, error = qgpu("run", tmp_path / "x.qgpu", *INTERPRETER)
    assert status == 2 and "this is no program file of qgpu" in error


# ---- asm, and random arrays


@pytest.mark.parametrize("size", ["0", "", "1x0"])
def test_blocks_for_a_launch_of_no_size(size):
    status, out, error = qgpu("asm", "dot", "--block", size)
    assert (status, out) == (2, "") and "Traceback" not in error


def test_blocks_and_ptx_in_json():
    text, document = qgpu("asm", "dot", "--block", 3)[1], json.loads(qgpu("asm", "dot", "--block", 3, "--json")[1])
    assert document["assembly"] == text.splitlines()
    assert document["kernel"] == "dot" and len(document["blocks"]) == sum(":" in line for line in text.splitlines())
    assert document["blocks"][0]["line"] > 0
    assert json.loads(qgpu("ptx", "dot", "--json")[1])["ptx"].rstrip("\n") + "\n" == qgpu("ptx", "dot")[1]


def test_an_interrupted_table_tells_what_was_run(monkeypatch):
    from qgpu.conformance import levels

    run, calls = levels.run, []

    def twice(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(*given)

    monkeypatch.setattr(levels, "run", twice)
    command = ["conformance", "--kernel", "dot", "--kernel", "matmul", "--level", "interpreter"]
    status_, out, error = qgpu(*command)
    assert (status_, error) == (130, "interrupted after 2 of 5 rows\n") and out.endswith("\n2 of 2 ok\n")
    calls.clear()
    status_, out, error = qgpu(*command, "--json")
    assert status_ == 130 and len(json.loads(out)) == 2


def test_random_arrays_follow_the_seed():
    def run(seed):
        return qgpu("run", "vector_add", "--block", 8, "random:8", "zeros:8", "zeros:8", 8, "--seed", seed,
                    *INTERPRETER)[1]  # fmt: skip

    assert run(1) == run(1) != run(2)
    numbers = json.loads(run(1).splitlines()[0].removeprefix("out = "))
    assert all(-100 <= number <= 100 for number in numbers) and len(set(numbers)) > 3


# ---- bench


def test_bench_prints_a_row_for_each_kernel():
    status, out, error = qgpu("bench", "--kernel", "dot", "--kernel", "matvec", "--check", "--engine", "interpreter")
    assert status == 2 and "nothing to compare" in error
    status, out, error = qgpu("bench", "--kernel", "dot", "--kernel", "matvec", *INTERPRETER)
    lines = out.splitlines()
    assert (status, error, len(lines)) == (0, "", 4)
    assert [line.split()[0] for line in lines[:3]] == ["kernel", "dot", "matvec"]
    document = json.loads(qgpu("bench", "--kernel", "dot", "--json", *INTERPRETER)[1])
    row = document["rows"][0]
    assert row["tokens"] == int(lines[1].split()[2].replace(",", "")) > row["exec_tokens"] > 0
    assert row["tokens_per_second"] > 0
    assert qgpu("bench", "--kernel", "nothing")[0] == 2


def test_devices_that_are_not_there():
    from qgpu.engines.protocol import EngineError
    from qgpu.engines.transformers import _device

    assert _device("cpu").type == "cpu"
    for name in ("cuda:99", "abacus"):
        with pytest.raises(EngineError, match=f"device '{name}': torch cannot use it here .*: choose another, or cpu"):
            _device(name)
    status_, _, error = qgpu("eval", "1 + 1", "--device", "cuda")
    assert status_ == 2 and "the native engine runs on the CPU; transformers takes a device" in error


# ---- doctor


def test_doctor_says_what_works():
    status, out, _ = qgpu("doctor")
    assert status == 0 and out.endswith("\nqgpu works here\n")
    document = json.loads(qgpu("doctor", "--json")[1])
    found = {(finding["area"], finding["name"]): finding for finding in document["findings"]}
    assert document["works"] and found["packages", "numpy"]["state"] == found["compilers", "ziglang"]["state"] == "ok"
    assert {name for area, name in found if area == "engines"} == {"native", "transformers", "verified", "interpreter"}


def test_doctor_says_what_to_do(monkeypatch, tmp_path):
    find = cli_doctor.importlib.util.find_spec
    missing = {"torch", "numba", "ziglang"}
    monkeypatch.setattr(
        cli_doctor.importlib.util, "find_spec", lambda name, *rest: None if name in missing else find(name, *rest)
    )
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path / "file"))
    cli_doctor.find_compiler.cache_clear()
    try:
        status, out, _ = qgpu("doctor")
    finally:
        cli_doctor.find_compiler.cache_clear()
    assert status == 1
    assert "! numba          not installed\n                   pip install numba\n" in out
    assert "- torch" in out and "pip install 'qgpu[transformers]'" in out
    assert "! native         needs numba" in out and "- transformers   needs torch" in out
    assert "\nqgpu does not work here: " in out


# ---- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    status, out, _ = qgpu("completion", shell)
    assert status == 0 and "_QGPU_COMPLETE" in out and f"complete_{shell}" in out


def test_a_shell_is_told_what_may_follow():
    environment = {**os.environ, "_QGPU_COMPLETE": "complete_bash", "COMP_WORDS": "qgpu co", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "qgpu"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.stdout.split() == ["compile", "completion", "conformance"]


# ---- progress


@pytest.mark.parametrize(
    ("tokens", "share", "seconds", "text"),
    [
        (16, 0, 0.01, "16 tokens"),
        (12_000, 0, 2, "12,000 tokens, 6,000 tokens/s"),
        (12_000, 0.25, 2, "12,000 tokens, 6,000 tokens/s, 25 %, 0:06 left"),
        (10, 0.001, 7.2, "10 tokens, 1 tokens/s, 0 %, 1:59:53 left"),
        (10, 1.0, 2, "10 tokens, 5 tokens/s"),
    ],
)
def test_what_a_terminal_shows(tokens, share, seconds, text):
    assert status(tokens, share, seconds) == text


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals there")
def test_progress_is_shown_on_a_terminal_and_is_gone_at_the_end(tmp_path):
    import pty

    (tmp_path / "long.cu").write_text("__global__ void k(int* o) { for (int i = 0; i < 40; i++) atomicAdd(o, i); }\n")
    command = ["run", str(tmp_path / "long.cu"), "--grid", "300", "zeros:1", *INTERPRETER]
    main, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "qgpu", *command], stdout=subprocess.PIPE, stderr=terminal, text=True
    )
    out, _ = child.communicate(timeout=60)
    os.close(terminal)
    shown = os.read(main, 1 << 16).decode()
    os.close(main)
    assert child.returncode == 0 and out.startswith(f"o = [{300 * 780}]\n")
    assert re.search(r"\r\x1b\[K[\d,]+ tokens, [\d,]+ tokens/s, \d+ %, 0:\d\d left\r", shown)
    assert shown.endswith("\r\x1b[K")


def test_the_stock_kernels_that_are_measured_are_there():
    from qgpu.cli_bench import ROWS

    assert set(ROWS) <= {path.stem for path in folder().glob("*.cu")}
