"""TVM's node classes whose form differs from ours: operators as classes, ranges by their ends, kinds of loops."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright import te, tir
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import Binary, Expr, Node, binary, convert
from tilewright.tir.assertion import assertion
from tilewright.tir.buffer import load


class Kind(type):
    """A class that builds nodes of ours and recognises them: `isinstance(e, tvm.tir.Add)`."""
    make: Callable[..., Any]
    holds: Callable[[Any], bool]
    of: Any

    def __getattr__(cls, name: str) -> Any:
        """What the class of ours has: `tvm.tir.Schedule.split`."""
        if name.startswith("__") or cls.of is None:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return getattr(cls.of, name)

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        return cls.make(*args, **keywords)

    def __instancecheck__(cls, node: Any) -> bool:
        return cls.holds(node)


def kind(name: str, make: Callable[..., Any], holds: Callable[[Any], bool], of: type | None = None,
         **members: Any) -> Kind:
    """A class of TVM's: how its objects are made, and which they are; of: the class of ours that they have."""
    return Kind(name, (), {"make": staticmethod(make), "holds": staticmethod(holds), "of": of, **members})


def _function(op: str) -> Callable[..., Expr]:
    def make(a: Any, b: Any, span: object = None) -> Expr:
        return binary(op, a, b)
    return make


def _operator(name: str, op: str) -> Kind:
    return kind(name, _function(op), lambda e: isinstance(e, Binary) and e.op == op)


OPERATORS = {name: _operator(name, op) for name, op in {
    "Add": "add", "Sub": "sub", "Mul": "mul", "FloorDiv": "floordiv", "FloorMod": "floormod", "Mod": "truncmod",
    "Min": "min", "Max": "max", "EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge", "And": "and",
    "Or": "or"}.items()}


def _divide(a: Any, b: Any, span: object = None) -> Expr:
    x = convert(a)
    return binary("div" if tir.dtype.is_float(x.dtype) else "truncdiv", x, b)


OPERATORS["Div"] = kind("Div", _divide, lambda e: isinstance(e, Binary) and e.op in ("div", "truncdiv"))


def _range(begin: Any, end: Any = None, span: object = None) -> tir.Range:
    """Range(begin, end), or Range(end) from 0."""
    low, high = (0, begin) if end is None else (begin, end)
    return tir.Range(convert(low), binary("sub", convert(high), convert(low)))


