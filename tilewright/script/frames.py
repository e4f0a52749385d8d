"""What a function and its blocks collect while their bodies are parsed."""
from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewright.tir.buffer import Buffer, BufferRegion, MatchBuffer
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.iter_var import IterVar
from tilewright.tir.stmt import Stmt


@dataclass
class BlockFrame:
    """The parts of a block that are not its body. The function itself has one: the root block's.

    nested: how many loops and branches of the block stand around the statement that is parsed.
    """
    name: str
    iter_vars: list[IterVar] = field(default_factory=list)
    values: list[Expr] = field(default_factory=list)
    predicate: Expr = field(default_factory=lambda: IntImm(1, "bool"))
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    init: Stmt | None = None
    allocated: list[Buffer] = field(default_factory=list)
    matched: list[MatchBuffer] = field(default_factory=list)
    annotations: dict[str, Any] = field(default_factory=dict)
    nested: int = 0

    @property
    def says_something(self) -> bool:
        """True when a function's own frame has parts that only a root block can have."""
        return bool(self.allocated or self.matched or self.annotations or self.reads or self.writes)


@dataclass(frozen=True)
class Around:
    """A statement whose body is all that follows it in its suite: `x = e`, `b = T.decl_buffer(...)`."""
    wrap: Callable[[Stmt], Stmt]
    node: ast.AST
