"""The state of printing one function, and the tables through which the families of printers are found."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from tilewright.codegen.c.unit import Unit
from tilewright.support.errors import CodegenError, with_hint
from tilewright.support.names import NameSupply, identifier
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, Var
from tilewright.tir.stmt import Stmt

F = TypeVar("F", bound=Callable[..., Any])


class Text(NamedTuple):
    """An expression of C and how tightly its outermost operator binds."""
    text: str
    level: int = 20


PRIMARY, UNARY, PRODUCT, SUM, SHIFT, ORDER, EQUALITY, BITAND, BITXOR, BITOR, AND, OR, CHOICE = range(20, 7, -1)
EXPRESSIONS: dict[type, Callable[[Printer, Any], Text]] = {}
STATEMENTS: dict[type, Callable[[Printer, Any], None]] = {}
CALLS: dict[str, Callable[[Printer, Any], Text]] = {}


def prints(table: dict[Any, Any], *keys: Any) -> Callable[[F], F]:
    """Decorator: the function prints nodes of these types (or calls of these names)."""
    def keep(fn: F) -> F:
        table.update((key, fn) for key in keys)
        return fn
    return keep


class Printer:
    """Prints expressions and statements of one flat PrimFunc as one C function.

    `names` holds the C name of each Var, `wide` those that are int64_t whatever their dtype: loop variables. `held`
    are the addresses that tw_free gets before the function returns.
    """

    def __init__(self, unit: Unit, function: str) -> None:
        self.unit, self.name = unit, function
        self.lines: list[str] = []
        self.indent = 1
        self.supply = NameSupply()
        self.names: dict[Var, str] = {}
        self.wide: set[Var] = set()
        self.buffers: dict[Var, Buffer] = {}
        self.natural: dict[Var, int] = {}
        self.held: list[str] = []
        self.result = ""                          # where the value that the function returns goes
        self.restrict = "restrict "               # of pointers to buffers
        self.stack_bytes = 0
        self.in_parallel = False                  # it runs on several threads at once

    def line(self, text: str) -> None:
        """A line of the function at the present depth."""
        self.lines.append(f"{'    ' * self.indent}{text}" if text else "")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """head and braces around what is printed inside."""
        self.line(f"{head} {{".strip())
        self.indent += 1
        yield
        self.indent -= 1
        self.line(tail)

    def fresh(self, name: str) -> str:
        """A C name like `name` that nothing else has in this function."""
        return self.supply.fresh(self.unit.legal(identifier(name)))

    def bind(self, var: Var, wide: bool = False, name: str = "") -> str:
        """The C name of a variable that begins here, like `name` if one is given."""
        self.names[var] = self.fresh(name or var.name)
        if wide:
            self.wide.add(var)
        return self.names[var]

    def text(self, e: Expr) -> Text:
        """The expression of C for e."""
        rule = EXPRESSIONS.get(type(e))
        if rule is None:
            raise CodegenError(f"{self.name}: an expression of type {type(e).__name__} has no form in C: {e}")
        return rule(self, e)

    def at(self, e: Expr, level: int = CHOICE) -> str:
        """e as an operand of an operator that binds like level."""
        return within(self.text(e), level)

    def expr(self, e: Expr) -> str:
        """e where anything may stand: an argument, the right side of an assignment."""
        return self.text(e).text

    def stmt(self, s: Stmt) -> None:
        """Print the statement."""
        rule = STATEMENTS.get(type(s))
        if rule is None:
            raise CodegenError(with_hint(f"{self.name}: a statement of type {type(s).__name__} has no form in C",
                                         "lower the function first: tilewright.lowering(func)"))
        rule(self, s)


def within(t: Text, level: int) -> str:
    """A text as an operand of an operator that binds like level."""
    return t.text if t.level >= level else f"({t.text})"


def call(name: str, *arguments: str) -> Text:
    return Text(f"{name}({', '.join(arguments)})")
