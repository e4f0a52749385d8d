"""The reference page of the stage primitives. `python -m tests.schedule.stage_reference` writes docs/stages.md."""
from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tilewright as tw
from tests.schedule.reference import documentation, first_sentence, signature
from tests.wrong_uses import scans, stage_primitives, stages
from tests.wrong_uses.table import line, texts
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.stages.stage import Stage

PAGE = Path(__file__).parents[2] / "docs" / "stages.md"

INTRODUCTION = """# Stage primitives

Written by `python -m tests.schedule.stage_reference` from the docstrings of the methods in
`tilewright/schedule/stages/`; the loops below are what the calls above them make.

`s = te.create_schedule(C.op)` has a stage for C and for everything that C needs, and `s[B]` is that of the tensor B. A
stage has one loop for each axis of its operation, `s[B].op.axis`, then for each axis of its reduction,
`s[B].op.reduce_axis`. Calls change these loops, say how they run, and where the stage is computed; calls for different
stages may come in any order. A wrong call raises `ScheduleError` with the call and a hint, and changes nothing. What
can only be seen when all has been said, as whether iterations that are to run in parallel touch the same element, is
checked where the schedule is used (`tw.lower`, `tw.build`, `s.replay(args)`): every call becomes primitives of the
[block schedule](primitives.md), whose conditions hold, and the error names the line of the call.

`print(s)` shows the stages and their loops; `tw.lower(s, [A, C], simple_mode=True)` the code, as below.
`s.replay([A, C])` is the block schedule, for what stages do not say.
"""

PROGRAMS = {
    "scale": """A = te.placeholder((20,), name="A")
C = te.compute((20,), lambda i: A[i] * 2.0, name="C")
""",
    "chain": """A = te.placeholder((16, 32), name="A")
B = te.compute((16, 32), lambda i, j: A[i, j] * 2.0, name="B")
C = te.compute((16, 32), lambda i, j: B[i, j] + 1.0, name="C")
""",
    "blur": """A = te.placeholder((66,), name="A")
B = te.compute((66,), lambda i: A[i] * 2.0, name="B")
C = te.compute((64,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
""",
    "sums": """A = te.placeholder((16, 32), name="A")
k = te.reduce_axis((0, 32), name="k")
C = te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="C")
""",
    "tiles": """A = te.placeholder((16, 32), name="A")
C = te.compute((16, 32), lambda i, j: A[i, j] * 2.0, name="C")
def double():
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] * 2.0, name="y")
    def emit(ins, outs):
        return outs[0].vstore(0, ins[0].vload(0, "float32x8") * tir.Broadcast(tir.const(2.0, "float32"), 8))
    return te.decl_tensor_intrin(y.op, emit, name="double8")
""",
}


@dataclass(frozen=True)
class Example:
    """calls on the schedule s of a program; before: what was said earlier. full: with what simple_mode leaves out."""
    program: str
    calls: str
    before: str = ""
    full: bool = False


