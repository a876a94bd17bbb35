"""CUDA C to PTX: diagnostics are the user's own, the cache is safe, prebuilt PTX needs no compiler."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from qgpu.cuda import compile as compiling
from qgpu.cuda import nvrtc
from qgpu.cuda.cache import cache_directory, content_key, load, store
from qgpu.cuda.compile import build_ahead, compile_cuda, find_compiler, prebuilt_stamp, ptx_of_file
from qgpu.errors import CompileError

KERNEL = "__global__ void k(int* a) { a[threadIdx.x] += 1; }\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def no_compiler(*_):
    raise AssertionError("the compiler was asked for")


def instructions(ptx):
    """The instructions of PTX: no comments, line information, temporary labels or debug sections."""
    lines = [line.split("//")[0].strip() for line in ptx.splitlines()]
    extra = (".loc", ".file", ".section", "$L__tmp", "$L__func")
    return [line for line in lines if line and not line.startswith(extra)]


# ---- Diagnostics ----


def test_errors_carry_the_users_file_and_lines(tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text("__global__ void k(int* a) {\n  a[i] = 1;\n  a[0] = nothing;\n}\n")
    with pytest.raises(CompileError) as caught:
        ptx_of_file(path)
    message = str(caught.value)
    assert message.startswith(f"{path} does not compile:\n")
    assert f"{path}:2:5: error: use of undeclared identifier 'i'" in message
    assert f"{path}:3:10: error: use of undeclared identifier 'nothing'" in message
    assert "generated when compiling" not in message and "<stdin>" not in message and "device.cuh" not in message


def test_an_error_inside_an_include_names_that_file(tmp_path):
    (tmp_path / "part.h").write_text("\nint f( { }\n")
    (tmp_path / "whole.cu").write_text('#include "part.h"\n' + KERNEL)
    with pytest.raises(CompileError, match=r"part\.h:2:\d+: error"):
        ptx_of_file(tmp_path / "whole.cu")


def test_a_wrong_call_is_explained_without_notes_about_our_header():
    with pytest.raises(CompileError) as caught:
        compile_cuda("__global__ void k(int* a) { atomicAdd(a); }", "k.cu")
    message = str(caught.value)
    assert "k.cu:1:29: error: no matching function for call to 'atomicAdd'" in message
    assert "device.cuh" not in message and str(compiling.PACKAGE) not in message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.cu", None, "there is no such file"),
        ("binary.cu", b"\xff\xfe\x00", "not UTF-8"),
        ("kernel.cpp", b"", "expected CUDA C (.cu) or PTX (.ptx)"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CompileError) as caught:
        ptx_of_file(tmp_path / name)
    assert message in str(caught.value) and str(tmp_path / name) in str(caught.value)


def test_no_compiler_says_what_to_install(monkeypatch):
    monkeypatch.delenv("QGPU_CLANG", raising=False)
    monkeypatch.setattr(compiling.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    find_compiler.cache_clear()
    try:
        with pytest.raises(CompileError, match="pip install ziglang"):
            find_compiler()
    finally:
        find_compiler.cache_clear()


def test_compilers_have_names(monkeypatch, tmp_path):
    with pytest.raises(CompileError, match="no compiler called 'gcc'; there are: ziglang .*, clang .*, nvrtc"):
        find_compiler("gcc")
    monkeypatch.delenv("QGPU_CLANG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    find_compiler.cache_clear()
    with pytest.raises(CompileError, match="no clang on the PATH: install the usual one"):
        find_compiler("clang")
    assert find_compiler("ziglang").command[-1] == "clang"


def fake_clang(path, version, targets):
    path.write_text(f"#!/bin/sh\ncase $1 in --version) echo '{version}';; *) echo '{targets}';; esac\n")
    path.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for the compiler")
@pytest.mark.parametrize(
    ("version", "targets", "message"),
    [
        ("clang version 14.0.6", "nvptx64", "but clang 22 or newer is needed"),
        ("clang version 22.1.0", "x86-64", "has no NVPTX back end"),
        ("gcc 14", "", "but clang 22 or newer is needed"),
    ],
)
def test_a_clang_of_the_users_that_cannot_do_it(monkeypatch, tmp_path, version, targets, message):
    fake_clang(tmp_path / "clang", version, targets)
    monkeypatch.delenv("QGPU_CLANG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    find_compiler.cache_clear()
    try:
        with pytest.raises(CompileError, match=message):
            find_compiler("clang")
    finally:
        find_compiler.cache_clear()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for the compiler")
def test_another_clang_takes_the_same_flags(monkeypatch, tmp_path):
    """The clang inside ziglang, called as a clang on the PATH, gives the same PTX."""
    command = " ".join(find_compiler("ziglang").command)
    (tmp_path / "clang").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (tmp_path / "clang").chmod(0o755)
    monkeypatch.delenv("QGPU_CLANG", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    find_compiler.cache_clear()
    try:
        assert compile_cuda(KERNEL, "k.cu", compiler="clang") == compile_cuda(KERNEL, "k.cu", compiler="ziglang")
    finally:
        find_compiler.cache_clear()


def test_a_header_that_is_not_there_says_which_are():
    with pytest.raises(CompileError, match="'iostream' file not found(.|\n)*these are there: assert.h, .*stdint.h"):
        compile_cuda("#include <iostream>\n" + KERNEL, "k.cu")


# ---- NVRTC ----


def test_nvrtc_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(nvrtc, "find_library", lambda: None)
    nvrtc._library.cache_clear()
    try:
        with pytest.raises(CompileError, match="NVRTC is not there: install it with: pip install nvidia-cuda-nvrtc"):
            compile_cuda(KERNEL, "k.cu", compiler="nvrtc")
    finally:
        nvrtc._library.cache_clear()


needs_nvrtc = pytest.mark.skipif(nvrtc.find_library() is None, reason="NVRTC is not installed")


@needs_nvrtc
def test_nvrtc_compiles_the_same_kernel(monkeypatch):
    source = "#include <stdint.h>\n#include <cstdio>\n" + KERNEL
    ptx = compile_cuda(source, "k.cu", compiler="nvrtc")
    assert ".address_size 64" in ptx and "NVVM" in ptx and ".visible .entry _Z1kPi(" in ptx
    assert any(line.split()[2] == "3" for line in ptx.splitlines() if line.strip().startswith(".loc"))
    monkeypatch.setattr(nvrtc, "compile_to_ptx", no_compiler)
    assert compile_cuda(source, "k.cu", compiler="nvrtc") == ptx


@needs_nvrtc
def test_errors_of_nvrtc_carry_the_users_lines():
    source = "__global__ void k(int* a) {\n  a[i] = 1;\n}\nint main() { k<<<1, 1>>>(0); }"
    with pytest.raises(CompileError) as caught:
        compile_cuda(source, "k.cu", compiler="nvrtc")
    assert 'k.cu(2): error: identifier "i" is undefined' in str(caught.value)
    assert "NVRTC compiles kernels only" in str(caught.value)


def test_a_compiler_that_cannot_run(monkeypatch, tmp_path):
    monkeypatch.setenv("QGPU_CLANG", str(tmp_path / "nowhere"))
    find_compiler.cache_clear()
    try:
        with pytest.raises(CompileError, match="nowhere cannot be run"):
            find_compiler()
    finally:
        find_compiler.cache_clear()


# ---- Line information ----


def test_lines_are_the_users_and_change_no_instruction(monkeypatch):
    source = "__global__ void k(int* a) {\n  int i = blockIdx.x * 8 + threadIdx.x;\n\n  atomicAdd(&a[i], 3);\n}\n"
    with_lines = compile_cuda(source, "some/where/k.cu")
    lines = [line.split()[1:3] for line in with_lines.splitlines() if line.strip().startswith(".loc")]
    assert {line for _, line in lines} >= {"2", "4"} and {file for file, _ in lines} == {"1"}
    assert '.file\t1 "./some/where/k.cu"' in with_lines
    monkeypatch.setattr(compiling, "FLAGS", [flag for flag in compiling.FLAGS if flag != "-gline-directives-only"])
    assert instructions(compile_cuda(source, "some/where/k.cu")) == instructions(with_lines)


# ---- The cache ----


def test_the_second_compilation_runs_no_compiler(monkeypatch):
    first = compile_cuda(KERNEL, "k.cu")
    monkeypatch.setattr(compiling, "_clang", no_compiler)
    assert compile_cuda(KERNEL, "k.cu") == first
    with pytest.raises(AssertionError):
        compile_cuda(KERNEL + "// changed", "k.cu")
    with pytest.raises(AssertionError):
        compile_cuda(KERNEL, "other.cu")  # the name stands in the PTX


def test_a_changed_include_compiles_anew(tmp_path):
    (tmp_path / "n.h").write_text("#define N 3\n")
    (tmp_path / "k.cu").write_text('#include "n.h"\n__global__ void k(int* a) { a[0] = N; }\n')
    first = ptx_of_file(tmp_path / "k.cu").text
    (tmp_path / "n.h").write_text("#define N 4\n")
    assert ptx_of_file(tmp_path / "k.cu").text != first


def test_entries_appear_whole_and_leave_no_temporary_files(own_cache):
    text = "x" * 100_000

    def work(number):
        store("key", "ptx", text)
        return load("key", "ptx")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(32))) == {text}
    assert [path.name for path in (own_cache / "ptx").iterdir()] == ["key.ptx"]


def test_two_processes_at_once(tmp_path):
    code = f"from qgpu.cuda.compile import compile_cuda; print(len(compile_cuda({KERNEL!r}, 'k.cu')))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE) for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert int(outputs[0]) == int(outputs[1]) == len(compile_cuda(KERNEL, "k.cu"))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("QGPU_CACHE_DIR", str(tmp_path / "file"))
    assert ".entry" in compile_cuda(KERNEL, "k.cu")
    assert load("any", "ptx") is None


def test_parts_of_a_key_do_not_run_together():
    assert content_key("ab", "c") != content_key("a", "bc") != content_key("abc")


def test_the_directory_can_be_chosen(own_cache):
    assert cache_directory() == own_cache


# ---- Prebuilt PTX ----


def test_fresh_prebuilt_ptx_needs_no_compiler(tmp_path, monkeypatch):
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    path.with_suffix(".ptx").write_text(build_ahead(path))
    monkeypatch.setattr(compiling, "find_compiler", no_compiler)
    assert ptx_of_file(path).text.startswith(prebuilt_stamp(KERNEL))


def test_stale_prebuilt_ptx_is_not_used(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    path.with_suffix(".ptx").write_text(build_ahead(path))
    path.write_text(KERNEL.replace("1", "5"))
    assert "5;" in ptx_of_file(path).text


def test_ptx_passes_through(tmp_path, monkeypatch):
    (tmp_path / "k.ptx").write_text("anything")
    monkeypatch.setattr(compiling, "find_compiler", no_compiler)
    assert ptx_of_file(tmp_path / "k.ptx") == compiling.PtxText("anything", str(tmp_path / "k.ptx"))


# ---- The device header ----

WITH_HOST_CODE = """
#include <cstdio>
#include <cuda_runtime.h>
#include <stdint.h>
__global__ void k(int32_t* a) { a[threadIdx.x] = 1; }
int main() {
  int* a;
  cudaMalloc(&a, 128);
  k<<<1, 32>>>(a);
  cudaDeviceSynchronize();
  printf("%s\\n", cudaGetErrorString(cudaGetLastError()));
  return 0;
}
"""


def test_a_file_with_its_own_main_compiles():
    assert "st.global.b32" in compile_cuda(WITH_HOST_CODE, "main.cu")


@pytest.mark.parametrize(
    ("expression", "instruction"),
    [
        ("__shfl_down_sync(~0u, a[0], 1)", "shfl.sync.down.b32"),
        ("__shfl_xor_sync(~0u, a[0], 1, 8)", "6175"),
        ("__ballot_sync(~0u, a[0])", "vote.sync.ballot.b32"),
        ("__match_any_sync(~0u, a[0])", "match.any.sync.b32"),
        ("__activemask()", "activemask.b32"),
        ("atomicCAS(a, 1, 2)", "cas.b32"),
        ("atomicMax((unsigned*)a, 7u)", "atom.global.max.u32"),
        ("__popc(a[0])", "popc.b32"),
        ("__clz(a[0])", "clz.b32"),
        ("__brev(a[0])", "brev.b32"),
        ("__mulhi(a[0], a[1])", "mul.hi.s32"),
        ("__byte_perm(a[0], a[1], 0x3210 + a[2])", "prmt.b32"),
        ("__funnelshift_l(a[0], a[1], a[2])", "shf.l.wrap.b32"),
        ("min(a[0], a[1])", "min.s32"),
        ("max((unsigned)a[0], 3u)", "max.u32"),
        ("abs(a[0])", "abs.s32"),
        ("gridDim.y", "%nctaid.y"),
        ("__syncthreads_count(a[0])", "bar.red.popc.u32"),
        ("*(long long*)a / 3", "ld.global.b64"),
        ("((int4*)a)[1].z + ((int4*)a)[1].x", "ld.global.v4.b32"),
    ],
)
def test_a_device_function_becomes_its_instruction(expression, instruction):
    assert instruction in compile_cuda(f"__global__ void k(int* a) {{ a[9] = {expression}; }}", "k.cu")


def test_pointers_are_32_bits_wide():
    assert ".address_size 32" in compile_cuda(KERNEL, "k.cu")
