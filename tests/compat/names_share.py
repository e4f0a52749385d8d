"""Which share of what old programs asked for works: `python -m tests.compat.names_share FILE [-v]`.

FILE has a section for each group of programs, `## tir-schedule`, and in it a line for each message that programs of the
group stopped at: how often, two spaces or more, the message. A line works where the forms that answer its message work;
where several do, for several programs, as large a part of its count as of the forms.
"""
from __future__ import annotations

import contextlib
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tilewright.compat import namespace
from tilewright.compat.absent import LEFT_OUT

from .forms import ASKED, FORMS, REFUSED, blocks, passes, refusals, scripts, stages, values

FILES = (blocks, passes, refusals, scripts, stages, values)
_UNKNOWN = "nothing answers it"
_LINE = re.compile(r"\s*(\d+)\s\s+(.*)")
_OTHER_SYSTEMS = re.compile("meta_schedule|relay|relax|rpc")             # they are left out as a whole


def lines(text: str) -> Iterator[tuple[str, int, str]]:
    """(group, count, message) of each line."""
    group = ""
    for line in text.splitlines():
        if line.startswith("## "):
            group = line[3:].strip()
        elif group and (found := _LINE.match(line)):
            yield group, int(found[1]), found[2].strip()


def failure(name: str) -> str:
    """Why a form does not work; "" where it does."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            FORMS[name]()
    except (Exception, pytest.fail.Exception) as why:                     # whatever a form meets is what is reported
        return REFUSED.get(name) or f"{type(why).__name__}: {str(why).splitlines()[0] if str(why) else ''}"
    return ""


def answer(message: str, failures: dict[str, str]) -> tuple[int, int, str]:
    """(forms that work, forms, why not all do) of a message; `failures` keeps what was run."""
    for pattern, names in ASKED.items():
        if re.search(pattern, message):
            for name in names:
                if name not in failures:
                    failures[name] = failure(name)
            whys = [failures[n] for n in names if failures[n]]
            return len(names) - len(whys), len(names), "; ".join(dict.fromkeys(whys))
    return 0, 1, next((row.why for row in LEFT_OUT if row.messages and re.search(row.messages, message)), _UNKNOWN)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="Show the lines that do not work, and why.")
def main(file: Path, verbose: bool) -> None:
    """Print the share of the lines of FILE that works, for each group."""
    namespace.install()
    failures: dict[str, str] = {}
    works: dict[str, int] = defaultdict(int)
    asked: dict[str, int] = defaultdict(int)
    for group, count, message in lines(file.read_text()):
        if _OTHER_SYSTEMS.search(message):
            continue
        good, forms, why = answer(message, failures)
        part = count * good // forms
        asked[group] += count
        works[group] += part
        if verbose and part < count:
            print(f"{group}: {count - part} of {count}: {message[:100]}\n    {why}")
    for group in asked:
        print(f"{group}: {works[group]} of {asked[group]}, {works[group] / asked[group]:.1%}")


if __name__ == "__main__":
    main()
