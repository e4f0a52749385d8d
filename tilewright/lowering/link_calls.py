"""Calls between the functions of a module: what is called stands where it is called."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.lowering.copying import Copier
from tilewright.lowering.outline import inline_regions
from tilewright.lowering.passes import SIMPLE_PASSES
from tilewright.support.errors import LowerError, described
from tilewright.support.registry import register_hook
from tilewright.tir.accesses import uses_below
from tilewright.tir.buffer import Buffer, Load, numel, pointer_layout
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, IntImm, Let, StringImm, Var
from tilewright.tir.node import Node, map_children, rewrite, walk
from tilewright.tir.returns import is_return, result_dtype
from tilewright.tir.stmt import Allocate, Evaluate, LetStmt, PrimFunc, Seq, Stmt, Store, seq
from tilewright.tir.symbols import expressions

CALL = "call_function"
_TO_LOOPS = tuple(itertools.takewhile(lambda p: p.name != "flatten_buffers", SIMPLE_PASSES))


@register_hook("tir.link")
def link(functions: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of a module, none of which calls another: the loops of what one calls stand in it.

    Raises LowerError for a function that there is not, that calls itself, or whose arguments do not fit.
    """
    functions, done = inline_regions(functions), {}

    def linked(name: str, callers: tuple[str, ...]) -> Any:
        if name in callers:
            raise LowerError(f"function {name} calls itself: {' -> '.join((*callers, name))}")
        func = functions[name]
        if name not in done:
            done[name] = _Linker(name, functions, lambda other: linked(other, (*callers, name))).function(func) \
                if isinstance(func, PrimFunc) and _calls(func.body) else func
        return done[name]

    return {name: linked(name, ()) for name in functions}


def _calls(node: Node) -> bool:
    return any(isinstance(n, Call) and n.op == CALL for n in walk(node))


