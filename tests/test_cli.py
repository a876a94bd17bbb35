"""The command line: results, formats, and one clear message for every bad input. The interpreter runs the launches."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from qgpu.cli import app
from qgpu.driver.stock import folder

KERNELS = folder()
DOT = ["run", str(KERNELS / "dot.cu"), "--block", "3"]
INTERPRETER = ["--engine", "interpreter"]

MANY = """
__global__ void first(int* out) { out[0] = 1; }
__global__ void second(int* out, int n) { out[0] = n; }
"""
LOOP = """__global__ void loop(int* out) {
  int x = out[0];
  for (int i = 1; i != x; i++) x = x * 3 + i;
  out[0] = x;
}
"""
PAST = """__global__ void past(const int* a, int* out) {
  out[threadIdx.x] = a[threadIdx.x] + 1;
}
"""


def qgpu(*arguments, stdin=None):
    """(status, standard output, standard error) of a command."""
    result = CliRunner().invoke(app, [*map(str, arguments)], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def ok(*arguments, stdin=None):
    status, out, error = qgpu(*arguments, *INTERPRETER, stdin=stdin)
    assert (status, error) == (0, "")
    return out


def refused(*arguments, stdin=None):
    """The message of a command that must end with status 2 and say nothing else."""
    status, out, error = qgpu(*arguments, *INTERPRETER, stdin=stdin)
    assert (status, out) == (2, "")
    assert error.startswith("error: ") and error.endswith("\n") and "Traceback" not in error
    return error.removeprefix("error: ")


@pytest.fixture
def write(tmp_path):
    def file(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return file


# ---- eval


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1, 2, 3] @ [4, 5, 6]", "32"),
        ("2 + 3 * 4", "14"),
        ("-3 - -4", "1"),
        ("-(1 + 2)", "-3"),
        ("[1, 2] + [10, 20]", "[11, 22]"),
        ("[1, 2] - 1", "[0, 1]"),
        ("1 - [1, 2]", "[0, -1]"),
        ("2 * [[1, 2], [3, 4]]", "[[2, 4], [6, 8]]"),
        ("[[1, 2], [3, 4]] @ [[5, 6], [7, 8]]", "[[19, 22], [43, 50]]"),
        ("[[1, 2, 3], [4, 5, 6]] @ [7, 8, 9]", "[50, 122]"),
        ("[1, 2] @ [[1, 2, 3], [4, 5, 6]]", "[9, 12, 15]"),
        ("-[1, -2]", "[-1, 2]"),
        ("[1 + 1, 2 * 3]", "[2, 6]"),
    ],
)
def test_eval(expression, value):
    assert ok("eval", expression) == value + "\n"


def test_eval_says_when_a_result_wrapped():
    status, out, error = qgpu("eval", "1 + (2147483647 + 1)", *INTERPRETER)
    assert (status, out) == (0, "-2147483647\n")
    assert error == "(2147483647 + 1) wrapped to 32 bits: 2147483648 does not fit\n"


def test_eval_json():
    document = json.loads(ok("eval", "[65536, 1] * [65536, 3]", "--json"))
    assert document["result"] == [0, 3]
    assert document["wrapped"] == ["[65536, 1] * [65536, 3] wrapped to 32 bits: 4294967296 does not fit"]
    assert document["launches"] == 1 and document["checked"] is False
    assert document["tokens"] > document["exec_tokens"] > 0
    assert document["lane_instructions"] > 0


def test_eval_refuses_with_a_caret():
    assert refused("eval", "[1, 2] + [1, 2, 3]") == (
        "cannot add a vector of 2 and a vector of 3: their shapes differ\n  [1, 2] + [1, 2, 3]\n         ^\n"
    )
    assert refused("eval", "1 +").endswith("\n  1 +\n     ^\n")


# ---- run


@pytest.mark.parametrize(
    "arguments",
    [
        ["[1, 2, 3]", "[4, 5, 6]", "zeros:1", "3"],
        ["a=[1, 2, 3]", "b=[4, 5, 6]", "out=zeros:1", "n=3"],
        ["n=0x3", "[1, 2, 3]", "out=[0]", "[4, 5, 6]"],
    ],
)
def test_run_prints_what_was_written(arguments):
    lines = ok(*DOT, *arguments).splitlines()
    assert lines[0] == "out = [32]"
    assert "tokens (" in lines[1] and lines[1].endswith("lane instructions")
    assert len(lines) == 2


def test_names_are_labels_where_ptx_has_none():
    ptx = ["run", KERNELS / "dot.ptx", "--block", "3"]
    assert ok(*ptx, "[1, 2, 3]", "[4, 5, 6]", "zeros:1", "3").startswith("arg2 = [32]\n")
    assert ok(*ptx, "x=[1, 2, 3]", "[4, 5, 6]", "sum=zeros:1", "3").startswith("sum = [32]\n")
    assert ok(*ptx, "x=[1, 2, 3]", "[4, 5, 6]", "sum=zeros:1", "3", "--trace").count("sum[0] = 32") == 1


def test_run_takes_files_and_standard_input(write, tmp_path):
    np.save(tmp_path / "a.npy", np.array([1, 2, 3], np.int32))
    b = write("b.json", "[4, 5, 6]")
    assert ok(*DOT, f"@{tmp_path / 'a.npy'}", f"b=@{b}", "zeros:1", "3").startswith("out = [32]\n")
    assert ok(*DOT, "-", "[1, 1, 1]", "zeros:1", "3", stdin="[1, -2, 3]").startswith("out = [2]\n")
    everything = json.dumps({"a": [1, 2, 3], "b": [4, 5, 6], "out": [10], "n": 3})
    assert ok(*DOT, "-", stdin=everything).startswith("out = [42]\n")


def test_run_in_two_dims_and_several_arrays():
    out = ok("run", "matmul", "--grid", "2x1", "--block", "2,2", "[[1, 2], [3, 4]]", "[[5, 6, 7], [8, 9, 10]]",
             "zeros:2x3", "2", "3", "2")  # fmt: skip
    assert out.splitlines()[0] == "c = [[21, 24, 27], [47, 54, 61]]"


def test_run_json():
    document = json.loads(ok(*DOT, "[1, 2, 3]", "[4, 5, -6]", "zeros:1", "3", "--json"))
    assert document["arrays"] == {"a": [1, 2, 3], "b": [4, 5, -6], "out": [-4]}
    assert (document["kernel"], document["ended"], document["checked"]) == ("dot", "HALT", False)
    assert {"tokens", "exec_tokens", "lane_instructions", "prompt_tokens"} <= set(document)
    assert "trace" not in document


def test_run_trace():
    lines = ok(*DOT, "[1, 2, 3]", "[4, 5, 6]", "zeros:1", "3", "--trace").splitlines()
    assert lines[0].split() == ["0", "EXEC", "b0", "q0", "dot.cu:7", "threads", "0..2"] or "dot.cu:" in lines[0]
    assert lines[-3].split()[1:] == ["HALT", "the", "launch", "is", "complete"]
    assert any(line.endswith("out[0] = 32") for line in lines)
    assert lines[-2] == "out = [32]"


def test_unsigned_parameters_take_and_print_unsigned_numbers(write):
    path = write("u.cu", "__global__ void u(unsigned* out, unsigned n) { out[0] = n - 1; }")
    assert ok("run", path, "[4294967295]", "0").splitlines()[0] == "out = [4294967295]"


def test_ptx_and_asm(write):
    assert ".visible .entry _Z3dotPKiS0_Pii" in qgpu("ptx", "dot")[1]
    status, out, error = qgpu("asm", KERNELS / "dot.cu")
    assert (status, error) == (0, "") and "atomic=add" in out
    short = qgpu("asm", KERNELS / "dot.cu", "--block", "3")[1]
    assert len(re.findall("^b\\d+:", short, re.MULTILINE)) < len(re.findall("^b\\d+:", out, re.MULTILINE))


# ---- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["[1]", "[2]", "zeros:1"], "const int* b, int* out, int n): it takes 4 arguments, 3 given\n"),
        (["[1]", "[2]", "zeros:1", "m=1"], "there is no parameter m"),
        (["[1]", "[2]", "zeros:1", "n=1", "n=2"], "n is given more than once"),
        (["[1]", "5", "zeros:1", "1"], "const int* b: an array is expected, int given\n"),
        (["[1]", "[2]", "zeros:1", "[1]"], "int n: a number is expected, an array is given\n"),
        (["[1]", "[2.5]", "zeros:1", "1"], "b is float64: arrays hold integers of 8 to 64 bits, bool, or"),
        (["[1]", "[2147483648]", "zeros:1", "1"], "b: 2147483648 does not fit in int32"),
        (["[1]", "[2]", "zeros:1", "2147483648"], "int n: 2147483648 does not fit in int\n"),
        (["[1]", "[2", "zeros:1", "1"], "[2: this is not JSON"),
        (["[1]", "[[2], [3, 4]]", "zeros:1", "1"], "b: its rows differ in length"),
        (["[1]", "x", "zeros:1", "1"], "x: this is no argument: give an integer, [1, 2, 3], zeros:SHAPE, random"),
        (["[1]", "[2]", "zeros:0", "1"], "out is empty"),
        (["[1]", "[2]", "zeros:1000000", "1"], "zeros:1000000: 1000000 elements; the machine's memory has 16384 bytes"),
        (["[1]", "zeros:1500", "zeros:1600", "1"], "out [1600] needs 6400 bytes of device memory"),
        (["[1]", "@missing.npy", "zeros:1", "1"], "@missing.npy: missing.npy: there is no such file"),
        (["[1]", "@missing.txt", "zeros:1", "1"], "a .npy or a .json file is expected"),
        (["[1]", "-", "zeros:1", "-"], "standard input can be read only once"),
        (["[1]", "[2]", "zeros:1", "1", "--chekc"], "--chekc: there is no such option, and it is not an integer"),
        (["[1]", "[2]", "zeros:1", "1", "--grid", "0"], "sizes of at least 1"),
        (["[1]", "[2]", "zeros:1", "1", "--block", ""], "--block : give one to three integers"),
        (["[1]", "[2]", "zeros:1", "1", "--grid", ""], "--grid : give one to three integers"),
        (["[1]", "[2]", "zeros:1", "1", "--grid", "a"], "--grid a: give one to three integers, such as 4 or 4x2\n"),
        (["[1]", "[2]", "zeros:1", "1", "--block", "129"], "CTA of 129 threads; the machine has 128\n"),
        (["[1]", "[2]", "zeros:1", "1", "--kernel", "dott"], "there is no kernel dott; there are: dot\n"),
        (["[1]", "[2]", "zeros:1", "1", "--check"], "nothing to compare"),
    ],
)
def test_run_refuses(arguments, message):
    assert message in refused(*DOT, *arguments, stdin="[1]")


def test_every_wrong_argument_is_said_at_once():
    message = refused(*DOT, "[1.5]", "x=", "zeros:1", "3")
    assert "x=: this is no argument" in message
    message = refused(*DOT, "[1.5]", "[2.5]", "zeros:1", "3")
    assert "a is float64" in message and "b is float64" in message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"not numpy", "not a .npy file"),
        ("a.npy", b"", "not a .npy file"),
        ("a.json", b"[1, 2", "is not JSON"),
        ("a.json", b'{"a": 1}', "an integer or an array of them is expected"),
        ("a.json", b"\xff\xfe", "not a .json file"),
    ],
)
def test_files_that_hold_no_array(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert message in refused(*DOT, f"@{tmp_path / name}", "[1]", "zeros:1", "1")


def test_arrays_of_other_types_in_files(tmp_path):
    for values in (np.array([1.0]), np.array([{"a": 1}], dtype=object)):
        np.save(tmp_path / "a.npy", values)
        message = refused(*DOT, f"@{tmp_path / 'a.npy'}", "[1]", "zeros:1", "1")
        assert "arrays hold integers" in message or "not a .npy file" in message
    np.save(tmp_path / "a.npy", np.array([2**31]))
    assert "a: 2147483648 does not fit in int32" in refused(*DOT, f"@{tmp_path / 'a.npy'}", "[1]", "zeros:1", "1")


def test_integers_of_another_type_are_made_the_kernels(tmp_path):
    np.save(tmp_path / "a.npy", np.array([1, 2, 3]))
    assert ok(*DOT, f"@{tmp_path / 'a.npy'}", "[4, 5, 6]", "zeros:1", "3").startswith("out = [32]\n")


def test_arrays_of_every_type(write):
    source = "__global__ void k(T* a, T n) { a[threadIdx.x] += n; }"
    kinds = {"signed char": -2, "unsigned char": 200, "short": -300, "unsigned short": 60_000, "long long": 2**40}
    for kind, value in kinds.items():
        path = write(f"{kind.replace(' ', '_')}.cu", source.replace("T", kind))
        assert ok("run", path, "--block", 2, "[1, 2]", value).startswith(f"a = [{1 + value}, {2 + value}]\n")
        assert ok("run", path, "--block", 2, "zeros:3", value).startswith(f"a = [{value}, {value}, 0]\n")
    path = write("bool.cu", "__global__ void k(const int* a, bool* o) { o[threadIdx.x] = a[threadIdx.x] > 1; }")
    assert ok("run", path, "--block", 2, "[1, 2]", "zeros:2").startswith("o = [False, True]\n")


def test_structs_are_given_as_arrays_or_files(write, tmp_path):
    source = "struct P { signed char a; int b; };\n"
    source += "__global__ void k(int* o, P p, int2 q) { *o = p.a * p.b + q.x - q.y; }"
    path = write("struct.cu", source)
    np.save(tmp_path / "p.npy", np.array((-3, 5), np.dtype([("a", "i1"), ("b", "i4")], align=True)))
    assert ok("run", path, "zeros:1", f"@{tmp_path / 'p.npy'}", "[100, 1]").startswith("o = [84]\n")
    assert "P p: a struct of 8 bytes is expected, int given" in refused("run", path, "zeros:1", "5", "[1, 2]")
    assert "12 bytes are given (int32), 8 are expected" in refused("run", path, "zeros:1", "[1, 2, 3]", "[1, 2]")


def test_a_file_with_several_kernels_needs_a_name(write):
    path = write("many.cu", MANY)
    message = refused("run", path, "zeros:1")
    assert message == f"{path}: there are several kernels, first, second: say which one by its name\n"
    assert ok("run", path, "--kernel", "second", "zeros:1", "7").startswith("out = [7]\n")
    empty = write("empty.cu", "__device__ int f() { return 1; }")
    assert "there is no kernel in it" in refused("run", empty)


def test_compiler_diagnostics_name_the_users_file_and_line(write):
    path = write("bad.cu", "__global__ void k(int* out) {\n  out[0] = y;\n}\n")
    message = refused("run", path, "zeros:1")
    assert f"{path}:2:12: error: use of undeclared identifier 'y'" in message


def test_what_the_machine_cannot_run_is_listed(write):
    path = write("float.cu", "__global__ void k(float* out) {\n  out[0] = out[1] * 3.0f;\n}\n")
    message = refused("run", path, "zeros:2")
    assert f"{path}:2" in message and "mul" in message and "floating point is not there" in message
    head = ".version 7.0\n.target sm_75\n.address_size 32\n"
    unknown = write("unknown.ptx", head + ".visible .entry k()\n{\n  frobnicate.u32 1;\n  ret;\n}\n")
    message = refused("run", unknown)
    assert "PTX line 6: frobnicate.u32 1" in message and "this instruction is not there" in message
    assert "nonsense.ptx:1" in refused("run", write("nonsense.ptx", "nonsense"))


@pytest.mark.parametrize("name", ["missing.cu", "kernels/missing.cu", "missing", "folder"])
def test_files_that_cannot_be_read(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    message = refused("run", name, "zeros:1")
    assert name in message and message.count("\n") == 1


def test_an_access_past_an_array_faults_with_its_place(write):
    path = write("past.cu", PAST)
    message = refused("run", path, "--block", "3", "[1, 2, 3]", "out=zeros:2")
    assert message == (
        f"{path}:2: FAULT in kernel past: Invalid __global__ write of size 4 bytes\n"
        "    at block b0\n"
        "    by thread (2,0,0) in CTA (0,0,0)\n"
        "    Address 0x0068 is out of bounds\n"
        "    and is 1 bytes after the nearest allocation out (2 x int32) at 0x0060 of size 8 bytes: out[2]\n"
    )


def test_a_fault_leaves_trace_and_arrays(write):
    path = write("past.cu", PAST)
    status, out, error = qgpu("run", path, "--block", "5", "[1, 2, 3, 4]", "zeros:8", "--trace", *INTERPRETER)
    assert status == 2 and "thread (4,0,0) in CTA (0,0,0)" in error
    assert out.splitlines()[-1].split()[1:3] == ["FAULT", "load"]
    status, out, error = qgpu("run", path, "--block", "5", "[1, 2, 3, 4]", "zeros:8", "--json", *INTERPRETER)
    document = json.loads(out)
    place = {"address": 80, "thread": [4, 0, 0], "cta": [0, 0, 0], "file": str(path), "line": 2, "block": 0}
    assert document["fault"] == {"cause": "load out of bounds", **place}
    assert document["arrays"]["out"] == [2, 3, 4, 5, 0, 0, 0, 0]
    assert (document["ended"], document["checked"]) == ("FAULT", False)
    assert error == f"error: {document['error']}\n"


RACE = """__global__ void race(int* out) {
  __shared__ int s[8];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
"""


def test_what_the_sanitizer_finds_is_told_after_the_result(write):
    path = write("race.cu", RACE)
    arguments = ["run", path, "--block", "2", "zeros:2", "--sanitize", *INTERPRETER]
    status, out, error = qgpu(*arguments)
    assert status == 1 and out.startswith("out = [1, 0]\n")
    assert error.startswith("Race reported between Write access by thread (1,0,0) at kernel race, block b0 in")
    assert error.endswith("\n1 reported\n")
    status, out, error = qgpu(*arguments, "--json")
    report = json.loads(out)["reports"][0]
    assert (status, error, report["kind"], report["line"], report["count"]) == (1, "", "race", 4, 2)
    mended = write("mended.cu", RACE.replace("x;\n", "x;\n  __syncthreads();\n", 1))
    out = ok("run", mended, "--block", "2", "zeros:2", "--sanitize")
    assert out.splitlines()[-1].startswith("sanitized: no uninitialised reads, no races on shared memory, ")


def test_an_endless_loop_ends(write):
    path = write("loop.cu", LOOP)
    message = refused("run", path, "zeros:1", "--max-tokens", "500")
    assert message.startswith("loop wrote 500 tokens and has not ended: an endless loop, or more work than the limit")
    assert ok("run", path, "[1]", "--max-tokens", "500").startswith("out = [1]\n")


# ---- the program itself


def process(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "qgpu", *arguments], capture_output=True, text=True, **options)


def test_help_imports_nothing_heavy():
    code = "import sys; from qgpu.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass\n"
    code += "heavy = {'numpy', 'numba', 'torch', 'transformers', 'safetensors'} & set(sys.modules); print(heavy)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "set()"
    assert "eval" in result.stdout


@pytest.mark.parametrize("command", ["eval", "run", "ptx", "asm", "info", "cast", "export"])
def test_every_command_has_help(command):
    status, out, error = qgpu(command, "--help")
    assert (status, error) == (0, "") and out.startswith("Usage:")


def test_running_needs_no_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from qgpu.cli import app\napp(['eval', '1 + 2', '--engine', 'interpreter'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == ("3\n", "", 0)


def test_a_real_process_prints_one_line_and_no_progress():
    result = process("eval", "2 * 21", *INTERPRETER)
    assert (result.stdout, result.stderr, result.returncode) == ("42\n", "", 0)
    result = process("eval", "2 *", *INTERPRETER)
    assert (result.stdout, result.returncode) == ("", 2)
    message = "error: the expression ends where a number, a vector [...], a function or a parenthesis is expected"
    assert result.stderr == f"{message}\n  2 *\n     ^\n"


def hears_ctrl_c():
    """For a process to start with: whoever runs these tests may ignore Ctrl-C."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_usage_errors_end_with_2():
    for arguments in (["eval"], ["nonsense"], ["eval", "1", "--engine", "abacus"], ["run", "dot", "--max-tokens", "0"]):
        status, out, error = qgpu(*arguments)
        assert (status, out) == (2, "") and "Traceback" not in error


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_interrupt_ends_with_130(write):
    import signal

    path = write("loop.cu", LOOP)
    command = ["run", str(path), "zeros:1", "--max-tokens", "1000000000", *INTERPRETER]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-m", "qgpu", *command], preexec_fn=hears_ctrl_c, **pipes)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=3)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=20)
    finally:
        child.kill()
    assert child.returncode == 130 and out == "out = [0]\n"
    assert re.fullmatch(r"interrupted after [0-9,]+ tokens \([0-9,]+ EXEC\), [0-9,]+ lane instructions\n", error)


def test_an_interrupt_while_python_loads_ends_the_process():
    """Without a traceback, that is: by the signal itself until the commands can answer it."""
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import qgpu.__main__ as entry\n"
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL)\n"
        "entry.run = lambda: print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
        "entry.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("True\nTrue\n", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "command",
    [["eval", "1 + 2"], [*DOT, "[1]", "[2]", "zeros:1", "1", "--json"], ["asm", DOT[1]], ["ptx", DOT[1]], ["--help"]],
)
def test_an_output_that_is_full_is_one_message(command):
    engine = INTERPRETER if command[0] in ("eval", "run") else []
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "qgpu", *command, *engine]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    message = "error: the output cannot be written: No space left on device\n"
    assert (result.stderr, result.returncode) == (message, 2)


