"""The reference page of the primitives. `python -m tests.schedule.reference` writes docs/primitives.md."""
from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import Any

from tilewright.schedule import PRIMITIVES, Schedule, Trace

PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"

INTRODUCTION = """# Schedule primitives

Written by `python -m tests.schedule.reference` from the docstrings of the functions in `tilewright/schedule/`.

`sch = tilewright.Schedule(func)` takes a function in block form; each primitive below is a method of it. It rewrites
the function, or raises `ScheduleError` and changes nothing; the message shows the call, the numbers that clash, the
function with the guilty lines marked, and a hint ([errors.md](errors.md) has every refusal). What was done is recorded
in `sch.trace`, which prints as Python, is stored as JSON, and replays on another function.

A block is given by the handle that `get_block` returned, or by its name; a loop by the handle that `get_loops`, or
the primitive that made it, returned. In the pictures the program before stands left of, or above, the arrow `->`, and
is written short: `B[i] = f(i)` stands for the block B around this statement, `grid` for nested loops. A producer of a
block writes what the block reads, a consumer reads what it writes. A block's iteration variables (iter vars) are data-
parallel (spatial), of a reduction, ordered or opaque; the loops around it drive them: they occur in their values.
Loops are serial until they are made parallel, vectorized, unrolled or bound to GPU threads.
"""

FAMILIES: dict[str, tuple[str, ...]] = {
    "Handles of blocks and loops": (
        "get_block", "get_blocks", "get_loops", "get_child_blocks", "get_output_blocks", "get_producers",
        "get_consumers"),
    "Loops": ("split", "fuse", "reorder", "loop_partition", "merge", "add_unit_loop"),
    "How loops run": ("parallel", "vectorize", "unroll", "bind", "prefetch", "annotate", "unannotate"),
    "Where blocks are computed": ("compute_at", "reverse_compute_at", "compute_inline", "reverse_compute_inline"),
    "Reductions": ("decompose_reduction", "rfactor"),
    "Copies of buffers": (
        "cache_read", "cache_write", "read_at", "write_at", "cache_inplace", "cache_index", "reindex",
        "reindex_cache_read", "reindex_cache_write"),
    "Memory of buffers": ("set_scope", "transform_layout", "storage_align", "set_axis_separator", "rolling_buffer",
                          "unsafe_set_dtype"),
    "Iterations of blocks": (
        "reorder_block_iter_var", "transform_block_layout", "decompose_padding", "pad_einsum"),
    "Tensor intrinsics": ("blockize", "tensorize"),
    "Random choices, and the trace": (
        "sample_categorical", "sample_perfect_tile", "sample_partitioned_tile", "sample_compute_location",
        "enter_postproc"),
}

# What is no primitive: (heading, name in the calls, class, members).
OTHERS = (
    ("Methods that are not recorded", "sch", Schedule, (
        "mod", "func", "get", "copy", "show", "work_on", "enter", "exit", "seed", "fork_seed", "remove_rv")),
    ("The trace", "sch.trace", Trace, (
        "as_python", "show", "as_json", "from_json", "apply_to_schedule", "apply_json_to_schedule", "simplified",
        "with_decision", "get_decision", "insts", "decisions", "copy", "append", "pop")),
)


def signature(name: str, fn: Any, owner: str = "sch") -> str:
    """The call as it is written on owner, without annotations; properties without parentheses."""
    if isinstance(fn, property):
        return f"{owner}.{name}"
    inner = inspect.unwrap(fn)
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(inner).parameters.values()]
    if parameters and parameters[0].name in ("self", "sch"):
        return f"{owner}.{name}({', '.join(map(str, parameters[1:]))})"
    return f"Trace.{name}({', '.join(map(str, parameters))})"


def documentation(fn: Any) -> str:
    """The docstring without the indentation of a function's body; pictures keep theirs."""
    first, _, rest = (inspect.unwrap(fn).__doc__ or "").partition("\n")
    lines = [line.removeprefix("    ") for line in rest.splitlines()]
    return "\n".join([first, *lines]).rstrip()


def section(name: str) -> str:
    """Signature and docstring of a primitive; indented parts of the docstring become code."""
    parts = [f"### {name}", f"```python\n{signature(name, PRIMITIVES[name])}\n```"]
    for paragraph in documentation(PRIMITIVES[name]).split("\n\n"):
        if paragraph.startswith("    "):
            picture = textwrap.dedent(_without_indent(paragraph))
            previous = parts[-1]
            if previous.startswith("```\n"):
                parts[-1] = f"{previous[:-4]}\n\n{picture}\n```"
            else:
                parts.append(f"```\n{picture}\n```")
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)


def _without_indent(paragraph: str) -> str:
    """The picture with its arrow, which stands at the margin of the docstring, among the code."""
    return "\n".join(line if line.startswith("    ") or not line else f"    {line}" for line in paragraph.splitlines())


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring up to its first full stop or semicolon."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


def contents() -> str:
    """A line per family, with links to its primitives."""
    rows = ["| family | primitives |", "| --- | --- |"]
    rows += [f"| {title} | {', '.join(f'[{name}](#{name})' for name in names)} |" for title, names in FAMILIES.items()]
    return "\n".join(rows)


def others(heading: str, owner: str, kind: type, names: tuple[str, ...]) -> str:
    """A table of the members of a class that users call."""
    rows = [f"## {heading}\n", "| call | meaning |", "| --- | --- |"]
    for name in names:
        fn = inspect.getattr_static(kind, name)
        fn = fn.__func__ if isinstance(fn, staticmethod) else fn
        text = inspect.getdoc(fn) or ""
        rows.append(f"| `{signature(name, fn, owner)}` | {first_sentence(text).replace('|', '&#124;')} |")
    return "\n".join(rows)


def page() -> str:
    parts = [INTRODUCTION, contents()]
    for title, names in FAMILIES.items():
        parts.append(f"## {title}")
        parts += [section(name) for name in names]
    parts += [others(*row) for row in OTHERS]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(PRIMITIVES)} primitives")