class _Linker:
    """Puts what one function calls into it."""

    def __init__(self, name: str, functions: Mapping[str, Any], linked: Callable[[str], PrimFunc]) -> None:
        self.name, self.functions, self.linked = name, functions, linked
        self.written: set[Var] = set()                  # the memory that the calls of the statement at hand write

    def function(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(rewrite(self.stmt(func.body), lambda n: seq(n.stmts) if isinstance(n, Seq) else None))

    def stmt(self, s: Any) -> Any:
        """s with the calls in it, outermost statements first, replaced."""
        if not _calls(s):
            return s
        if isinstance(s, (Evaluate, Store)) or isinstance(s, LetStmt) and _calls(s.value):
            return self.statement(s)
        own = [c for c in expressions(s) if _calls(c)]
        if own:
            raise LowerError(f"{self.name}: a function is called in {own[0]}, a bound or condition",
                             "assign its result to a variable before")
        return map_children(s, lambda child: self.stmt(child) if isinstance(child, Stmt) else child)

    def statement(self, s: Evaluate | Store | LetStmt) -> Stmt:
        """A statement whose values call functions: these run before it, and leave their results in memory.

        Refuses one that also reads what these write: of an expression nothing says what is evaluated first.
        """
        cells: list[Allocate] = []
        called = s.value if isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == CALL else None
        values = called.args if called is not None else [s.value, *s.indices] if isinstance(s, Store) else [s.value]
        self.written.clear()
        new = [self.value(v, cells) for v in values]
        read = next((n for v in new if not _is_pointer(v) for n in walk(v)
                     if isinstance(n, Load) and n.buffer.data in self.written), None)
        if read is not None:
            raise LowerError(f"{self.name}: a statement reads {read}, and calls a function that writes "
                             f"{read.buffer.name}", "assign the result to a variable before")
        if called is not None:
            done = self.call(called.replace(args=tuple(new)), None)
        elif isinstance(s, Store):
            done = s.replace(value=new[0], indices=tuple(new[1:]))
        elif isinstance(s, LetStmt):
            done = s.replace(value=new[0], body=self.stmt(s.body))
        else:
            done = s.replace(value=new[0])
        return self.around(cells, done)

    def around(self, cells: list[Allocate], last: Stmt) -> Stmt:
        """The results, what fills each, and then the last statement."""
        for cell in reversed(cells):
            last = cell.replace(body=seq([cell.body, last]))
        return last

    def value(self, e: Expr, cells: list[Allocate]) -> Expr:
        """e with calls replaced by their results; what makes these is added to cells."""
        if not _calls(e):
            return e
        if any(map(_calls, _not_always(e))):
            raise LowerError(f"{self.name}: a function is called within {e}", "assign its result to a variable before")
        new: Expr = map_children(e, lambda child: self.value(child, cells))     # type: ignore[arg-type]
        if not isinstance(new, Call) or new.op != CALL:
            return new
        cell = Buffer("result", (IntImm(1),), new.dtype, scope="local")
        cells.append(Allocate(cell, self.call(new, cell)))
        return Load(cell, (IntImm(0),))

    def call(self, e: Call, cell: Buffer | None) -> Stmt:
        """The statements of the function that e calls; its result goes to cell."""
        callee = self.callee(e)
        given = dict(zip(callee.params, e.args[1:], strict=True))
        variables: dict[Var, Expr] = {}
        bound: list[tuple[Var, Expr]] = []
        buffers: dict[Buffer, Buffer] = {}
        for p, x in given.items():
            buffer = callee.buffer_map.get(p)
            if buffer is None:
                if x.dtype != p.dtype:
                    raise LowerError(f"{self.name}: {_name(e)} takes {p.name} as {p.dtype}, {x.dtype} is given")
                plain = isinstance(x, (IntImm, FloatImm, StringImm, Var))
                if plain:
                    variables[p] = x
                else:                                               # worked out before the call, and once
                    variables[p] = kept = Var(p.name, p.dtype)
                    bound.append((kept, x))
            else:
                alias = self.memory(e, buffer, x)
                buffers[buffer] = alias
                variables[buffer.data] = alias.data
        views = {n.buffer for n in walk(callee.body) if isinstance(n, (Load, Store))} - buffers.keys()
        buffers |= {b: b.replace(data=variables[b.data]) for b in views if b.data in variables}
        stated = result_dtype(callee)
        if cell is not None and stated != cell.dtype:
            raise LowerError(f"{self.name}: {_name(e)} gives {stated or 'nothing'}, {cell.dtype} is expected")
        stored = {use.buffer.data for use in uses_below(callee.body) if use.writes and use.buffer is not None}
        self.written |= {b.data for a, b in buffers.items() if a.data in stored}
        body = Copier(variables, buffers, fresh=True)(callee.body)
        out = rewrite(body, lambda n: _kept(n, cell) if is_return(n) else None)
        for var, value in reversed(bound):
            out = LetStmt(var, value, out)
        return out

    def callee(self, e: Call) -> PrimFunc:
        """The function that e calls, in the form of loops."""
        name = _name(e)
        if not isinstance(self.functions.get(name), PrimFunc):
            raise LowerError(f"{self.name} calls {name or described(e)}, which the module does not have",
                             f"its functions are {', '.join(self.functions)}")
        func = self.linked(name)
        if len(func.params) != len(e.args) - 1:
            raise LowerError(f"{self.name} calls {name} with {len(e.args) - 1} arguments, it takes {len(func.params)}")
        for p in _TO_LOOPS:
            func = p.run(func)
        known = {*func.params, *(n for b in func.buffers for n in (b.data,))}
        free = next((n for b in func.buffers for d in (*b.shape, *b.strides, b.elem_offset) if d is not None
                     for n in walk(d) if isinstance(n, Var) and n not in known), None)
        if free is not None:
            raise LowerError(f"{self.name} calls {name}, which takes {free.name} from the shape of an "
                             "argument", "make it a parameter")
        return func

    def memory(self, e: Call, wanted: Buffer, x: Expr) -> Buffer:
        """The callee's buffer in the memory that x, a pointer to the start of a buffer, leads to."""
        first = x.args[0] if _is_pointer(x) else None                   # type: ignore[attr-defined]
        starts = first is not None and all(isinstance(i, IntImm) and i.value == 0 for i in first.indices)
        if first is None or not starts or pointer_layout(x)[1] is not None or wanted.strides:     # type: ignore[arg-type]
            raise LowerError(f"{self.name}: {_name(e)} takes the memory of {wanted.name}, {x} is given",
                             "pass a buffer as a whole: A.data")
        have, need = numel(first.buffer), numel(wanted)
        if isinstance(have, IntImm) and isinstance(need, IntImm) and have.value < need.value:
            raise LowerError(f"{self.name}: {_name(e)} takes {wanted.name} of {need} elements, {first.buffer.name} "
                             f"has {have}")
        if first.buffer.dtype != wanted.dtype:
            raise LowerError(f"{self.name}: {_name(e)} takes {wanted.name} of {wanted.dtype}, {first.buffer.name} is "
                             f"{first.buffer.dtype}")
        return wanted.replace(data=first.buffer.data, scope=first.buffer.scope)


def _is_pointer(x: Expr) -> bool:
    """True for the address of an element."""
    return isinstance(x, Call) and x.op == "access_ptr" and isinstance(x.args[0], Load)


def _name(e: Call) -> str:
    """The name of the function that e calls; "" where it has none."""
    return e.args[0].value if e.args and isinstance(e.args[0], StringImm) else ""


def _not_always(e: Expr) -> tuple[Expr, ...]:
    """The operands of e that are evaluated under a condition, or with a variable that e binds."""
    match e:
        case Call(op="if_then_else", args=(_, a, b)):
            return a, b
        case Binary(op="and" | "or", b=b):
            return (b,)
        case Let(body=body):
            return (body,)
    return ()


def _kept(s: Any, cell: Buffer | None) -> Stmt:
    """What stands for T.ret."""
    value = s.value.args[0]
    return Seq(()) if cell is None else Store(cell, cast(cell.dtype, value), (IntImm(0),))