@pytest.mark.parametrize("size", ["²", "٣", "1x²"])
def test_digits_that_are_not_ascii_are_no_sizes(size):
    status, _, error = qgpu("run", KERNELS / "dot.cu", "--block", size, "[1]", "[1]", "zeros:1", 1, *INTERPRETER)
    assert status == 2
    assert f"--block {size}: give one to three integers" in error


def test_a_number_of_any_length_is_refused_as_too_large():
    status, _, error = qgpu("eval", "9" * 6000, *INTERPRETER)
    assert (status, "this does not fit in 32 bits" in error) == (2, True)


def test_an_array_file_that_claims_more_than_there_is_memory(tmp_path):
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (9999999999999,), }"
    header += b" " * (117 - len(header)) + b"\n"
    (tmp_path / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    status, _, error = qgpu("run", KERNELS / "dot.cu", f"@{tmp_path}/huge.npy", "[1]", "zeros:1", 1, *INTERPRETER)
    assert status == 2
    assert "its array is larger than this computer's memory" in error


def test_a_loop_without_an_end_runs_into_the_limit_even_if_it_stores(tmp_path):
    (tmp_path / "loop.cu").write_text("__global__ void k(int* a, int n) { while (1) a[0] += n; }\n")
    status, _, error = qgpu("run", tmp_path / "loop.cu", "[1]", 2, "--max-tokens", 500, *INTERPRETER)
    assert (status, "has not ended" in error) == (2, True)


@pytest.mark.parametrize("command", ["run", "ptx", "asm"])
def test_compilers_are_chosen_by_name(write, command):
    status, _, error = qgpu(command, write("past.cu", PAST), "--compiler", "gcc")
    assert status == 2 and error.startswith("error: there is no compiler called 'gcc'; there are: ziglang")
