"""One function says what a statement reads and writes, wherever in its fields that stands."""
from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from tilewright.tir.accesses import uses, uses_below
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer, decl_buffer, pointer
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, IntImm, Let, StringImm, Var
from tilewright.tir.iter_var import IterVar, Range
from tilewright.tir.node import Node, sub_statements
from tilewright.tir.stmt import NOP, Block, BlockRealize, Evaluate, For, IRModule, LetStmt, PrimFunc, Stmt, Store, While

D, A = decl_buffer((8,), "int32", "D"), decl_buffer((8,), "int32", "A")       # D is what is read in unlikely places
READ = Load(D, (IntImm(3),))
ONE = IntImm(1)


def block(**changed: Any) -> Block:
    return Block("b", (), (), (), NOP).replace(**changed)


def func(**changed: Any) -> PrimFunc:
    return PrimFunc((), NOP).replace(**changed)


def within(read: Expr) -> Stmt:
    return Evaluate(read)


# The type of a field -> a value that holds an expression; for a field of any type, by its class and name.
HOLDING: dict[str, Callable[[Expr], Any]] = {
    "Expr": lambda e: e,
    "Expr | None": lambda e: e,
    "tuple[Expr, ...]": lambda e: (ONE, e),
    "Range": lambda e: Range(e, ONE),
    "Range | None": lambda e: Range(ONE, e),
    "tuple[Range, ...]": lambda e: (Range(ONE, ONE), Range(e, ONE)),
    "IterVar | None": lambda e: IterVar(Range(ONE, e), Var("v")),
    "tuple[IterVar, ...]": lambda e: (IterVar(Range(e, ONE), Var("v")),),
    "BufferRegion": lambda e: BufferRegion(A, (Range(e, ONE),)),
    "tuple[BufferRegion, ...]": lambda e: (BufferRegion(A, (Range(ONE, e),)),),
    "tuple[MatchBuffer, ...]": lambda e: (MatchBuffer(decl_buffer((8,)), BufferRegion(A, (Range(e, ONE),))),),
    "Buffer": lambda e: Buffer("X", (e,)),
    "Mapping[str, Any]": lambda e: {"key": [ONE, {"deep": e}]},
    "Mapping[Any, Buffer]": lambda e: {Var("X", "handle"): Buffer("X", (ONE, e))},
    "Mapping[str, PrimFunc]": lambda e: {"f": func(attrs={"key": e})},
    "Buffer.shape": lambda e: (ONE, e),
    "Buffer.strides": lambda e: (e, ONE),
    "Buffer.elem_offset": lambda e: e,
    "Block.alloc_buffers": lambda e: (Buffer("X", (ONE,), strides=(e,)),),
}
BELOW: dict[str, Callable[[Expr], Any]] = {                 # statements: they speak for themselves
    "Stmt": within,
    "Stmt | None": within,
    "tuple[Stmt, ...]": lambda e: (NOP, within(e)),
    "Block": lambda e: block(annotations={"key": e}),
}
SYMBOLS = {"str", "int", "float", "Var", "tuple[int, ...]", "tuple[Var, ...]", "Buffer.data"}      # hold none
DEFAULTS: dict[str, Any] = {
    "str": "x", "int": 1, "float": 1.0, "Var": Var("x"), "tuple[int, ...]": (), "tuple[Var, ...]": (),
    "Buffer.data": None, "Expr": ONE, "Range": Range(ONE, ONE), "BufferRegion": BufferRegion(A, (Range(ONE, ONE),)),
    "Buffer": A, "Stmt": NOP,
    "Block": block(), "Mapping[str, Any]": {}, "Mapping[Any, Buffer]": {}, "Mapping[str, PrimFunc]": {},
}
DEFAULT_OF: dict[str, Any] = {"Call.op": "exp", "Binary.op": "add", "For.kind": "serial", "Binary.type": "int32",
                              "Buffer.elem_offset": None}


def node_classes() -> list[type]:
    """Every class of nodes of the IR with fields."""
    found, stack = [], [Node]
    while stack:
        cls = stack.pop()
        stack += cls.__subclasses__()
        known = getattr(sys.modules[cls.__module__], cls.__name__, None) is cls   # no leftover of `slots`
        if known and cls.__module__.startswith("tilewright.tir.") and fields(cls):
            found.append(cls)
    return sorted(set(found), key=lambda c: c.__name__)


