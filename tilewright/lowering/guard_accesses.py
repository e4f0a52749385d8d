"""Accesses at indices from data: each asks whether its element exists, and is left out where it does not."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.lowering.affine import as_ramp
from tilewright.lowering.messages import dimension_message, escaped, message
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, binary, if_then_else, logical_not
from tilewright.tir.buffer import Buffer, Load, numel
from tilewright.tir.conversion import const
from tilewright.tir.expr import Binary, Broadcast, Call, Expr, IntImm, Let, Ramp, Select, StringImm, Var
from tilewright.tir.node import Node, children, map_children, rewrite, walk
from tilewright.tir.stmt import IfThenElse, LetStmt, PrimFunc, Stmt, Store, While

Check = tuple[Expr, Expr, StringImm]             # of an index, the extent, the message
_OUTSIDE = ("call_extern", "call_packed")        # functions whose results are data
_ADDRESSES = ("access_ptr", "prefetch")          # take the place of an element, which is not touched
_PLAIN = (IntImm, Var)


def guard_accesses(func: PrimFunc) -> PrimFunc:
    """Accesses happen only where their elements exist and their values are asked for.

    - A scalar read at an index from data is if_then_else(inside(...), A[i], 0), a store stands under `if inside(...)`.
    - Vector accesses have `inside` in their predicates; neighbours that have none are read all or not at all.
    - A choice on vectors is a Select whose sides read in their own lanes.
    - A While ends once something was found outside: what it reads may never satisfy its condition.

    No `checked_index` is left. Expects flat functions.
    """
    if not _asks(func.body):
        return func
    return func.with_body(rewrite(_Guarding(func.name)(func.body), _unchecked))


def _asks(body: Stmt) -> bool:
    """False for most functions, quickly: no index is from data, no choice is one of lanes."""
    for n in walk(body):
        match n:
            case Load(indices=indices) | Store(indices=indices):
                if any(type(i) not in _PLAIN and any(type(m) is Load for m in walk(i)) for i in indices):
                    return True
            case Let(value=value) | LetStmt(value=value):
                if any(type(m) in (Load, Call) for m in walk(value)):
                    return True
            case Call(op=op, args=args):
                if op in ("checked_index", *_OUTSIDE) or op == "if_then_else" and dt.lanes_of(args[0].dtype) > 1:
                    return True
    return False


def _unchecked(n: Node) -> Node | None:
    return n.args[0] if isinstance(n, Call) and n.op == "checked_index" else None


def _checked(at: Expr) -> list[Call]:
    """Every `checked_index` in an index, each once, inner ones first, those of nested reads left to these."""
    found: dict[int, Call] = {}

    def visit(e: Node) -> None:
        if id(e) not in found and not isinstance(e, Load):
            for c in children(e):
                visit(c)
            if isinstance(e, Call) and e.op == "checked_index":
                found[id(e)] = e
    visit(at)
    return list(found.values())


class _Guarding:
    """`dependent`: variables whose values are from data; `mask`: the lanes whose values are asked for."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.dependent: set[Var] = set()
        self.mask: Expr | None = None
        self.known: dict[tuple[int, int], tuple[Any, Any, Any]] = {}     # expressions that are shared stay shared

    def __call__(self, n: Any) -> Any:
        if isinstance(n, Stmt):                          # each copy of one has variables of its own
            return self.visit(n)
        key = id(n), id(self.mask)
        if key not in self.known:
            self.known[key] = n, self.mask, self.visit(n)
        return self.known[key][2]

    def visit(self, n: Node) -> Node:
        match n:
            case Load():
                return self.load(n)
            case Store():
                return self.store(n)
            case Call(op="if_then_else", args=(test, a, b)) if dt.lanes_of(test.dtype) > 1:
                lanes = self(test)
                return Select(lanes, self.within(lanes, a), self.within(logical_not(lanes), b))
            case Call() if n.op in _ADDRESSES and n.args and isinstance(n.args[0], Load):
                return n.replace(args=(map_children(n.args[0], self), *map(self, n.args[1:])))
            case Let(var, value) | LetStmt(var, value) if self.from_data(value):
                self.dependent.add(var)
            case While():
                new = map_children(n, self)
                if any(isinstance(m, Call) and m.op in ("inside", "call_packed") for m in walk(new)):
                    return new.replace(condition=binary("and", new.condition, Call("no_fault", (), "bool")))
                return new
        return map_children(n, self)

    def within(self, lanes: Expr, e: Expr) -> Expr:
        """e, of which only these lanes are asked for."""
        before, self.mask = self.mask, self.joined(lanes)
        out: Expr = self(e)
        self.mask = before
        return out

    def joined(self, predicate: Expr | None) -> Expr | None:
        if self.mask is None or predicate is None:
            return self.mask if predicate is None else predicate
        return Binary("and", predicate, self.mask)

    def from_data(self, e: Expr, unchecked: bool = False) -> bool:
        """True when e has a value that is read or of unknown code. unchecked: outside of what `checked_index` holds."""
        stack: list[Any] = [e]
        while stack:
            n = stack.pop()
            if isinstance(n, Call) and n.op == "checked_index":
                if not unchecked:
                    return True
                continue
            if isinstance(n, Load) or n in self.dependent or isinstance(n, Call) and n.op in _OUTSIDE:
                return True
            stack += children(n)
        return False

    def load(self, e: Load) -> Expr:
        new = map_children(e, self)
        lanes = dt.lanes_of(e.dtype)
        if self.mask is not None and lanes == dt.lanes_of(self.mask.dtype):
            new = new.replace(predicate=self.joined(new.predicate))
        if not any(map(self.from_data, e.indices)):
            return self.read(new, [])
        index, lets, checks = self.index(e.buffer, e.indices[0], new.indices[0])
        out = self.checked_read(new.replace(indices=(index,)), checks)
        for var, value in reversed(lets):
            out = Let(var, value, out)
        return out

    def checked_read(self, e: Load, checks: list[Check]) -> Expr:
        """e under the checks: of scalars, or of the ends of neighbours, where these and no lanes are at hand."""
        index, lanes = e.indices[0], dt.lanes_of(e.dtype)
        if lanes == 1:
            return self.read(e, checks)
        ramp = as_ramp(index)
        outer = [(_first(i), n, text) for i, n, text in checks if i is not index]
        if e.predicate is not None or ramp is None or any(dt.lanes_of(i.dtype) > 1 for i, _, _ in outer):
            return e.replace(predicate=_predicate(e.predicate, lanes, checks))
        _, size, text = checks[-1]
        if isinstance(ramp, Broadcast):
            ends, e = [ramp.value], Load(e.buffer, (ramp.value,))
        else:
            ends = [ramp.base, binary("add", ramp.base, binary("mul", ramp.stride, lanes - 1))]
        read = self.read(e, outer + [(at, size, text) for at in ends if len(outer) < len(checks)])
        return Broadcast(read, lanes) if isinstance(ramp, Broadcast) else read

    def read(self, e: Load, checks: list[Check]) -> Expr:
        """e where the checks hold, and where some lane is asked for; else 0."""
        conditions: list[Expr] = [_inside(IntImm(1, "bool"), *c) for c in checks]
        if self.mask is not None and dt.lanes_of(e.dtype) == 1:
            conditions.insert(0, Call("some", (self.mask,), "bool"))
        return if_then_else(all_of(*conditions), e, const(0, e.dtype)) if conditions else e

    def store(self, s: Store) -> Stmt:
        new = map_children(s, self)
        if not any(map(self.from_data, s.indices)):
            return new
        index, lets, checks = self.index(s.buffer, s.indices[0], new.indices[0])
        lanes = dt.lanes_of(index.dtype)
        out: Stmt = new.replace(indices=(index,))
        if lanes > 1:
            out = new.replace(indices=(index,), predicate=_predicate(new.predicate, lanes, checks))
        else:                                            # the value is evaluated before the index is checked
            kept = Var(f"{s.buffer.name}_value", new.value.dtype)
            out = IfThenElse(all_of(*[_inside(IntImm(1, "bool"), *c) for c in checks]), out.replace(value=kept))
            lets.insert(0, (kept, new.value))
        for var, value in reversed(lets):
            out = LetStmt(var, value, out)
        return out

    def index(self, buffer: Buffer, written: Expr, index: Expr) -> tuple[Expr, list[tuple[Var, Expr]], list[Check]]:
        """(the index, the variables in it with what they stand for, what it has to be).

        `written` is the index as the program has it, for messages: what became of its checks is known to the object, as
        others may stand in `index`, in conditions of what it reads. What is read has a name, so that it is read once.
        """
        lets: list[tuple[Var, Expr]] = []
        checks: list[Check] = []
        texts = {id(self(c)): dimension_message(self.function, buffer, *c.args) for c in _checked(written)}
        done: dict[int, Expr] = {}

        def named(e: Expr) -> Expr:
            ramp = as_ramp(e)
            if isinstance(ramp, Ramp):
                return Ramp(named(ramp.base), ramp.stride, ramp.lanes)
            if isinstance(ramp, Broadcast):
                return Broadcast(named(ramp.value), ramp.lanes)
            if not any(type(m) in (Load, Let, Call) for m in walk(e)):
                return e
            lets.append((Var(f"{buffer.name}_at", e.dtype), e))
            return lets[-1][0]

        def unchecked(e: Expr) -> Expr:
            if id(e) not in done:
                new = e if isinstance(e, Load) else map_children(e, unchecked)
                if id(e) in texts:
                    assert isinstance(new, Call)
                    checks.append((named(new.args[0]), _first(new.args[1]), StringImm(texts[id(e)])))
                    new = checks[-1][0]
                done[id(e)] = new
            return done[id(e)]
        index = unchecked(index)
        if self.from_data(written, unchecked=True):
            index = named(index)
            checks.append((index, numel(buffer), StringImm(escaped(message(self.function, buffer, written)))))
        return index, lets, checks


def _inside(mask: Expr, index: Expr, extent: Expr, text: StringImm) -> Call:
    return Call("inside", (mask, index, extent, text), mask.dtype)


def _predicate(mask: Expr | None, lanes: int, checks: Iterable[Check]) -> Expr:
    """mask without the lanes for which a check does not hold."""
    out: Expr = Broadcast(IntImm(1, "bool"), lanes) if mask is None else mask
    for index, extent, text in checks:
        out = _inside(out, index if dt.lanes_of(index.dtype) > 1 else Broadcast(index, lanes), extent, text)
    return out


def _first(e: Expr) -> Expr:
    """The scalar of which e has copies, or e."""
    return e.value if isinstance(e, Broadcast) else e

