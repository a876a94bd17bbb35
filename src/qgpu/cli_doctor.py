"""What ``qgpu doctor`` does: what is installed, what works here, and what to do where something does not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from qgpu.cuda.cache import cache_directory
from qgpu.cuda.compile import COMPILERS, find_compiler
from qgpu.driver import bare
from qgpu.errors import QgpuError

NEEDED = ("numpy", "numba", "safetensors", "typer", "rich")
OPTIONAL = {
    "ziglang": "the usual compiler: pip install ziglang",
    "torch": "for the transformers engine and merged models: pip install 'qgpu[transformers]'",
    "transformers": "for the transformers engine and merged models: pip install 'qgpu[transformers]'",
}


@dataclass(frozen=True)
class Finding:
    """``state``: ok, missing (something that can be done without), or bad. ``remedy``: what to do, empty if nothing."""

    area: str
    name: str
    state: str
    text: str
    remedy: str = ""


def doctor(as_json: bool) -> None:
    """``qgpu doctor``. Ends with status 1 if qgpu cannot run here."""
    found = [*_python(), *_packages(), *_compilers(), *_cache(), *_engines(), *_gpu()]
    bad = [finding for finding in found if finding.state == "bad"]
    if as_json:
        print(json.dumps({"works": not bad, "findings": [asdict(finding) for finding in found]}))
    else:
        area = ""
        for finding in found:
            if finding.area != area:
                area = finding.area
                print(f"{area}")
            mark = {"ok": "+", "missing": "-", "bad": "!"}[finding.state]
            print(f"  {mark} {finding.name:14s} {finding.text}")
            if finding.remedy:
                print(f"    {'':14s} {finding.remedy}")
        print("\nqgpu works here" if not bad else f"\nqgpu does not work here: {len(bad)} to mend, marked with !")
    if bad:
        raise typer.Exit(1)


def _python() -> list[Finding]:
    try:
        version = importlib.metadata.version("qgpu")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed, run from its sources"
    old = sys.version_info < (3, 11)
    return [
        Finding("qgpu", "qgpu", "ok", f"{version}, in {Path(__file__).parent}"),
        Finding("qgpu", "Python", "bad" if old else "ok", f"{platform.python_version()}, {platform.system()} on "
                f"{platform.machine()}, {os.cpu_count()} cores", "install Python 3.11 or newer" if old else ""),
    ]  # fmt: skip


def _version(package: str) -> str | None:
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _packages() -> list[Finding]:
    found = []
    for package in NEEDED:
        version = _version(package)
        remedy = "" if version else f"pip install {package}"
        found.append(Finding("packages", package, "ok" if version else "bad", version or "not installed", remedy))
    for package, remedy in OPTIONAL.items():
        version = _version(package)
        state = "ok" if version else "missing"
        found.append(Finding("packages", package, state, version or "not installed", "" if version else remedy))
    return found


def _compilers() -> list[Finding]:
    found = []
    for name, what in COMPILERS.items():
        try:
            compiler = find_compiler(name)
            found.append(Finding("compilers", name, "ok", compiler.version or what))
        except QgpuError as error:
            lines = str(error).splitlines()
            found.append(Finding("compilers", name, "missing", lines[0].split(": ")[0], what))
    if not any(finding.state == "ok" for finding in found):
        found.append(Finding("compilers", "any", "bad", "CUDA C cannot be compiled here; .ptx and .qgpu files run",
                             "pip install ziglang"))  # fmt: skip
    return found


def _cache() -> list[Finding]:
    directory = cache_directory()
    remedy = "set QGPU_CACHE_DIR to a folder that can be written to; without one every run casts the machine anew"
    if directory is None:
        return [Finding("cache", "folder", "missing", "there is no folder for caches", remedy)]
    here = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(here, os.W_OK):
        return [Finding("cache", "folder", "missing", f"{directory} cannot be written to", remedy)]
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    free = shutil.disk_usage(here).free
    return [Finding("cache", "folder", "ok", f"{directory}: {size / 1e6:,.0f} MB, {free / 1e9:,.0f} GB free")]


def _engines() -> list[Finding]:
    place = bare.entry()
    cast = place is not None and (place / bare.NETWORK).is_file()
    weights = "the weights are cast" if cast else "the weights are cast at the first run (half a minute)"
    checks: dict[str, Callable[[], str]] = {
        "native": lambda: _needs("numba") or weights,
        **dict.fromkeys(
            ("transformers", "verified"), lambda: _needs("torch") or _needs("transformers") or weights
        ),
        "interpreter": lambda: "the specification, no weights",
    }
    found = []
    for name, check in checks.items():
        try:
            found.append(Finding("engines", name, "ok", check()))
        except ImportError as error:
            what = "pip install 'qgpu[transformers]'" if name in ("transformers", "verified") else "pip install qgpu"
            found.append(Finding("engines", name, "bad" if name == "native" else "missing", str(error), what))
    return found


def _needs(package: str) -> str:
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"needs {package}")
    return ""


def _gpu() -> list[Finding]:
    from qgpu.conformance.gpu import NoGpuError, load_driver

    try:
        load_driver()
    except NoGpuError:
        text = "none, and none is needed; with one, qgpu conformance --cuda compares with it"
        return [Finding("NVIDIA GPU", "driver", "missing", text)]
    return [Finding("NVIDIA GPU", "driver", "ok", "there; qgpu conformance --cuda compares with it")]
