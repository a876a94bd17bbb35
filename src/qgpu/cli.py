"""The command line: one function a command, none of which computes anything of its own.

Nothing heavy is imported here, only inside the commands, so that ``qgpu --help`` answers at once. Errors of the user's
input print as one message and end with status 2; Ctrl-C ends with 130.
"""

from __future__ import annotations

import errno
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from qgpu.errors import QgpuError

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class Commands(TyperGroup):
    """The commands, with errors of qgpu printed as messages."""

    def invoke(self, ctx: Any) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done
        except QgpuError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt as interrupt:
            typer.echo(str(interrupt) or "interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A GPU in the weights of a language model: the model itself runs CUDA, token by token.",
)
# So that -7 and - are arguments and no options.
NUMBERS = {"ignore_unknown_options": True}


class EngineName(StrEnum):
    native = "native"
    transformers = "transformers"
    verified = "verified"
    interpreter = "interpreter"


class Dtype(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"


Engine = Annotated[EngineName, typer.Option(help="What evaluates the weights; the interpreter has none.")]
Type = Annotated[Dtype | None, typer.Option(help="Type of the activations; each engine has its usual one.")]
Place = Annotated[
    str | None, typer.Option("--device", help="What torch runs the transformers engine on: cpu, cuda, mps.")
]
Check = Annotated[bool, typer.Option("--check", help="Compare every token and the memory with the interpreter.")]
MaxTokens = Annotated[int, typer.Option(min=1, help="How many tokens a launch may write.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Grid = Annotated[str | None, typer.Option(help="CTAs in the grid: X, XxY or XxYxZ.")]
Cta = Annotated[str | None, typer.Option(help="Threads in a CTA (a CUDA thread block): X, XxY or XxYxZ.")]
GridOfOne = Annotated[str, typer.Option(help="CTAs in the grid: X, XxY or XxYxZ.")]
CtaOfOne = Annotated[str, typer.Option(help="Threads in a CTA (a CUDA thread block): X, XxY or XxYxZ.")]
Seed = Annotated[int, typer.Option(help="Where random numbers start.")]
KernelName = Annotated[str | None, typer.Option("--kernel", help="The kernel, where the file has several.")]
CompilerName = Annotated[
    str | None, typer.Option("--compiler", help="ziglang (the usual one), clang or nvrtc: what compiles CUDA C.")
]
File = Annotated[Path, typer.Argument(help="A .cu, .ptx or .qgpu file, or a stock kernel by its name, such as dot.")]


@app.command(context_settings=NUMBERS)
def eval(
    expression: Annotated[
        str, typer.Argument(help='Integers, vectors, matrices, operators and functions: "sum([1, 2] ** 2)".')
    ],
    engine: Engine = EngineName.native,
    dtype: Type = None,
    device: Place = None,
    check: Check = False,
    max_tokens: MaxTokens = 1_000_000,
    json: Json = False,
) -> None:
    """Evaluate an expression: every operation is a kernel that the model runs."""
    from qgpu import cli_run

    options = cli_run.Options(engine.value, dtype and dtype.value, check, max_tokens, json, device=device)
    cli_run.evaluate(expression, options)


@app.command(context_settings=NUMBERS)
def run(
    file: File,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=]VALUE...",
            help="The kernel's arguments: 7, [1, 2, 3], [[1, 2], [3, 4]], zeros:3 or zeros:2x3 (a result), random:8, "
            "@file.npy, @file.json, or - for JSON from standard input.",
        ),
    ] = None,
    grid: GridOfOne = "1",
    block: CtaOfOne = "1",
    kernel: KernelName = None,
    shared: Annotated[int, typer.Option(min=0, help="Bytes of dynamic shared memory.")] = 0,
    compiler: CompilerName = None,
    seed: Seed = 0,
    engine: Engine = EngineName.native,
    dtype: Type = None,
    device: Place = None,
    check: Check = False,
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Look for uninitialised reads, races, and barriers with missing threads.")
    ] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Print the launch token by token.")] = False,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Write a trace file, for qgpu trace.")
    ] = None,
    activity: Annotated[
        bool, typer.Option("--activity", help="Record what every layer of the model does as well: takes twice as long.")
    ] = False,
    max_tokens: MaxTokens = 1_000_000,
    json: Json = False,
) -> None:
    """Launch a CUDA kernel and print the arrays it wrote.

    Example: qgpu run dot --block 3 "[1, 2, 3]" "[4, 5, 6]" out=zeros:1 3
    """
    from qgpu import cli_run

    options = cli_run.Options(engine.value, dtype and dtype.value, check, max_tokens, json, sanitize, device)
    if activity and record is None:
        raise typer.BadParameter("it needs --record FILE, where to", param_hint="--activity")
    cli_run.run(
        file, kernel, arguments or [], grid, block, trace, options, shared, compiler, seed,
        cli_run.Recording(record, activity) if record else None,
    )  # fmt: skip


