"""Files of others: opened where they are regular ones, and of their texts as much as a message can show."""
from __future__ import annotations

import os
import stat
from pathlib import Path

from tilewright.support.errors import ImportModelError

MOST_SHOWN = 200                 # characters of a text of a file that a message shows


def open_regular(path: Path, what: str) -> tuple[int, os.stat_result]:
    """(the number of a file that is open for reading, its status); what: begins the message.

    Raises OSError, and ImportModelError for what is no regular file; pipes are not waited for.
    """
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        os.close(number)
        raise ImportModelError(f"{what} is not a regular file", "name a file, not a folder or pipe")
    return number, status


def shown(text: object) -> str:
    """A text, or what an exception says, cut where it is long."""
    whole = str(text)
    return whole if len(whole) <= MOST_SHOWN else f"{whole[:MOST_SHOWN]}... ({len(whole)} characters)"
