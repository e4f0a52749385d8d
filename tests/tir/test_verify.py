"""The verifier accepts what the stages produce and names what is wrong with the rest."""

import pytest
from tir_programs import axis, elementwise, function, matmul, nothing, points, realize, root

from tilewright.support.errors import StructuralError
from tilewright.tir import (
    COMM_REDUCE,
    Allocate,
    Binary,
    Block,
    Broadcast,
    Buffer,
    BufferRegion,
    Call,
    Cast,
    Evaluate,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    Load,
    Not,
    Ramp,
    Seq,
    Store,
    Var,
    const,
    decl_buffer,
    loop,
    seq,
    verify,
)

A, F, x, y = decl_buffer((4,), "int32", "A"), decl_buffer((4, 4), name="F"), Var("x"), Var("y")
i = Var("i")
zero = IntImm(0)


def test_well_formed_functions():
    verify(matmul())
    verify(elementwise(4, lambda k: A[k] + 1, A, dtype="int32"), "loop")
    verify(elementwise(4, lambda k: A[k] + 1, A, dtype="int32"), "flat")
    n = Var("n")
    S = decl_buffer((n, n + 1), name="S")
    flat = Buffer("S", (n * (n + 1),), data=S.data)
    verify(function(loop(i, n, Store(flat, const(0.0), (i,))), S), "flat")


def loop_over(body):
    return For(i, zero, IntImm(4), "serial", body)


WRONG = [
    (Evaluate(x + 1), "x is used, but nothing defines it here"),
    (seq([loop_over(nothing()), Evaluate(i + 1)]), "i is used, but nothing defines it here"),
    (loop_over(loop_over(nothing())), "loop i is defined twice"),
    (seq([loop_over(nothing()), loop_over(nothing())]), "loop i is defined twice"),
    (
        For(i, zero, IntImm(4, "int64"), "serial", nothing()),
        "loop i is int32, its min is int32, its extent is int64",
    ),
    (
        For(Var("u", "uint64"), IntImm(2**64 - 8, "uint64"), IntImm(7, "uint64"), "serial", nothing()),
        "loop u runs from .* over .* iterations, past the end of int64",
    ),
    (For(i, zero, IntImm(4), "sideways", nothing()), "unknown kind 'sideways'"),
    (For(i, zero, IntImm(4), "thread_binding", nothing()), "thread tag ''"),
    (Store(A, const(0.0), (zero,)), "a value of type float32 is stored to A, which takes int32"),
    (Store(A, const(0), (zero, zero)), r"A has 1 dimension\(s\), 2 index\(es\) given"),
    (Store(A, const(0), (const(0.5),)), "index .* is float32, not an integer"),
    (Store(decl_buffer((4,), "int32", "B"), const(0), (zero,)), "nothing defines the buffer B here"),
    (
        Store(A, const(0), (Ramp(zero, IntImm(1), 4),)),
        "a value of type int32 is stored to A, which takes int32x4",
    ),
    (
        Store(A, Broadcast(const(0), 4), (Ramp(zero, IntImm(1), 4),), Broadcast(const(True), 2)),
        "the predicate is boolx2 for an access of 4 lane",
    ),
    (Evaluate(Load(F, (Ramp(zero, IntImm(1), 4), zero))), "only the last index may be a vector"),
    (Evaluate(Binary("add", const(1), const(1, "int64"), "int32")), "the operands are int32 and int64"),
    (Evaluate(Binary("add", const(1), const(1), "int64")), "the type is int64, expected int32"),
    (Evaluate(Binary("and", const(1), const(1))), "the operands are int32, not bools"),
    (Evaluate(Not(const(1))), "not a bool"),
    (Evaluate(Cast("int32x4", const(1))), "changes the lanes"),
    (Evaluate(Call("exp", (const(1),), "int32")), "exp.*the types are int32"),
    (Evaluate(Call("nothing", (), "int32")), "not an intrinsic"),
    (
        Evaluate(Call("if_then_else", (const(True), const(1), const(1.0)), "int32")),
        "the branches are int32 and float32",
    ),
    (Evaluate(Ramp(zero, const(1, "int64"), 4)), "base is int32, stride is int64"),
    (Evaluate(IntImm(300, "int8")), "300 does not fit int8"),
    (IfThenElse(const(1), nothing()), "the condition 1 is int32"),
    (LetStmt(x, const(1.0), nothing()), "x is int32, its value is float32"),
    (Seq((Seq((nothing(),)), nothing())), "a sequence is nested"),
]


@pytest.mark.parametrize("body, message", WRONG, ids=[m for _, m in WRONG])
def test_ill_formed_statements(body, message):
    with pytest.raises(StructuralError, match=message):
        verify(function(body, A, F), "loop")


def test_blocks():
    vi = axis(4, "vi")
    good = Block("b", (vi,), (), (BufferRegion(A, points(vi)),), Store(A, const(0), (vi.var,)))
    verify(function(root(loop_over(realize(good, i))), A))
    cases = [
        (good.replace(body=Store(A, const(0), (i,))), [i], "i is used.*a block's body uses the block's axes"),
        (good.replace(writes=()), [i], "block b writes A, which its write regions leave out"),
        (
            good.replace(body=Store(A, F[0, vi.var].astype("int32"), (vi.var,))),
            [i],
            "block b reads F, which its regions leave out",
        ),
        (good, [], "block b has 1 axes, 0 values given"),
        (good, [i.astype("int64")], "axis vi is int32, its value .* is int64"),
        (good.replace(writes=(BufferRegion(F, points(vi)),)), [i], "its region 1"),
    ]
    for block, values, message in cases:
        with pytest.raises(StructuralError, match=message):
            verify(function(root(loop_over(realize(block, *values))), A, F))
    twice = seq(
        [loop_over(realize(good, i)), loop(y, 4, realize(good.replace(iter_vars=(axis(4, "w"),)), y))]
    )
    with pytest.raises(StructuralError, match="two blocks are named b"):
        verify(function(root(twice), A))


def test_reads_of_the_reduced_buffer_need_no_region():
    vk = axis(4, "vk", COMM_REDUCE)
    block = Block("b", (vk,), (), (BufferRegion(A, points(0)),), Store(A, A[0] + vk.var, (zero,)))
    verify(function(root(loop_over(realize(block, i))), A))


def test_stages():
    with pytest.raises(StructuralError, match="the body is not a root block"):
        verify(function(nothing()))
    with pytest.raises(StructuralError, match="block root is left over"):
        verify(matmul(), "loop")
    with pytest.raises(StructuralError, match=r"F is not flat: 2 index\(es\)"):
        verify(function(Evaluate(F[0, 1]), F), "flat")
    allocated = Allocate(decl_buffer((4,), name="t"), nothing())
    verify(function(allocated), "flat")


def test_the_message_marks_the_line():
    with pytest.raises(StructuralError, match=r"T.evaluate\(x \+ 1\)  # <-- here"):
        verify(function(seq([nothing(), Evaluate(x + 1)])), "loop")


def test_memory_is_visible_only_where_it_is_allocated():
    t = decl_buffer((4,), name="t")
    with pytest.raises(StructuralError, match="nothing defines the buffer t"):
        verify(function(seq([Allocate(t, nothing()), Evaluate(t[0])])), "flat")