class TraceFormat(StrEnum):
    """What a trace is written as."""

    html = "html"
    jsonl = "jsonl"
    chrome = "chrome"
    vcd = "vcd"


@app.command()
def trace(
    file: Annotated[Path, typer.Argument(help="A trace file, as qgpu run --record FILE writes it.")],
    format: Annotated[
        TraceFormat,
        typer.Option(help="html: a page; jsonl: a line a step; chrome: for Perfetto; vcd: for waveform viewers."),
    ] = TraceFormat.html,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to, - for standard output; beside the trace if not said."),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    json: Json = False,
) -> None:
    """Write a recorded launch as a page to watch it on, or for another program."""
    from qgpu import cli_trace

    if json and str(output) == "-":
        raise typer.BadParameter("standard output takes the trace already", param_hint="--json")
    if open and (format is not TraceFormat.html or str(output) == "-"):
        raise typer.BadParameter("only a page that is written to a file can be opened", param_hint="--open")
    cli_trace.export(file, format.value, output, open, json)


@app.command()
def compile(
    file: Annotated[Path, typer.Argument(help="A .cu or .ptx file, or a stock kernel by its name.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The .qgpu file; beside the source.")] = None,
    kernel: Annotated[list[str] | None, typer.Option(help="Only this kernel; may be repeated.")] = None,
    compiler: CompilerName = None,
    json: Json = False,
) -> None:
    """Compile CUDA C to a program file, which runs where there is no compiler."""
    from qgpu import cli_compile

    cli_compile.compile_to_file(file, output, kernel or [], compiler, json)


@app.command()
def ptx(file: File, compiler: CompilerName = None, json: Json = False) -> None:
    """Compile CUDA C and print its PTX."""
    from qgpu import cli_compile

    cli_compile.print_ptx(file, compiler, json)


@app.command()
def asm(
    file: File, kernel: KernelName = None, grid: Grid = None, block: Cta = None, compiler: CompilerName = None,
    json: Json = False,
) -> None:
    """Compile a kernel and print the machine's blocks: those for any launch, or for a launch of the sizes given."""
    from qgpu import cli_run

    cli_run.assembly(file, kernel, grid, block, compiler, json)


@app.command()
def bench(
    kernel: Annotated[list[str] | None, typer.Option(help="Only this stock kernel; may be repeated.")] = None,
    engine: Engine = EngineName.native,
    dtype: Type = None,
    device: Place = None,
    seed: Seed = 0,
    check: Check = False,
    json: Json = False,
) -> None:
    """Run the stock kernels, and say how many tokens they take and how quick they are written."""
    from qgpu import cli_bench

    cli_bench.bench(kernel or [], engine.value, dtype and dtype.value, device, seed, check, json)


@app.command()
def doctor(json: Json = False) -> None:
    """Say what is installed, which engines and compilers work here, and what to do where one does not."""
    from qgpu import cli_doctor

    cli_doctor.doctor(json)


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print what makes a shell complete qgpu's commands and options; to be sourced, or put where the shell looks."""
    from typer.completion import get_completion_script

    typer.echo(get_completion_script(prog_name="qgpu", complete_var="_QGPU_COMPLETE", shell=shell.value))


@app.command()
def info(
    picture: Annotated[Path | None, typer.Option(help="Draw the layers to this file, as SVG.")] = None,
    json: Json = False,
) -> None:
    """Say what the machine in the weights is: sizes, layers, and the margins that were proved."""
    from qgpu import cli_model

    cli_model.info(picture, json)


@app.command()
def cast(json: Json = False) -> None:
    """Cast the machine into weights anew, and report it layer by layer."""
    from qgpu import cli_model

    cli_model.cast(json)