EXAMPLES = {
    "split": Example("scale", "io, ii = s[C].split(C.op.axis[0], factor=8)"),
    "tile": Example("chain", "io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 8)", "s[B].compute_inline()"),
    "fuse": Example("chain", "f = s[C].fuse(C.op.axis[0], C.op.axis[1])", "s[B].compute_inline()"),
    "reorder": Example("chain", "s[C].reorder(C.op.axis[1], C.op.axis[0])", "s[B].compute_inline()"),
    "vectorize": Example("scale", "s[C].vectorize(ii)", "io, ii = s[C].split(C.op.axis[0], factor=4)"),
    "parallel": Example("scale", "s[C].parallel(C.op.axis[0])"),
    "unroll": Example("scale", "s[C].unroll(ii)", "io, ii = s[C].split(C.op.axis[0], factor=2)", full=True),
    "bind": Example("scale", 's[C].bind(io, te.thread_axis("blockIdx.x"))\n'
                             's[C].bind(ii, te.thread_axis("threadIdx.x"))',
                    "io, ii = s[C].split(C.op.axis[0], factor=4)"),
    "pragma": Example("scale", 's[C].pragma(C.op.axis[0], "auto_unroll_max_step", 32)'),
    "prefetch": Example("scale", "s[C].prefetch(A, C.op.axis[0], 8)", full=True),
    "tensorize": Example("tiles", "s[C].tensorize(ji, double())", "jo, ji = s[C].split(C.op.axis[1], factor=8)"),
    "compute_at": Example("chain", "s[B].compute_at(s[C], C.op.axis[0])"),
    "compute_inline": Example("chain", "s[B].compute_inline()"),
    "compute_root": Example("chain", "s[B].compute_root()", "s[B].compute_at(s[C], C.op.axis[0])"),
    "create_group": Example("chain", "g = s.create_group(outputs=B, inputs=A)\ng.compute_at(s[C], C.op.axis[0])"),
    "set_scope": Example("chain", 's[B].set_scope("local")', "s[B].compute_at(s[C], C.op.axis[0])"),
    "storage_align": Example("chain", "s[B].storage_align(B.op.axis[0], 32, 1)", full=True),
    "double_buffer": Example("chain", "s[B].double_buffer()", "s[B].compute_at(s[C], C.op.axis[0])", full=True),
    "rolling_buffer": Example("blur", "s[B].rolling_buffer()",
                              "io, ii = s[C].split(C.op.axis[0], factor=4)\ns[B].compute_at(s[C], io)"),
    "transform_layout": Example("chain", "s[B].transform_layout(lambda i, j: (j, i))"),
    "set_store_predicate": Example("sums", "s[C].set_store_predicate(tx.var.equal(0))",
                                   'tx = te.thread_axis("threadIdx.x")\ns[C].bind(C.op.reduce_axis[0], tx)'),
    "env_threads": Example("scale", "s[C].env_threads([bx])",
                           'bx = te.thread_axis("blockIdx.x")\ns[C].bind(C.op.axis[0], bx)'),
    "cache_read": Example("chain", 'AA = s.cache_read(A, "local", [B])'),
    "cache_write": Example("sums", 'CC = s.cache_write(C, "local")'),
    "rfactor": Example("sums", "CF = s.rfactor(C, ki)", "ko, ki = s[C].split(C.op.reduce_axis[0], factor=8)"),
}

FAMILIES: dict[str, tuple[str, ...]] = {
    "Loops": ("split", "tile", "fuse", "reorder"),
    "How loops run": ("vectorize", "parallel", "unroll", "bind", "pragma", "prefetch", "tensorize"),
    "Where a stage is computed": ("compute_at", "compute_inline", "compute_root", "create_group"),
    "Copies and parts": ("cache_read", "cache_write", "rfactor"),
    "Memory of a stage": ("set_scope", "storage_align", "double_buffer", "rolling_buffer", "transform_layout"),
    "Threads of a GPU": ("set_store_predicate", "env_threads"),
}
# What is no primitive: for programs that look at schedules, in tables.
OTHERS = (
    ("Other members of a stage", "s[C]", Stage, (
        "op", "leaf_iter_vars", "all_iter_vars", "is_inlined", "is_scheduled", "may_inline", "attach_stage",
        "attach_ivar")),
    ("Other members of the schedule", "s", StageSchedule, (
        "stages", "outputs", "replay", "fingerprint", "normalize", "inputs_of", "needs", "topological", "owner_of",
        "attached_at")),
)
# Attributes that are set in __init__, and what stands in for a docstring.
PLAIN = {"op": "The operation that the stage computes; after cache_write, the copy.", "stages": "All stages, producers "
         "first.", "outputs": "The operations that create_schedule was given.",
         "is_inlined": "True when the stage is computed where it is read."}


def owner(name: str) -> tuple[str, Any]:
    """How the owner of a method is written, and its class."""
    return ("s", StageSchedule) if hasattr(StageSchedule, name) else ("s[C]", Stage)


def start(program: str) -> dict[str, Any]:
    """The names of a program, with its schedule s."""
    names: dict[str, Any] = {}
    exec("import tilewright as tw\nfrom tilewright import te, tir\n" + PROGRAMS[program]
         + "s = te.create_schedule(C.op)\n", names)
    return names


