"""What the façade records of each call: the loops it changed, how a loop runs, where a stage is computed."""
from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from tilewright.support.errors import ScheduleError
from tilewright.tir.expr import Expr
from tilewright.tir.iter_var import IterVar

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def call_site() -> str:
    """`file:line` of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a stage method as the user wrote it, with the place where."""
    text: str
    site: str

    def refuse(self, message: str, hint: str = "") -> NoReturn:
        raise ScheduleError(f"{self.text}: {message}", hint)


@dataclass(frozen=True, eq=False)
class Relation:
    """A change of the loops: axes became results (split, fuse), took the order of axes (reorder), or got a loop of one
    iteration, the result, around the outermost of them, which is axes (unit; none where the stage has no loop of its
    own)."""
    kind: str                               # "split", "fuse", "reorder" or "unit"
    axes: tuple[IterVar, ...]
    results: tuple[IterVar, ...]
    factors: tuple[int | None, ...]         # of a split
    call: Call


_DONE = {"vectorize": "vectorized", "parallel": "parallel", "unroll": "unrolled", "bind": "bound to a thread axis"}


@dataclass(frozen=True, eq=False)
class Mark:
    """How one loop runs: kind is vectorize, parallel, unroll or bind (then with its thread axis)."""
    kind: str
    call: Call
    thread_tag: str = ""
    thread_extent: Expr | None = None       # None: that of the loop
    thread_var: Any = None                  # of the thread axis as the user made it

    @property
    def done(self) -> str:
        """What the loop is: "it is already ..."."""
        return _DONE[self.kind]


@dataclass(frozen=True, eq=False)
class Attachment:
    """Where a stage is computed: inline, or at axis of another stage."""
    call: Call
    stage: Any = None              # None: inline
    axis: IterVar | None = None