class Layout(StrEnum):
    """The two forms of a Qwen3.5 checkpoint."""

    nested = "nested"
    flat = "flat"


@app.command()
def build(
    folder: Annotated[Path, typer.Argument(help="The folder to write; it is replaced if it is a merged model.")],
    base: Annotated[str, typer.Option(help="A folder, or a repository of the hub.")] = "Qwen/Qwen3.5-2B",
    layout: Annotated[
        Layout, typer.Option(help="nested: for transformers, mlx-lm, GGUF; flat: for vLLM, SGLang.")
    ] = Layout.nested,
    dtype: Annotated[Dtype, typer.Option(help="bfloat16 keeps each tensor as the base has it.")] = Dtype.bfloat16,
    revision: Annotated[str | None, typer.Option(help="Revision of the repository.")] = None,
    json: Json = False,
) -> None:
    """Put the GPU's layers in front of a Qwen3.5: one standard checkpoint that chats and computes."""
    from qgpu import cli_checkpoint

    cli_checkpoint.build(base, folder, layout.value, dtype.value, revision, json)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A merged model.")],
    base: Annotated[str, typer.Option(help="The base that it was made from.")] = "Qwen/Qwen3.5-2B",
    revision: Annotated[str | None, typer.Option(help="Revision of the repository.")] = None,
    weights: Annotated[bool, typer.Option("--weights", help="Compare weights only; run no model.")] = False,
    dtype: Annotated[Dtype | None, typer.Option(help="Run in this type only; both, if not named.")] = None,
    launches: Annotated[int, typer.Option(min=0, max=10, help="Kernels to launch between texts.")] = 2,
    plot: Annotated[Path | None, typer.Option(help="Draw the divergence at every position to this SVG.")] = None,
    json: Json = False,
) -> None:
    """Say whether a merged model still is its base, and computes: weights, hidden dims, distributions, launches."""
    from qgpu import cli_checkpoint

    cli_checkpoint.verify(folder, base, revision, weights, dtype and dtype.value, launches, plot, json)


@app.command()
def prove(
    file: Annotated[Path | None, typer.Argument(help="A network file. The bare model if none is named.")] = None,
    json: Json = False,
) -> None:
    """Prove the margins anew, from the weights alone: no circuit, no schedule."""
    from qgpu import cli_prove

    cli_prove.prove(file, json)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write; it is replaced if it is a checkpoint.")],
    dtype: Annotated[Dtype, typer.Option(help="Type of the weights.")] = Dtype.bfloat16,
    json: Json = False,
) -> None:
    """Write the bare model as a stock Qwen3.5 checkpoint."""
    from qgpu import cli_model

    cli_model.export(folder, dtype.value, json)


class Level(StrEnum):
    ir = "ir"
    interpreter = "interpreter"
    native = "native"
    transformers = "transformers"


class Compiler(StrEnum):
    clang = "clang"
    nvrtc = "nvrtc"


@app.command()
def conformance(
    kernel: Annotated[list[str] | None, typer.Option(help="Only this kernel or row; may be repeated.")] = None,
    level: Annotated[
        list[Level] | None, typer.Option(help="What runs it; may be repeated. Default: interpreter and native.")
    ] = None,
    compiler: Annotated[list[Compiler] | None, typer.Option(help="What makes the PTX; may be repeated.")] = None,
    cuda: Annotated[bool, typer.Option("--cuda", help="Run the table on a real NVIDIA GPU instead.")] = False,
    json: Json = False,
) -> None:
    """Run the table of kernels and compare with the results of the host's own compiler."""
    from qgpu.cli_conformance import conformance as run_table

    levels = [one.value for one in level or (Level.interpreter, Level.native)]
    run_table(kernel or [], levels, [one.value for one in compiler or (Compiler.clang,)], cuda, json)


def main() -> None:
    """The entry point of the ``qgpu`` command."""
    if "_QGPU_COMPLETE" in os.environ:  # a shell asks what may follow
        from typer.completion import completion_init

        completion_init()
    try:
        app(prog_name="qgpu")
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise  # a closed pipe has been ended quietly by typer; what else there is would be a fault of ours
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  what is left to be written at the end goes nowhere
        print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(2)