def code(names: dict[str, Any], full: bool) -> str:
    """The loops of the schedule, without the head of the function; a flat buffer goes by the name of its parameter."""
    func = tw.lower(names["s"], [names["A"], names["C"]], simple_mode=not full)["default_function"]
    lines = [line.removeprefix("    ") for line in str(func).splitlines() if line.startswith("    ")]
    aliases = [m[1] for line in lines if (m := re.match(r"(\w+)_1 = T\.Buffer\(.*data=\1\.data", line))]
    kept = [line for line in lines if not re.match(r"(\w+_1 = T\.Buffer\(|T\.func_attr)", line)]
    text = "\n".join(kept)
    for name in aliases:
        text = re.sub(rf"\b{name}_1\b", name, text)
    return text


def steps(example: Example) -> Iterator[str]:
    """The loops before the calls of the example, and after them."""
    names = start(example.program)
    exec(example.before, names)
    yield code(names, example.full)
    exec(example.calls, names)
    yield code(names, example.full)


@functools.cache
def refusals() -> dict[str, list[tuple[str, str]]]:
    """Wrong uses by the method that refuses: (wrong use, message)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in (stages.SECTION, scans.SECTION, stage_primitives.SECTION):
        for row in section.rows:
            if not re.match(r"s(\\\[\w+\\\])?\\\.|.*s\\\[", row.pattern):
                continue
            _, message, hint = texts(row)
            match = re.search(r"\bs(?:\[[\w.]+\])?\.(\w+)[(:]", message)
            if match:
                text = re.sub(r"(?<! at) \w+\.py:LINE\)", " (FILE:LINE)", message)
                found.setdefault(match[1], []).append((row.title, re.sub(r"\w+\.py:LINE", "FILE:LINE", text)))
    return found


def section(name: str) -> str:
    """Signature, docstring, picture and refusals of a method."""
    how, kind = owner(name)
    fn = getattr(kind, name)
    example = EXAMPLES[name]
    before, after = steps(example)
    parts = [f"### {name}", f"```python\n{signature(name, fn, how)}\n```", unindented(documentation(fn))]
    calls = "\n".join(filter(None, [example.before, f"{example.calls}  # <--"]))
    parts += [f"Of `{example.program}`:\n\n```python\n{calls}\n```", f"```\n{before}\n```"]
    parts += ["becomes", f"```\n{after}\n```"] if before != after else ["which stays as it is: nothing is recorded."]
    rows = refusals().get(name, [])
    if rows:
        table = ["| refused | message |", "| --- | --- |"]
        parts.append("\n".join([*table, *(line(*row) for row in rows)]))
    return "\n\n".join(parts)


def unindented(text: str) -> str:
    """A docstring of a method: its lines stand one level deeper than those of a function."""
    return "\n".join(line.removeprefix("    ") for line in text.splitlines())


def others(heading: str, how: str, kind: type, names: tuple[str, ...]) -> str:
    rows = [f"## {heading}\n", "| call | meaning |", "| --- | --- |"]
    for name in names:
        fn = getattr(kind, name, None)
        call = signature(name, fn, how) if callable(fn) else f"{how}.{name}"
        text = PLAIN.get(name) or first_sentence(getattr(fn, "__doc__", None) or "")
        rows.append(f"| `{call}` | {text} |")
    return "\n".join(rows)


def page() -> str:
    parts = [INTRODUCTION, "## The programs of the pictures"]
    parts += [f"`{name}`\n\n```python\n{text.strip()}\n```" for name, text in PROGRAMS.items()]
    rows = ["| family | calls |", "| --- | --- |"]
    rows += [f"| {title} | {', '.join(f'[{name}](#{name})' for name in names)} |" for title, names in FAMILIES.items()]
    parts.insert(1, "\n".join(rows))
    for title, names in FAMILIES.items():
        parts.append(f"## {title}")
        parts += [section(name) for name in names]
    parts += [others(*row) for row in OTHERS]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {sum(map(len, FAMILIES.values()))} calls")
