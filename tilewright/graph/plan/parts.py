"""Choices and loops of a plan as statements of the function that a file has.

Their functions are functions of the file, too: `NAME__kernel` takes the addresses of inputs and results, then sizes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.graph.ir.callees import Hosted
from tilewright.graph.ir.regions import Loop
from tilewright.graph.ir.types import TensorType
from tilewright.tir import (
    Allocate,
    Buffer,
    Call,
    Cast,
    Evaluate,
    Expr,
    IfThenElse,
    IntImm,
    LetStmt,
    Load,
    Stmt,
    Store,
    StringImm,
    Var,
    seq,
)
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.assertion import assertion
from tilewright.tir.stmt import While

_ZERO = IntImm(0, "int64")


def region_statement(callee: Hosted, parts: Sequence[str], pointers: Sequence[Expr]) -> Stmt:
    """What runs a choice or a loop. parts: the names of its functions; pointers: to inputs and results."""
    if isinstance(callee.region, Loop):
        return _Loop(callee, parts[0], pointers).statement()
    then, orelse = (_call(part, built, pointers[1:]) for part, built in zip(parts, callee.built))
    return _with_scalar("condition", "bool", pointers[0], lambda taken: IfThenElse(taken, then, orelse))


class _Loop:
    """The statement of a loop: the carried values are in the results, and copied there after each step."""

    def __init__(self, callee: Hosted, part: str, pointers: Sequence[Expr]) -> None:
        self.callee, self.part = callee, part
        count, carried = len(callee.results), callee.region.carried
        given, made = pointers[:-count] if count else pointers, pointers[len(pointers) - count:]
        self.count, self.proceed, self.first, self.read = given[0], given[1], given[2:2 + carried], given[2 + carried:]
        self.state, self.stacks = made[:carried], made[carried:]
        self.types, self.stacked = callee.results[:carried], callee.results[carried:]
        self.step, self.going = Buffer("step", (IntImm(1),), "int64"), Buffer("going", (IntImm(1),), "bool")
        self.next = [Buffer(f"next{k}", (nbytes_of(t),), "uint8") for k, t in enumerate(self.types)]

    def statement(self) -> Stmt:
        """With the loop's own memory around it."""
        body = _with_scalar("count", "int64", self.count, lambda count: _with_scalar(
            "proceed", "bool", self.proceed, lambda proceed: self._steps(count, proceed)))
        for buffer in (self.step, self.going, *self.next):
            body = Allocate(buffer, body)
        return body

    def _steps(self, count: Expr, proceed: Expr) -> Stmt:
        more = binary("and", binary("lt", self._at, count), Load(self.going, (_ZERO,)))
        ended = [assertion(binary("eq", self._at, self._length), f"{self.callee.name} ends after another number of "
                           "steps than its result has")] if self.stacked else []
        return seq([Store(self.step, _ZERO, (_ZERO,)), Store(self.going, proceed, (_ZERO,)),
                    *map(_copy, self.state, self.first, self.types), While(more, self._turn()), *ended])

    def _turn(self) -> Stmt:
        room = [assertion(binary("lt", self._at, self._length), f"{self.callee.name}: one more step gives a value "
                          "than its result has")] if self.stacked else []
        made = [_first(b) for b in self.next]
        slices = [_behind(p, binary("mul", self._at, nbytes_of(TensorType(t.shape[1:], t.dtype))))
                  for p, t in zip(self.stacks, self.stacked)]
        call = _call(self.part, self.callee.built[0], [
            _first(self.step), *self.state, *self.read, _first(self.going), *made, *slices])
        ended = Store(self.going, IntImm(0, "bool"), (_ZERO,))       # unless the body comes to its end, and says so
        return seq([*room, ended, call, *map(_copy, self.state, made, self.types),
                    Store(self.step, binary("add", self._at, IntImm(1, "int64")), (_ZERO,))])

    @property
    def _at(self) -> Expr:
        return Load(self.step, (_ZERO,))

    @property
    def _length(self) -> Expr:
        """How many steps the results have."""
        return _wide(self.stacked[0].shape[0])


def _call(part: str, built: Any, pointers: Sequence[Expr]) -> Stmt:
    """The call of a function of the file, whose sizes are those around it."""
    types = [*(t for _, t in built.plan.params), *(t for _, t in built.plan.results)]
    sizes = dict.fromkeys(d for t in types for d in t.shape if isinstance(d, Var))
    return Evaluate(Call("call_extern", (StringImm(f"{part}__kernel"), *pointers, *sizes), "int32"))


def _with_scalar(name: str, dtype: str, pointer: Expr, make: Callable[[Expr], Stmt]) -> Stmt:
    """make(the element at an address)."""
    view = _view(name, dtype, Var(name, "handle"))
    return LetStmt(view.data, pointer, make(Load(view, (_ZERO,))))


def _copy(to: Expr, source: Expr, t: TensorType) -> Stmt:
    return Evaluate(Call("call_extern", (StringImm("memcpy"), to, source, nbytes_of(t)), "handle"))


def nbytes_of(t: TensorType) -> Expr:
    """The bytes of a tensor, for the sizes of a call."""
    size: Expr = IntImm(dt.bytes_of(t.dtype), "int64")
    for d in t.shape:
        size = binary("mul", size, _wide(d))
    return size


def _wide(extent: Any) -> Expr:
    return IntImm(extent, "int64") if isinstance(extent, int) else Cast("int64", extent)


def _view(name: str, dtype: str, data: Var) -> Buffer:
    return Buffer(name, (IntImm(1),), dtype, data=data)


def _behind(pointer: Expr, nbytes: Expr) -> Expr:
    """The address so many bytes behind that of a result, or of a place in the arena."""
    if isinstance(pointer, Var):
        return address(_view(pointer.name, "uint8", pointer), nbytes)
    assert isinstance(pointer, Call) and isinstance(pointer.args[0], Load)
    place = pointer.args[0]
    return address(place.buffer, binary("add", place.indices[0], nbytes))


def _first(buffer: Buffer) -> Expr:
    return address(buffer, _ZERO)


def address(buffer: Buffer, index: Expr) -> Expr:
    """The address of an element."""
    return Call("access_ptr", (Load(buffer, (index,)),), "handle")
