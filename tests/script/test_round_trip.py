"""parse(print(f)) equals f and prints as the same text: random programs, and what random programs do not have."""
from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from tests.script.round_trip import assert_round_trip, check_seed
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import (
    Allocate,
    Binary,
    Block,
    BlockRealize,
    Broadcast,
    Buffer,
    BufferRegion,
    Call,
    Cast,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IRModule,
    IterVar,
    Let,
    LetStmt,
    Load,
    MatchBuffer,
    Not,
    PrimFunc,
    Ramp,
    Range,
    Select,
    Seq,
    Store,
    StringImm,
    Var,
    While,
    decl_buffer,
    seq,
    structural_equal,
)

TRUE = IntImm(1, "bool")
A = decl_buffer((8, 8), name="A")
n, x = Var("n"), Var("x")


def function(body, *params, **attrs):
    handles = [p if isinstance(p, Var) else Var(p.name, "handle") for p in params]
    return PrimFunc(tuple(handles), body, {h: p for h, p in zip(handles, params) if isinstance(p, Buffer)},
                    {"global_symbol": "f", **attrs})


@pytest.mark.parametrize("first", range(0, 150, 25))
def test_random_programs(first):
    counts: Counter[str] = Counter()
    for seed in range(first, first + 25):
        counts += check_seed(seed, passes=seed % 5 == 0)
    assert counts["programs"] == 25 and counts["primitives"] > 100 and counts["passes"] > 100, counts


@pytest.mark.parametrize("e", [
    Binary("add", IntImm(2), IntImm(3)), Binary("mul", Binary("add", IntImm(2), IntImm(3)), IntImm(4)),
    Binary("max", IntImm(2), IntImm(3)), Binary("floormod", n, IntImm(0)), Binary("add", n, IntImm(0)),
    Binary("sub", IntImm(0), n), -Cast("float32", n), -Cast("float64", n) * -Cast("float64", n),
    Binary("sub", FloatImm(-0.0), FloatImm(1)), Binary("sub", FloatImm(0.0), Cast("float32", n)),
    Binary("sub", FloatImm(-0.0), Cast("float32", FloatImm(0.5, "float64"))),
    Binary("lt", IntImm(-2), IntImm(3)), Binary("add", FloatImm(2), FloatImm(3)),
    Binary("and", TRUE, IntImm(0, "bool")), Not(TRUE), Not(Not(TRUE)), Cast("int32", n), Cast("float64", FloatImm(0.1)),
    Select(TRUE, n, n), Call("if_then_else", (TRUE, n, n), "int32"), Let(x, n, Binary("add", x, x)),
    FloatImm(math.nan, "float16"), FloatImm(-math.inf), FloatImm(-0.0), FloatImm(1e-45), FloatImm(1e22, "float64"),
    IntImm(-(2**63), "int64"), IntImm(2**64 - 1, "uint64"), Call("clz", (IntImm(3, "int64"),), "int32"),
    Ramp(n, IntImm(-1), 4), Ramp(n, n, 4), Broadcast(n, 4), Broadcast(FloatImm(0.5), 8),
    Call("reinterpret", (FloatImm(0.5),), "int32"), Call("popcount", (n,), "int64"),
    Load(A, (n, Ramp(Binary("add", n, IntImm(1)), IntImm(2), 4))), Load(A, (IntImm(0), Ramp(IntImm(1), IntImm(1), 4))),
    Call("access_ptr", (Load(A, (n, n)), n), "handle"),
    Binary("eq", Binary("lt", n, n), Binary("lt", n, n)), Binary("sub", n, Binary("sub", n, n)),
    Call("call_extern", (StringImm("a\"b'c\\"), StringImm("ü\n"), n), "float32"),
], ids=str)
def test_expressions_that_nothing_would_simplify_to(e):
    assert_round_trip(function(Evaluate(e), A, n))


def test_statements_of_every_kind():
    t, i, j, y = decl_buffer((4,), "int32", "t", scope="local"), Var("i"), Var("i", "int64"), Var("y", "bool")
    mask = Binary("lt", Ramp(n, IntImm(1), 4), Broadcast(n, 4))
    lanes = Ramp(n, IntImm(1), 4)
    one = Store(A, FloatImm(1), (n, n))
    body = seq([
        For(i, IntImm(2), n, "serial", one, "", {"a": 1}),
        For(j, n.astype("int64"), IntImm(3, "int64"), "parallel", Seq(()), "", {"b": [1.5, "c", None, (True,)]}),
        For(Var("k"), IntImm(0), IntImm(4), "thread_binding", one, "vthread.x", {"c": IntImm(3)}),
        While(TRUE, one), IfThenElse(TRUE, Seq(()), one), IfThenElse(TRUE, one),
        LetStmt(y, Binary("lt", n, n), IfThenElse(y, one)),
        Allocate(t, Store(t, IntImm(3), (n,)), {"padded": True, "nan": math.inf}),
        Store(A, Broadcast(FloatImm(1), 4), (n, lanes), mask), Evaluate(Load(A, (n, lanes), mask)),
        LetStmt(x, IntImm(3), Allocate(decl_buffer((), "int8", "s"), Evaluate(x))),
    ])
    assert_round_trip(function(body, A, n))


