"""The `tilewright` command."""
from __future__ import annotations

import click

from tilewright import __version__
from tilewright.cli.demo import demo
from tilewright.cli.info import bench, info
from tilewright.cli.passes import passes
from tilewright.cli.tvm import tvm


@click.version_option(__version__, prog_name="tilewright")
@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Tilewright: tensor expressions and schedules to native code, with autodiff and training."""


main.add_command(tvm)
main.add_command(demo)
main.add_command(info)
main.add_command(bench)
main.add_command(passes)

if __name__ == "__main__":
    main()
