"""How far a compilation is, on a terminal."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tilewright.support import config

FEW = 8                                        # parts that are done before anybody looks


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """What shows how many of total parts are done; None where they are few, or standard error is no terminal.

    TILEWRIGHT_PROGRESS=0 turns it off.
    """
    if total < FEW or sys.stderr is None or not sys.stderr.isatty() or not config.get("PROGRESS"):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
