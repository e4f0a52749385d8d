"""The `tilewright` command."""
from __future__ import annotations

import click

from tilewright import __version__
from tilewright.cli.demo import demo
from tilewright.cli.info import bench, info
from tilewright.cli.tvm import tvm
from tilewright.driver import target as resolve_target
from tilewright.lowering import list_of
from tilewright.lowering.options import FULL, NEEDED, always
from tilewright.support.errors import TilewrightError


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
        notes = [n for n, usual in ((p.mode, FULL), (p.use, NEEDED), (p.when.__name__, always.__name__)) if n != usual]
        click.echo(f"{p.stage:7s}{p.name:30s} {', '.join(notes):23s} {(p.run.__doc__ or '').splitlines()[0]}")


for command in (tvm, demo, info, bench):
    main.add_command(command)

if __name__ == "__main__":
    main()
