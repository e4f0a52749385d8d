"""`tilewright tvm SCRIPT [ARGS]`: run a script that says `import tvm`, unchanged."""
from __future__ import annotations

import runpy
import sys
import types
from pathlib import Path

import click

from tilewright.compat.namespace import install


@click.command(name="tvm", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def tvm(script: str, args: tuple[str, ...]) -> None:
    """Run SCRIPT with `import tvm` meaning tilewright.compat.tvm."""
    install()
    sys.argv = [script, *args]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as why:
        why.__traceback__ = _below(why.__traceback__, script)
        sys.excepthook(type(why), why, why.__traceback__)
        sys.exit(1)


def _below(trace: types.TracebackType | None, script: str) -> types.TracebackType | None:
    """The part of a traceback that is the script's own: from its first frame on."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace
