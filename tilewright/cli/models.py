"""`tilewright compile | run | profile | show`: models in files."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from tilewright.frontend.entry import compile as compile_model
from tilewright.frontend.entry import imported
from tilewright.frontend.entry import profile as profile_model
from tilewright.graph.ir.values import Function
from tilewright.graph.plan.executable import Executable
from tilewright.graph.plan.loaded import Model
from tilewright.graph.plan.loaded import load as load_model
from tilewright.runtime.export import LIBRARY_SUFFIXES
from tilewright.support.errors import ArgumentError, TilewrightError

_model = click.argument("model", type=click.Path(exists=True, dir_okay=False))
_shape = click.option("--shape", "shapes", multiple=True, metavar="NAME=1,3,224,224",
                      help="The shape of an input of an ONNX model; a name stands for a size that each call decides.")
_size = click.option("--size", "sizes", multiple=True, metavar="NAME=8",
                     help="A size of inputs that are made up, 1 where it is not given.")
_input = click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy",
                      help="An input; those that are not given are made up: normal numbers, zeros for integers.")
_target = click.option("--target", default=None, help="What to compile for; default: this machine.")


def _compiled(model: str, shapes: Sequence[str], target: str | None) -> Executable | Model:
    """The model of a file: compiled, or loaded where it is compiled already."""
    path = Path(model)
    if path.suffix in (*LIBRARY_SUFFIXES, ".o"):
        return load_model(path)
    made: Executable = compile_model(_function(model, shapes), target=target)
    return made


def _function(model: str, shapes: Sequence[str]) -> Function:
    """The model of a file as a function of the graph."""
    path = Path(model)
    given = {name: tuple(int(d) if d.isdigit() else d for d in text.split(",") if d) for name, text in _pairs(shapes)}
    if path.suffix == ".pt2":
        import torch
        exported: Function = imported(torch.export.load(model))
        return exported
    if path.suffix != ".onnx":
        raise ArgumentError(f"{model}: unknown kind of file", "use .onnx, .pt2 (torch.export.save), or .so and .o, "
                            "which `tilewright compile` writes")
    made: Function = imported(path, shapes=given or None)
    return made


def _pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    out = []
    for text in texts:
        name, found, value = text.partition("=")
        if not found or not name:
            raise ArgumentError(f"{text!r} is not NAME=VALUE")
        out.append((name, value))
    return out


def _arguments(model: Executable | Model, inputs: Sequence[str], sizes: Sequence[str]) -> list[np.ndarray]:
    """The inputs of a call: from files, or made up."""
    known = {name: int(value) for name, value in _pairs(sizes)}
    files = dict(_pairs(inputs))
    rng = np.random.default_rng(0)
    out = []
    for name, shape, dtype in _parameters(model):
        if name in files:
            out.append(np.load(files.pop(name), allow_pickle=False))
            continue
        extents = tuple(d if isinstance(d, int) else known.get(str(d), 1) for d in shape)
        out.append(rng.standard_normal(extents).astype(dtype) if "float" in dtype else np.zeros(extents, dtype))
    if files:
        raise ArgumentError(f"the model has no input {next(iter(files))!r}")
    return out


def _parameters(model: Executable | Model) -> list[tuple[str, tuple[Any, ...], str]]:
    if isinstance(model, Executable):
        return [(name, t.shape, t.dtype) for name, t in model.plan.params]
    return [(p.name, tuple(p.shape or ()), p.dtype) for p in model.inputs]


@click.command(name="compile")
@_model
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="A library (.so) or object (.o).")
@_shape
@_target
def compile_command(model: str, output: str, shapes: Sequence[str], target: str | None) -> None:
    """Compile MODEL (.onnx, or .pt2 of torch.export) to one file with its weights."""
    def work() -> None:
        made = _compiled(model, shapes, target)
        if not isinstance(made, Executable):
            raise ArgumentError(f"{model} is compiled already")
        made.export(output)
        click.echo(f"{output}: {Path(output).stat().st_size / 1e6:.1f} MB")
        click.echo(str(made))
    _guarded(work)


@click.command(name="run")
@_model
@_input
@_size
@_shape
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the results to this file (.npz).")
def run_command(model: str, inputs: Sequence[str], sizes: Sequence[str], shapes: Sequence[str],
                output: str | None) -> None:
    """Run MODEL once, and show its results or write them to a file."""
    def work() -> None:
        made = _compiled(model, shapes, None)
        results = made(*_arguments(made, inputs, sizes))
        arrays = [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]
        for k, a in enumerate(arrays):
            click.echo(f"result {k}: {a.dtype}{list(a.shape)}\n{np.array2string(a, threshold=20)}")
        if output:
            named: dict[str, Any] = {f"result{k}": a for k, a in enumerate(arrays)}
            np.savez(output, **named)
    _guarded(work)


@click.command(name="profile")
@_model
@_input
@_size
@_shape
@click.option("--trace", type=click.Path(dir_okay=False), help="Write one run as a trace that Perfetto shows (.json).")
def profile_command(model: str, inputs: Sequence[str], sizes: Sequence[str], shapes: Sequence[str],
                    trace: str | None) -> None:
    """Say where the time of MODEL goes, kernel by kernel."""
    def work() -> None:
        made = _compiled(model, shapes, None)
        if not isinstance(made, Executable):
            raise ArgumentError(f"{model} has no kernels to look at by themselves", "profile what it was compiled from")
        found = profile_model(made, *_arguments(made, inputs, sizes))
        click.echo(str(found))
        if trace:
            found.save(trace)
    _guarded(work)


@click.command(name="show")
@_model
@_shape
def show_command(model: str, shapes: Sequence[str]) -> None:
    """Print MODEL as a script."""
    _guarded(lambda: _function(model, shapes).show())


def _guarded(work: Any) -> None:
    """Errors of users as one message without a traceback."""
    try:
        work()
    except (TilewrightError, OSError, ValueError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


COMMANDS = (compile_command, run_command, profile_command, show_command)
