"""Which of TVM's names there are: docs/tvm.md. `python -m tilewright.compat.coverage FILE` writes it."""
from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tilewright import runtime, te, tir
from tilewright.compat import namespace, tvm_names
from tilewright.compat.absent import INSTEAD, LEFT_OUT, SHARES, WIDER
from tilewright.compat.arith.analyzer import Analyzer
from tilewright.compat.check.names import has
from tilewright.compat.pass_context import BUILD_CONFIG, CONFIG, DISABLED, PassContext
from tilewright.compat.relax.builder import BlockBuilder
from tilewright.compat.relax.vm import VirtualMachine
from tilewright.compat.schedules import TvmSchedule
from tilewright.compat.transforms import IDLE, PASSES
from tilewright.driver import Target
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.stages.stage import Stage
from tilewright.support.target.kinds import ATTRIBUTES
from tilewright.tir.ir_builder import IRBuilder

CLASSES: dict[str, type] = {
    "te.Schedule": StageSchedule, "te.Stage": Stage, "te.Tensor": te.Tensor, "tir.Buffer": tir.Buffer,
    "tir.Schedule": TvmSchedule, "tir.ir_builder.IRBuilder": IRBuilder, "arith.Analyzer": Analyzer,
    "runtime.Module": runtime.Module, "nd.NDArray": runtime.Tensor, "IRModule": tir.IRModule,
    "relax.BlockBuilder": BlockBuilder, "relax.VirtualMachine": VirtualMachine,
    "transform.PassContext": PassContext, "target.Target": Target,
}

_HEAD = """# TVM's names in Tilewright

Written by `python -m tilewright.compat.coverage docs/tvm.md` from the table of names in
`tilewright/compat/tvm_names.py`; a test compares the two. `tilewright tvm SCRIPT` runs a script in which `import tvm`
means `tilewright.compat.tvm`; `tilewright tvm --check SCRIPT` lists the names in it that are missing and the calls
whose arguments do not fit. How programs move is in [migration.md](migration.md).

A name that is here has TVM's meaning for code on a CPU. That says nothing of every argument: what a function does not
take, it refuses. Relay, AutoTVM, the auto-scheduler, RPC and the contributed libraries (but for `utils`, `cc`, `tar`,
`clang`, `cblas` and `graph_executor` in `tvm.contrib`) are not in the table: they are missing. `tvm.topi` is not in it
either: of its operators there are those that `dir(tvm.topi)` and `dir(tvm.topi.nn)` list, by the signatures of TVM,
as calls of [tilewright.topi](topi.md).
"""


def page() -> str:
    """The text of docs/tvm.md."""
    rows, details = [], []
    for title, here, missing in sections():
        rows.append(f"| `{title}` | {len(here)} of {len(here) + len(missing)} | {_list(missing)} |")
        if here:
            details.append(f"- `{title}`: {_list(here)}")
    parts = [_HEAD, "## Coverage\n", "| where | here | missing |", "| --- | --- | --- |", *rows, "",
             "## What to use instead\n", "| name | instead |", "| --- | --- |",
             *(f"| `{name}` | {hint} |" for name, hint in hints()), "", "## Options of old programs\n",
             "`PassContext(config={...})` takes these keys and refuses any other:\n", "| key | here |", "| --- | --- |",
             *(f"| `{key}` | {meaning} |" for key, meaning in CONFIG.items()), "",
             f"`build_config` of TVM 0.6 takes {_list(sorted(BUILD_CONFIG))}; each becomes one of the keys above.\n",
             f"`disabled_pass` takes, with or without `tir.`, {_list(sorted(n for n, o in DISABLED.items() if o))}, "
             f"which leave one of our passes out, and {_list(sorted(n for n, o in DISABLED.items() if o is None))}, "
             "which name passes that there are not here.\n", *_passes(),
             "## What stays out\n", "| what | why |", "| --- | --- |",
             *(f"| {row.what} | {row.why} |" for row in LEFT_OUT), "", *_asked(), "## Names that are here\n", *details,
             ""]
    return "\n".join(parts)


def _asked() -> Iterator[str]:
    """The section on what programs of other years stopped at."""
    yield "## What old programs asked for\n"
    yield ("Programs and tests written for TVM 0.5, 0.11 and 0.18 were run, and the messages that they stopped at were "
           "counted. For each message there are small programs in `tests/compat/forms` that make the call and check "
           "the "
           "result, and that are tests. `python -m tests.compat.names_share FILE -v` reads such a list (`## group`, "
           "then "
           "lines of a count and a message), and says how much of it works, and why the rest does not. Relay, Relax, "
           "meta-schedule and RPC are not counted.\n")
    yield from ("| programs | works | of | share |", "| --- | --- | --- | --- |")
    yield from (f"| {group} | {works} | {asked} | {works / asked:.1%} |" for group, works, asked in SHARES)
    yield ("\nWhat does not work is in the table above. A part of it are tests that expect an error of TVM's where "
           "there is "
           "none here: legality is decided by what a program computes, so that more is accepted. They count as not "
           "working, though the result is right (`tests/compat/forms/refusals.py` checks it):\n")
    yield from (f"- {what}" for what in WIDER)
    yield ""


_FORMS = {"": "any", "raw": "any, verified or not", "block": "blocks", "loop": "no blocks",
          "flat": "no blocks, one index per access"}


def _passes() -> Iterator[str]:
    """The section on passes."""
    yield "## Passes\n"
    yield ("`tvm.tir.transform.NAME()(module)` runs one of our passes on each function, in the order of your choice. "
           "Options are taken and change nothing.\n")
    yield from ("| name | functions that it takes |", "| --- | --- |")
    yield from (f"| `{name}` | {_FORMS[form]} |" for name, (_, form) in sorted(PASSES.items()))
    yield "\nThese leave the module as it is:\n"
    yield from ("| name | why |", "| --- | --- |")
    yield from (f"| `{name}` | {reason} |" for name, reason in sorted(IDLE.items()))
    yield ""


def sections() -> Iterator[tuple[str, list[str], list[str]]]:
    """(module or class, names that are here, names that are missing), in the order of the table."""
    for title, text in tvm_names.MODULES.items():
        yield title, *_parted(text, namespace.MODULES.get(title) or _module(title))
    for title, text in tvm_names.CLASSES.items():
        yield title, *_parted(text, CLASSES[title])


def hints() -> Iterator[tuple[str, str]]:
    """(name, what to use instead) of the missing names of which we know it."""
    for name, hint in sorted(INSTEAD.items()):
        parent, _, last = f"tvm.{name}".rpartition(".")
        if parent not in namespace.MODULES or not _there(namespace.MODULES[parent], last):
            yield f"tvm.{name}", hint


def _module(title: str) -> Any:
    parent, _, name = title.rpartition(".")
    home = namespace.MODULES.get(parent)
    return None if home is None else home.__dict__.get(name)


def _parted(text: str, where: Any) -> tuple[list[str], list[str]]:
    names = sorted(text.split(), key=lambda n: (n.lower(), n))
    present = [n for n in names if _there(where, n)]
    return present, [n for n in names if n not in present]


def _there(where: Any, name: str) -> bool:
    if isinstance(where, namespace.Namespace):
        return name in where.__dict__
    if isinstance(where, types.ModuleType):
        return hasattr(where, name)
    return isinstance(where, type) and (has(where, name) or (where is Target and name in ATTRIBUTES))


def _list(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def main(file: Path) -> None:
    """Write the table of TVM's names, docs/tvm.md, to FILE."""
    try:
        file.write_text(page())
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None


if __name__ == "__main__":
    main()
