"""What the caller reads of an error that is found while a kernel runs."""
from __future__ import annotations

from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Ramp, Var
from tilewright.tir.node import Node, rewrite, walk


def message(function: str, buffer: Buffer, at: Expr) -> str:
    """The error that the caller sees."""
    size = extents_text(buffer)
    origin = ", taken from data," if any(isinstance(n, Load) for n in walk(at)) else ""
    return f"{function}: the index {readable(at)} of {buffer.name}{origin} is outside of its {size} elements"


def dimension_message(function: str, buffer: Buffer, i: Expr, extent: Expr) -> str:
    """A format for the value of the index and that of the extent."""
    size = readable(extent)
    value = "" if isinstance(size, IntImm) else " = %2$lld"
    written = readable(i)
    if not any(isinstance(n, (Var, Load)) for n in walk(written)):
        start = f"{escaped(function)}: the index %1$lld"
    elif dt.lanes_of(i.dtype) > 1:
        start = escaped(f"{function}: in a vector from {written} on, the index ") + "%1$lld"
    else:
        start = escaped(f"{function}: the index {written}") + " = %1$lld"
    return start + escaped(f" of {buffer.name} is outside of its extent {size}") + value


def escaped(text: str) -> str:
    return text.replace("%", "%%")


def extents_text(buffer: Buffer) -> str:
    """The extents of a buffer for a message: `n x 16`."""
    return " x ".join(str(e.value) if isinstance(e, IntImm) else str(readable(e)) for e in buffer.shape)


def readable(e: Expr) -> Expr:
    """An index of one lane as it was written, without widening: for messages, not for code."""
    named: dict[str, Var] = {}

    def step(n: Node) -> Node | None:
        match n:
            case Var():                           # the wide copy of a variable has its name
                return named.setdefault(n.name, n)
            case Cast() | Broadcast():
                return n.value
            case Ramp():
                return n.base
            case Call(op="checked_index"):
                return n.args[0]
            case IntImm():
                return IntImm(n.value) if -2**31 <= n.value < 2**31 else None
            case Binary(op="add", a=IntImm(value=0)):
                return n.b
            case Binary(op="add", b=IntImm(value=0)):
                return n.a
        return None
    out = rewrite(e, step)
    assert isinstance(out, Expr)
    return out
