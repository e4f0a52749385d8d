"""`tilewright compile | run | profile | show`: models in files."""
from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping, Sequence
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
from tilewright.support.errors import ArgumentError, ImportModelError, TilewrightError

_model = click.argument("model", type=click.Path(exists=True, dir_okay=False))
_shape = click.option("--shape", "shapes", multiple=True, metavar="NAME=1,3,224,224",
                      help="The shape of an input of an ONNX model; a name stands for a size that each call decides.")
_size = click.option("--size", "sizes", multiple=True, metavar="NAME=8",
                     help="A size of inputs that are made up, 1 where it is not given.")
_input = click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy",
                      help="An input; those that are not given are made up: normal numbers, zeros for integers.")
_target = click.option("--target", default=None,
                       help="What to compile for, of what this machine runs; default: all that it has.")


def _compiled(model: str, shapes: Sequence[str], target: str | None) -> tuple[Executable | Model, list[str]]:
    """The model of a file: compiled, or loaded where it is compiled already; the names that the file has for results.
    """
    path = Path(model)
    if path.suffix in (*LIBRARY_SUFFIXES, ".o"):
        return load_model(path), []
    function = _function(model, shapes)
    made: Executable = compile_model(function, target=target)
    return made, [r[0] for r in function.attrs.get("results", ()) if r[1] is None]


def _function(model: str, shapes: Sequence[str]) -> Function:
    """The model of a file as a function of the graph."""
    path = Path(model)
    given = {name: tuple(int(d) if d.isascii() and d.isdigit() else d for d in text.split(",") if d)
             for name, text in _pairs(shapes)}
    if path.suffix == ".pt2":
        exported: Function = imported(_program(model))
        return exported
    if path.suffix != ".onnx":
        raise ArgumentError(f"{model}: unknown kind of file", "use .onnx, .pt2 (torch.export.save), or .so and .o, "
                            "which `tilewright compile` writes")
    made: Function = imported(path, shapes=given or None)
    return made


def _program(model: str) -> Any:
    """The exported program in a file. Raises ArgumentError, ImportModelError."""
    try:
        import torch
    except ModuleNotFoundError:
        raise ArgumentError(f"{model} is read by PyTorch, which is not installed", "pip install torch") from None
    try:
        return torch.export.load(model)
    except Exception as why:                       # PyTorch has many kinds
        raise ImportModelError(f"{model} is no file of torch.export.save, or damaged: {type(why).__name__}: "
                               f"{str(why).partition(chr(10))[0]}", "write it again with torch.export.save") from None


def _pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    """(name, value) of texts NAME=VALUE, each name once. Raises ArgumentError."""
    out: list[tuple[str, str]] = []
    for text in texts:
        name, found, value = text.partition("=")
        if not found or not name:
            raise ArgumentError(f"{text!r} is not NAME=VALUE")
        if name in dict(out):
            raise ArgumentError(f"{name} is given twice: {dict(out)[name]} and {value}", "leave one out")
        out.append((name, value))
    return out


def _arguments(model: Executable | Model, inputs: Sequence[str], sizes: Sequence[str]) -> list[np.ndarray]:
    """The inputs of a call: from files, or made up."""
    parameters, files = _parameters(model), dict(_pairs(inputs))
    known = _sizes(sizes, {str(d) for _, shape, _ in parameters for d in shape if not isinstance(d, int)})
    rng = np.random.default_rng(0)
    out = []
    for name, shape, dtype in parameters:
        if name in files:
            out.append(_read(name, files.pop(name)))
            continue
        extents = tuple(d if isinstance(d, int) else known.get(str(d), 1) for d in shape)
        out.append(rng.standard_normal(extents).astype(dtype) if "float" in dtype else np.zeros(extents, dtype))
    if files:
        raise ArgumentError(f"the model has no input {next(iter(files))!r}",
                            f"it has {', '.join(name for name, _, _ in parameters) or 'none'}")
    return out


def _sizes(texts: Sequence[str], names: set[str]) -> dict[str, int]:
    """The sizes that are given, all of them sizes of the model."""
    out = {}
    for name, value in _pairs(texts):
        if name not in names:
            raise ArgumentError(f"the model has no size {name!r}",
                                f"it has {', '.join(sorted(names))}" if names else "its inputs have constant shapes")
        if not (value.isascii() and value.isdigit() and len(value) < 19):
            raise ArgumentError(f"--size {name}={value}: {value!r} is not a number of elements",
                                f"write --size {name}=8")
        out[name] = int(value)
    return out


def _read(name: str, file: str) -> np.ndarray:
    """The array in a file. Raises ArgumentError."""
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ArgumentError(f"--input {name}={file} cannot be read: {why}", "numpy.save writes such files") from None
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"--input {name}={file} holds several arrays", "numpy.save writes files of one")
    return array


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
        made, _ = _compiled(model, shapes, target)
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
        if output and not Path(output).absolute().parent.is_dir():
            raise ArgumentError(f"cannot write {output}: there is no folder {Path(output).parent}", "make it first")
        made, names = _compiled(model, shapes, None)
        results = made(*_arguments(made, inputs, sizes))
        arrays = [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]
        if len(names) != len(arrays):
            names = [f"result{k}" for k in range(len(arrays))]
        for name, a in zip(names, arrays):
            click.echo(f"{name}: {a.dtype}{list(a.shape)}\n{np.array2string(a, threshold=20)}")
        if output:
            _write(output, dict(zip(names, arrays)))
    _guarded(work)


def _write(output: str, arrays: Mapping[str, np.ndarray]) -> None:
    """An archive as numpy.savez writes it, whatever the names; floats that files of NumPy have not become float32."""
    with zipfile.ZipFile(output if output.endswith(".npz") else f"{output}.npz", "w") as archive:
        for name, a in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, a.astype("float32") if a.dtype.kind == "V" else a)


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
        made, _ = _compiled(model, shapes, None)
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
    except (TilewrightError, OSError, ValueError, MemoryError) as error:
        click.echo(f"error: {str(error) or 'there is not enough memory'}", err=True)
        sys.exit(1)


COMMANDS = (compile_command, run_command, profile_command, show_command)