def call_intrin(dtype: str, name: str, *args: Any) -> Expr:
    """The function `name` of the table of intrinsics, with or without TVM's prefix "tir."."""
    return tir.intrinsic(name.removeprefix("tir."), *args, dtype=dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {name: _function(op) for name, op in {
    "add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "bitand", "bitwise_or": "bitor",
    "bitwise_xor": "bitxor", "shift_left": "shl", "shift_right": "shr"}.items()}
def address_of(element: Any, span: object = None) -> Expr:
    """The address of an element of a buffer."""
    if not isinstance(element, tir.Load):
        raise ArgumentError(f"address_of takes an element, not {described(element)}", "address_of(A[0])")
    return tir.Call("access_ptr", (element,), "handle")


def _assert(condition: Any, message: Any = "", body: tir.Stmt | None = None, span: object = None) -> tir.Stmt:
    check = assertion(condition, message)
    return check if body is None else tir.seq([check, body])


FUNCTIONS |= {"address_of": address_of, "bitwise_not": tir.bitwise_not, "call_intrin": call_intrin,
              "call_pure_extern": te.call_extern,
              "MatchBufferRegion": tir.MatchBuffer,
              "stmt_list": lambda s: list(s.stmts if isinstance(s, tir.Seq) else [s])}


def _call(dtype: str, op: Any, args: Any, span: object = None) -> Expr:
    """Call(dtype, "tir.exp", [x])."""
    return call_intrin(dtype, str(getattr(op, "name", op)), *args)


# TVM's constructors take the dtype first.
LITERALS = {
    "IntImm": kind("IntImm", lambda dtype, value, span=None: tir.IntImm(int(value), tir.dtype.canonical(dtype)),
                    lambda e: isinstance(e, tir.IntImm)),
    "FloatImm": kind(
        "FloatImm", lambda dtype, value, span=None: tir.FloatImm(float(value), tir.dtype.canonical(dtype)),
        lambda e: isinstance(e, tir.FloatImm)),
    "Cast": kind("Cast", lambda dtype, value, span=None: tir.cast(tir.dtype.canonical(dtype), value),
                  lambda e: isinstance(e, tir.Cast)),
    "Call": kind("Call", _call, lambda e: isinstance(e, tir.Call)),
}

Range = kind("Range", _range, lambda x: isinstance(x, tir.Range),
              from_min_extent=staticmethod(lambda low, extent, span=None: tir.Range(convert(low), convert(extent))))


def _value(x: Any, dtype: str) -> Expr:
    """x; a Python number becomes a constant of dtype."""
    return convert(x) if isinstance(x, Node) else tir.const(x, dtype)


def _for(loop_var: tir.Var, min: Any, extent: Any, kind: str | int, *rest: Any, **named: Any) -> tir.For:
    """For(loop_var, min, extent, kind, body, ...); up to 0.7 a device API stood before the body."""
    if rest and isinstance(rest[0], int):
        rest = rest[1:]
    named.pop("device_api", None)
    return _loop(loop_var, min, extent, kind_of_loop(kind), *rest, **named)


KINDS = (tir.SERIAL, tir.PARALLEL, tir.VECTORIZED, tir.UNROLLED)


def kind_of_loop(kind: str | int) -> str:
    """The kind of a loop, by its name or by TVM's number. Raises ArgumentError."""
    numbered = isinstance(kind, int) and not isinstance(kind, bool) and 0 <= kind < len(KINDS)
    if not numbered and kind not in (*KINDS, tir.THREAD_BINDING):
        raise ArgumentError(f"For: the kind of the loop is {described(kind)}",
                            ", ".join(f"{n} {k}" for n, k in enumerate(KINDS)))
    return KINDS[kind] if isinstance(kind, int) else kind


def _loop(loop_var: tir.Var, min: Any, extent: Any, kind: str, body: tir.Stmt,
          thread_binding: tir.IterVar | None = None, annotations: Mapping[str, Any] | None = None,
          span: object = None) -> tir.For:
    tag = thread_binding.thread_tag if thread_binding is not None else ""
    low, count = (_value(x, loop_var.dtype) for x in (min, extent))
    return tir.For(loop_var, low, count, kind, body, tag, dict(annotations or {}))


def _select(condition: Any, true_value: Any, false_value: Any, span: object = None) -> Expr:
    a, b = convert(true_value), convert(false_value)
    if not isinstance(true_value, Node):
        a = _value(true_value, b.dtype)
    elif not isinstance(false_value, Node):
        b = _value(false_value, a.dtype)
    return tir.Select(convert(condition), a, b)


def _iter_var(dom: Any, var: Any, iter_type: int = tir.DATA_PARALLEL, thread_tag: str = "",
              span: object = None) -> tir.IterVar:
    limits = _range(*dom) if isinstance(dom, (tuple, list)) else dom
    return tir.IterVar(limits, tir.Var(var, "int32") if isinstance(var, str) else var, iter_type, thread_tag)


def _node(cls: type[Node], make: Callable[..., Node], **members: Any) -> Kind:
    return kind(cls.__name__, make, lambda x: isinstance(x, cls), **members)


# Nodes whose fields TVM fills from Python numbers and lists.
NODES = {
    "For": _node(tir.For, _for, Serial=tir.SERIAL, Parallel=tir.PARALLEL, Vectorized=tir.VECTORIZED,
                 Unrolled=tir.UNROLLED),
    "While": _node(tir.While, lambda condition, body, span=None: tir.While(convert(condition), body)),
    "IfThenElse": _node(tir.IfThenElse, lambda condition, then_case, else_case=None, span=None: tir.IfThenElse(
        convert(condition), then_case, else_case)),
    "LetStmt": _node(tir.LetStmt, lambda var, value, body, span=None: tir.LetStmt(var, _value(value, var.dtype), body)),
    "Let": _node(tir.Let, lambda var, value, body, span=None: tir.Let(var, _value(value, var.dtype), convert(body))),
    "Evaluate": _node(tir.Evaluate, lambda value, span=None: tir.Evaluate(convert(value))),
    "AssertStmt": kind("AssertStmt", _assert, lambda s: isinstance(s, tir.Evaluate) and isinstance(
        s.value, tir.Call) and s.value.op == "Assert"),
    "SeqStmt": _node(tir.Seq, lambda seq, span=None: tir.Seq(tuple(seq))),
    "Select": _node(tir.Select, _select),
    "Ramp": _node(tir.Ramp, lambda base, stride, lanes, span=None: tir.Ramp(
        convert(base), _value(stride, convert(base).dtype), int(lanes))),
    "Broadcast": _node(tir.Broadcast, lambda value, lanes, span=None: tir.Broadcast(convert(value), int(lanes))),
    "Shuffle": _node(tir.Shuffle, lambda vectors, indices, span=None: tir.Shuffle(
        tuple(map(convert, vectors)), tuple(map(int, indices)))),
    "Not": _node(tir.Not, lambda a, span=None: tir.Not(convert(a))),
    "BufferLoad": _node(tir.Load, lambda buffer, indices, span=None: load(buffer, indices)),
    "BufferStore": _node(tir.Store, lambda buffer, value, indices, span=None: tir.Store(
        buffer, _value(value, buffer.dtype), load(buffer, indices).indices)),
    "IterVar": _node(tir.IterVar, _iter_var, DataPar=tir.DATA_PARALLEL, ThreadIndex=tir.THREAD_INDEX,
                     CommReduce=tir.COMM_REDUCE, Ordered=tir.ORDERED, Opaque=tir.OPAQUE),
}


class ForKind:
    """Kinds of loops under TVM's names."""
    SERIAL, PARALLEL, VECTORIZED, UNROLLED = tir.SERIAL, tir.PARALLEL, tir.VECTORIZED, tir.UNROLLED
    THREAD_BINDING = tir.THREAD_BINDING


_MADE: dict[str, Callable[..., Any]] = {
    "IntImm": LITERALS["IntImm"],
    "FloatImm": LITERALS["FloatImm"],
    "StringImm": lambda value, **_: tir.StringImm(value),
    "Range": lambda min, extent, **_: tir.Range(convert(min), convert(extent)),
    "tir.Var": lambda name, dtype="int32", **_: tir.Var(name, dtype),
    **{f"tir.{name}": kind for name, kind in OPERATORS.items()},
}


def make_node(type_key: str, **fields: Any) -> Node:
    """A node by TVM's name for its type and its fields. Raises ArgumentError for another type, or other fields."""
    make = _MADE.get(type_key)
    if make is None:
        raise ArgumentError(f"make_node({type_key!r}) is not known here", f"one of {', '.join(_MADE)}")
    try:
        return make(**fields)
    except TypeError as why:
        raise ArgumentError(f"make_node({type_key!r}): {str(why).replace('<lambda>', type_key)}") from None
