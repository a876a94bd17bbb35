"""The house's rules, read off the sources: imports run one way, heavy packages stay where they are needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "qgpu"

# package -> packages of qgpu that it may import; leaves may be used by all
MAY_IMPORT = {
    "isa": set(),
    "circuit": set(),
    "foundry": {"circuit"},
    "machine": {"circuit", "isa"},
    "engines": {"foundry", "isa"},
    "cuda": {"isa"},
    "trace": {"isa"},
    "abacus": set(),
    "checkpoint": {"isa", "circuit", "foundry", "machine", "engines"},
    "driver": {"isa", "circuit", "foundry", "machine", "engines", "cuda", "trace"},
    "conformance": {"isa", "cuda", "driver"},
    "chat": {"isa", "foundry", "engines", "checkpoint", "cuda", "driver", "trace"},
}
LEAVES = {"errors", "writing"}
COMMAND_LINE = ("cli", "__main__")  # cli.py and the cli_*.py beside it: they import all, nothing imports them

# package that takes long to load or may be missing -> files that may import it at module level
HEAVY = {
    "numba": ("engines/native", "foundry/anneal.py"),
    "torch": ("engines/transformers.py", "abacus/model.py", "abacus/train.py"),
    "transformers": ("engines/transformers.py", "abacus/model.py", "abacus/train.py"),
    "scipy": (),
    "ziglang": (),
}


def sources() -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def package_of(name: str) -> str:
    """``cuda/lower.py`` -> cuda, ``cli_model.py`` -> cli_model."""
    return name.split("/")[0].removesuffix(".py")


def imports(name: str, nodes: Iterator[ast.AST] | list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted module) of the import statements among ``nodes``; ``from a import b`` gives a.b."""
    here = ["qgpu", *name.split("/")[:-1]]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), name)


def faults(name: str, module: ast.Module) -> list[str]:
    """Every import of ``module`` that breaks a rule, as file:line and what to do."""
    found = []
    package = package_of(name)
    for line, target in imports(name, ast.walk(module)):
        parts = target.split(".")
        if parts[0] != "qgpu" or len(parts) < 2:
            continue
        other = parts[1]
        if other.startswith(COMMAND_LINE) and not package.startswith(COMMAND_LINE):
            found.append(f"{name}:{line} imports {target}: nothing imports the command line")
        elif package in MAY_IMPORT and other in MAY_IMPORT and other != package and other not in MAY_IMPORT[package]:
            found.append(f"{name}:{line} imports {target}: {package} may import {sorted(MAY_IMPORT[package])} only")
    for line, target in imports(name, module.body):
        heavy = target.split(".")[0]
        if heavy in HEAVY and not name.startswith(HEAVY[heavy]):
            found.append(f"{name}:{line} imports {heavy} when it is loaded: import it inside the function that needs it")  # noqa: E501
    return found


def test_every_package_has_its_place() -> None:
    folders = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert folders <= set(MAY_IMPORT)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT) + sorted(LEAVES) + [*COMMAND_LINE])
def test_imports_run_one_way(package: str) -> None:
    names = [name for name in sources() if package_of(name) == package or package_of(name).split("_")[0] == package]
    assert [fault for name in names for fault in faults(name, tree(name))] == []


def test_leaves_import_leaves_alone() -> None:
    for leaf in LEAVES:
        name = f"{leaf}.py"
        found = [target.split(".") for _, target in imports(name, ast.walk(tree(name)))]
        assert [".".join(parts) for parts in found if parts[0] == "qgpu" and parts[1] not in LEAVES] == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("isa/tokens.py", "from qgpu.circuit import word", "isa/tokens.py:1 imports qgpu.circuit.word"),
        ("cuda/ir.py", "def f():\n    from qgpu.engines.native import NativeEngine", "cuda/ir.py:2"),
        ("foundry/cast.py", "from ..machine import machine", "foundry/cast.py:1 imports qgpu.machine.machine"),
        ("driver/device.py", "import qgpu.cli_model", "nothing imports the command line"),
        ("driver/device.py", "import torch.nn", "imports torch when it is loaded"),
        ("engines/export.py", "from numba import njit", "imports numba when it is loaded"),
    ],
)
def test_the_checks_find_faults(name: str, text: str, fault: str) -> None:
    assert any(fault in found for found in faults(name, ast.parse(text)))


def test_the_checks_let_pass_what_is_right() -> None:
    text = "from qgpu.isa import tokens\nfrom . import ir\ndef f():\n    import ziglang"
    assert faults("cuda/ptx.py", ast.parse(text)) == []


@pytest.mark.parametrize("name", sources())
def test_a_file_says_what_it_is_for(name: str) -> None:
    assert name.endswith("__init__.py") or ast.get_docstring(tree(name))