def kind_of(cls: type, name: str, annotation: str) -> str:
    """The key of a field in the tables."""
    qualified = f"{cls.__name__}.{name}"
    return qualified if qualified in HOLDING or qualified in SYMBOLS else annotation


def default(cls: type, name: str, annotation: str) -> Any:
    qualified, kind = f"{cls.__name__}.{name}", kind_of(cls, name, annotation)
    if qualified in DEFAULT_OF:
        return DEFAULT_OF[qualified]
    if kind.endswith("| None"):
        return None
    return DEFAULTS.get(kind, ())


def made(cls: type, **given: Any) -> Node:
    """A node of cls with these fields; the others hold no read."""
    return cls(*[given[f.name] if f.name in given else default(cls, f.name, str(f.type)) for f in fields(cls)])


CASES = [(cls, f.name, kind_of(cls, f.name, str(f.type))) for cls in node_classes() for f in fields(cls)]


@pytest.mark.parametrize(("cls", "name", "kind"), CASES, ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_a_read_in_any_field_of_any_node_is_seen(cls, name, kind):
    if kind in SYMBOLS:
        return
    assert kind in HOLDING or kind in BELOW, f"say in this file whether a read can stand in {cls.__name__}.{name}"
    if kind in BELOW:
        node = made(cls, **{name: BELOW[kind](READ)})
        assert not any(u.buffer is D for u in uses(node)), "a statement below speaks for itself"
        if isinstance(node, Stmt):
            assert [u.node for u in uses_below(node) if u.buffer is D] == [READ]
            held = getattr(node, name)
            below = list(sub_statements(node))
            assert all(any(s is b for b in below) for s in (held if isinstance(held, tuple) else (held,)))
        return
    node = made(cls, **{name: HOLDING[kind](READ)})
    found = [u for u in uses(node) if u.buffer is D]
    assert [u.node for u in found] == [READ] and found[0].indices == READ.indices
    assert found[0].reads and not found[0].writes
    assert found[0].field == ("" if isinstance(node, Expr) else name)


def test_every_class_is_among_the_cases():
    names = {cls.__name__ for cls, _, _ in CASES}
    assert {"Store", "BlockRealize", "Block", "For", "IterVar", "Buffer", "Load", "PrimFunc", "Let"} <= names
    assert len(CASES) > 60


def test_what_is_written_and_what_is_used_by_its_address():
    store = Store(A, READ, (ONE,), None)
    read, write = uses(store)
    assert (read.buffer, read.writes, read.field) == (D, False, "value")
    assert (write.buffer, write.reads, write.writes, write.field) == (A, False, True, "buffer")
    opaque = [u for u in uses(Evaluate(pointer(A))) if u.indices is None]
    assert [(u.buffer, u.reads, u.writes) for u in opaque] == [(A, True, True)]
    bare, = uses(Evaluate(Call("call_extern", (StringImm("f"), A.data), "int32")))
    assert bare.buffer is None and bare.touches(A) and not bare.touches(D)


def test_conditions_and_lets_of_expressions_around_an_access():
    x, y = Var("x"), Var("y")
    inner = Load(D, (x,))
    e = Let(x, IntImm(2), Call("if_then_else", (Binary("lt", y, x), inner, FloatImm(0.0)), "int32"))
    use, = uses(LetStmt(Var("z"), e, NOP))
    assert use.node is inner and use.lets == ((x, e.value),)
    (condition, holds), = use.under
    assert holds and condition is e.body.args[0]


def test_statements_of_loops_are_seen_in_program_order():
    loop = For(Var("i"), READ, Load(A, (ONE,)), "serial", While(Load(A, (IntImm(0),)), Store(A, ONE, (READ,))))
    assert [(u.buffer.name, u.field) for u in uses_below(loop)] == [
        ("D", "min"), ("A", "extent"), ("A", "condition"), ("D", "indices"), ("A", "buffer")]
    realize = BlockRealize((READ,), IntImm(1, "bool"), block())
    assert [u.field for u in uses(realize)] == ["iter_values"]
    assert uses(IRModule({})) == []
