"""The `tilewright` command, and `tilewright tvm SCRIPT [ARGS]`, which runs a script that says `import tvm`."""
from __future__ import annotations

import runpy
import sys
import types
from pathlib import Path

import click

from tilewright import __version__
from tilewright.cli.demo import demo
from tilewright.cli.info import bench, info
from tilewright.cli.models import COMMANDS
from tilewright.compat.check.names import missing_names
from tilewright.compat.namespace import install
from tilewright.driver import target as resolve_target
from tilewright.lowering import list_of
from tilewright.support.errors import TilewrightError


@click.command(name="tvm", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--check", is_flag=True,
              help="List the names of TVM in SCRIPT that Tilewright lacks, and calls that do not fit; run nothing.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def tvm(check: bool, script: str, args: tuple[str, ...]) -> None:
    """Run SCRIPT with `import tvm` meaning tilewright.compat.tvm.

    With --check the exit status is 1 when a name is missing or a call does not fit.
    """
    if check:
        sys.exit(_check(script))
    install()
    sys.argv = [script, *args]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as why:
        why.__traceback__ = _below(why.__traceback__, script)
        sys.excepthook(type(why), why, why.__traceback__)
        sys.exit(1)


def _check(script: str) -> int:
    """Print what is missing, one use per line; the exit status."""
    try:
        missing = missing_names(Path(script).read_bytes(), script)
    except (TilewrightError, OSError) as why:
        raise click.ClickException(str(why)) from None
    for use in missing:
        click.echo(f"{script}:{use.line}: {use}")
    names, calls = {use.name for use in missing if not use.call}, [use for use in missing if use.call]
    if not missing:
        click.echo(f"{script}: every name of TVM in it is here, and every call fits as far as can be told")
    if names:
        click.echo(f"{len(names)} name(s) of TVM are missing")
    if calls:
        click.echo(f"{len(calls)} call(s) do not fit")
    return int(bool(missing))


def _below(trace: types.TracebackType | None, script: str) -> types.TracebackType | None:
    """The part of a traceback that is the script's own: from its first frame on."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace


@click.version_option(__version__, prog_name="tilewright")
@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Tilewright: tensor expressions and schedules to native code, with autodiff and training."""


@main.command()
@click.argument("target", default="llvm")
def passes(target: str) -> None:
    """List the passes of a target, in order: form of the result, name, when it runs, what it does."""
    try:
        rows = list_of(resolve_target(target).kind)
    except TilewrightError as why:
        raise click.ClickException(str(why)) from None
    for p in rows:
        click.echo(f"{p.stage:7s}{p.name:30s} {', '.join(p.conditions):23s} {p.result}")


for command in (tvm, demo, info, bench, *COMMANDS):
    main.add_command(command)

if __name__ == "__main__":
    main()