def test_properties_of_buffers():
    s, o = Var("s"), Var("o", "int64")
    buffers = [
        decl_buffer((n, 4), "float64", "B", strides=(s, IntImm(1)), elem_offset=o, data_alignment=16, offset_factor=4),
        decl_buffer((4,), "bool", "C", scope="shared.dyn", offset_factor=1), decl_buffer((), "bfloat16", "D"),
        decl_buffer((n + 1, n), name="E"), decl_buffer((4, 4, 4), name="F").replace(axis_separators=(1, 2)),
    ]
    func = function(Seq(()), *buffers)
    assert_round_trip(func)
    for change in ({"data_alignment": 64}, {"offset_factor": 0}, {"scope": "shared"}, {"axis_separators": (1,)}):
        for k, b in enumerate(buffers):
            if all(getattr(b, key) == value for key, value in change.items()):
                continue
            changed = [*buffers[:k], b.replace(**change), *buffers[k + 1:]]
            assert not structural_equal(function(Seq(()), *changed), func), (b.name, change)
            assert_round_trip(function(Seq(()), *changed))


def test_views_of_memory():
    t = decl_buffer((4, 4), name="t")
    flat = Buffer("t", (IntImm(16),), data=t.data)
    args = Buffer("A", (IntImm(64),), data=A.data)
    body = Allocate(t, seq([Store(flat, Load(args, (n,)), (n,)), Store(t, FloatImm(0), (n, n))]))
    assert_round_trip(function(body, A, n))
    inside = Block("b", (), (), (), Store(flat, FloatImm(0), (IntImm(0),)), alloc_buffers=(t,))
    root = Block("root", (), (), (), BlockRealize((), TRUE, inside))
    assert_round_trip(function(BlockRealize((), TRUE, root)), check_well_formed=False)


def test_blocks_of_every_kind():
    i, v = Var("i"), [Var(f"v{k}") for k in range(5)]
    axes = tuple(IterVar(Range(IntImm(-k), IntImm(16)), v[k], kind) for k, kind in enumerate((0, 2, 3, 4, 0)))
    source = BufferRegion(A, (Range(v[0], n), Range(IntImm(2), IntImm(4))))
    view = decl_buffer((n, 4), name="V", strides=(Var("s0"), IntImm(1)), elem_offset=Var("off"))
    block = Block("b", axes, (source,), (BufferRegion(A, (Range(v[0] + 1, IntImm(3)), Range(v[1], IntImm(1)))),),
                  Store(A, FloatImm(0), (v[0], v[1])), Store(A, FloatImm(1), (v[0], v[1])),
                  (decl_buffer((n,), name="t"),),
                  (MatchBuffer(view, source),), {"k": "v", "i": IntImm(3), "s": StringImm("s"), "e": n + 1})
    values = (i, i + 0, Binary("mul", i, IntImm(1)), IntImm(3), i)
    loop = For(i, IntImm(0), IntImm(8), "serial", BlockRealize(values, Binary("lt", i, IntImm(4)), block))
    root = Block("root", (), (), (), loop, annotations={"level": 1}, alloc_buffers=(decl_buffer((3,), name="u"),))
    assert_round_trip(function(BlockRealize((), TRUE, root), A, n))


@pytest.mark.parametrize("root", [
    Block("root", (), (), (), Store(A, FloatImm(0), (IntImm(0), IntImm(0)))),
    Block("root", (), (), (), Seq(()), annotations={"a": 1}),
    Block("root", (), (), (), Seq(()), alloc_buffers=(decl_buffer((3,), name="u"),)),
    Block("root", (), (BufferRegion(A, (Range(IntImm(0), IntImm(8)),) * 2),), (), Seq(())),
])
def test_a_root_block_without_blocks(root):
    assert_round_trip(function(BlockRealize((), TRUE, root), A), check_well_formed=False)


def test_attributes_and_names():
    body = Evaluate(IntImm(0))
    assert_round_trip(function(body, **{"tir.noalias": True, "list": [1, "a", {"b": 0.1}], "float": math.nan}))
    assert_round_trip(PrimFunc((), body, {}, {}))
    assert_round_trip(PrimFunc((), body, {}, {"global_symbol": "a name-with 3 things"}))
    assert_round_trip(function(Evaluate(n), n, Var("T"), Var("lambda"), Var("A.b"), Var("float")))
    handle = Var("p", "handle")
    buffer = Buffer("p", (IntImm(4),), data=handle)
    assert_round_trip(PrimFunc((handle,), Store(buffer, FloatImm(0), (IntImm(1),)), {handle: buffer},
                               {"global_symbol": "f"}))


def test_modules():
    first = function(Evaluate(IntImm(0)))
    sch = Schedule(create_prim_func([a := te.placeholder((te.var("m"),), name="X"),
                                     te.compute(a.shape, lambda i: a[i] + 1, name="Y")], name="second"))
    sch.split(sch.get_loops("Y")[0], factors=[None, 4])
    module = IRModule({"f": first, "second": sch.func, "third": first})
    assert_round_trip(module)
    assert list(from_source(module.script()).functions) == ["f", "second", "third"]
    assert_round_trip(IRModule({}))


def test_values_of_numpy_are_numbers():
    values = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.float64("inf")}
    f = function(For(x, IntImm(0), IntImm(4), "serial", Evaluate(x), "", values))
    again = from_source(str(f))
    assert str(again) == str(f) and dict(again.body.annotations) == values


def test_names_that_python_reads_as_the_same():
    names = ("\ufb01", "fi", "a\xb2", "a2", "\u2460", "\u212b", "\xc5", "A\u0301", "lambda", "range", "\ud800")
    buffers = [decl_buffer((4,), name=name) for name in names]
    f = function(seq([Store(b, FloatImm(float(k), "float32"), (IntImm(0),)) for k, b in enumerate(buffers)]), *buffers)
    assert_round_trip(f)
    for name in names:
        assert_round_trip(f.with_attr("global_symbol", name))
