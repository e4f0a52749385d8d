"""Printed IR is TVMScript: it reads as in the goldens and parses as Python."""

import ast
import math
import random
from textwrap import dedent

import pytest
from tir_programs import axis, function, matmul, nothing, points, realize, root

from tilewright.tir import (
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
    IRModule,
    Let,
    LetStmt,
    Load,
    MatchBuffer,
    Ramp,
    Range,
    Select,
    Store,
    Var,
    While,
    all_of,
    any_of,
    binary,
    const,
    decl_buffer,
    if_then_else,
    intrinsic,
    logical_not,
    loop,
    maximum,
    negate,
    seq,
    show,
    truncdiv,
)
from tilewright.tir.slices import stop_of

x, y, z, n = Var("x"), Var("y"), Var("z"), Var("n")
f = Var("f", "float32")


def check(node, expected, mark=()):
    text = show(node, mark)
    ast.parse(text)
    assert text == dedent(expected).strip("\n")


def test_a_function_whose_name_is_none_prints_as_a_private_one():
    text = str(matmul().with_attr("global_symbol", None))
    assert text.startswith("@T.prim_func(private=True)\ndef main(") and "None" not in text


def test_matmul_in_block_form():
    check(
        matmul(8, 9, 64),
        """
        @T.prim_func
        def matmul(A: T.Buffer((8, 64), "float32"), B: T.Buffer((64, 9), "float32"), C: T.Buffer((8, 9), "float32")):
            # with T.block("root"):
            for i, j, k in T.grid(8, 9, 64):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    """,
    )


def test_marks_split_a_grid_at_the_guilty_loop():
    func = matmul()
    outer = func.body.block.body
    text = show(func, (outer.body,))
    assert (
        "    for i in range(4):\n        for j in range(5):  # <-- here\n            for k in range(6):\n"
        in text
    )
    block = outer.body.body.body.block
    assert 'with T.block("C"):  # <-- here' in show(func, (block,))
    assert "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]  # <-- here" in show(func, (block.body.value.b,))
    assert "# <-- here" not in str(func)


def test_kinds_predicates_and_annotations():
    A = decl_buffer((100,), "int8", "A")
    io, ii = Var("i.outer"), Var("i.inner")
    block = Block(
        "b", (axis(100, "vi"),), (), (BufferRegion(A, points(0)),), nothing(), annotations={"pragma": "x"}
    )
    inner = loop(ii, 32, realize(block, io * 32 + ii, where=io * 32 + ii < 100), "vectorized")
    body = For(io, IntImm(0), IntImm(4), "thread_binding", inner, "blockIdx.x", {"a": 1})
    check(
        function(root(body), A),
        """
        @T.prim_func
        def f(A: T.Buffer((100,), "int8")):
            # with T.block("root"):
            for i_outer in T.thread_binding(4, thread="blockIdx.x", annotations={"a": 1}):
                for i_inner in T.vectorized(32):
                    with T.block("b"):
                        vi = T.axis.spatial(100, i_outer * 32 + i_inner)
                        T.where(i_outer * 32 + i_inner < 100)
                        T.reads()
                        T.writes(A[0])
                        T.block_attr({"pragma": "x"})
                        T.evaluate(0)
    """,
    )


def test_flat_form():
    A = decl_buffer((4, 32), name="A")
    flat, local = Buffer("A", (IntImm(128),), data=A.data), decl_buffer((8,), name="t", scope="local")
    bx, tx, i = Var("i.outer"), Var("i.inner"), Var("i")
    index = Ramp(bx, IntImm(1), 8)
    inside = seq(
        [
            loop(i, 8, Store(local, flat[bx * 32 + tx], (i,))),
            Store(
                flat,
                Load(local, (Ramp(IntImm(0), IntImm(1), 8),)),
                (index,),
                binary("lt", index, Broadcast(n, 8)),
            ),
        ]
    )
    guarded = IfThenElse(intrinsic("likely", bx * 32 + tx < n), Allocate(local, inside))
    threads = loop(
        bx, 4, loop(tx, 32, guarded, "thread_binding", "threadIdx.x"), "thread_binding", "blockIdx.x"
    )
    check(
        function(threads, n, A, **{"tir.noalias": True}),
        """
        @T.prim_func
        def f(n: T.int32, A: T.Buffer((4, 32), "float32")):
            T.func_attr({"tir.noalias": True})
            A_1 = T.Buffer((128,), "float32", data=A.data)
            with T.launch_thread("blockIdx.x", 4) as blockIdx_x:
                with T.launch_thread("threadIdx.x", 32) as threadIdx_x:
                    if T.likely(blockIdx_x * 32 + threadIdx_x < n):
                        t = T.decl_buffer((8,), scope="local")
                        for i in range(8):
                            t[i] = A_1[blockIdx_x * 32 + threadIdx_x]
                        A_1.vstore([T.Ramp(blockIdx_x, 1, 8)], t[0:8], predicate=T.Ramp(blockIdx_x, 1, 8) < T.Broadcast(n, 8))
    """,  # noqa: E501
    )


def test_symbolic_shapes_come_from_handles():
    A, B = decl_buffer((n, 4), name="A"), decl_buffer((n + 1,), "int64", "B")
    check(
        function(loop(x, n, Store(B, const(0, "int64"), (x,)), min=1), A, B),
        """
        @T.prim_func
        def f(var_A: T.handle, var_B: T.handle):
            n = T.int32()
            A = T.match_buffer(var_A, (n, 4), "float32")
            B = T.match_buffer(var_B, (n + 1,), "int64")
            for x in range(1, n + 1):
                B[x] = T.int64(0)
    """,
    )


def test_other_statements():
    A = decl_buffer((), "int32", "A")
    t = decl_buffer((1,), "int32", "t")
    body = seq(
        [
            While(A[()] < 3, LetStmt(x, A[()], Store(A, x + 1, ()))),
            LetStmt(y, const(1) + 0, Store(A, y, ())),
            Allocate(t, nothing()),
            IfThenElse(A[()] > 1, nothing(), Evaluate(intrinsic("call_packed", "print", A[()]))),
            Evaluate(intrinsic("call_extern", "puts", 'a"b')),
        ]
    )
    check(
        body,
        """
        while A[()] < 3:
            x: T.int32 = A[()]
            A[()] = x + 1
        with T.LetStmt(1) as y:
            A[()] = y
        with T.decl_buffer((1,), "int32") as t:
            T.evaluate(0)
        if A[()] > 1:
            T.evaluate(0)
        else:
            T.call_packed("print", A[()])
        T.call_extern("int32", "puts", 'a"b')
    """,
    )


def test_views_and_buffer_properties():
    A = decl_buffer((8, 8), name="A", strides=(16, 1), elem_offset=4, data_alignment=128, offset_factor=4)
    s0, off = Var("s0"), Var("off")
    view = decl_buffer((4, 8), name="V", strides=(s0, 1), elem_offset=off)
    source = BufferRegion(A, (Range(x * 4, IntImm(4)), Range(IntImm(0), IntImm(8))))
    block = Block("b", (), (source,), (), nothing(), match_buffers=(MatchBuffer(view, source),))
    text = show(function(root(loop(x, 2, realize(block))), A))
    ast.parse(text)
    assert (
        'A: T.Buffer((8, 8), "float32", strides=(16, 1), elem_offset=4, align=128, offset_factor=4)' in text
    )
    assert "V = T.match_buffer(A[x * 4:x * 4 + 4, 0:8], (4, 8), strides=(s0, 1), elem_offset=off)" in text


def test_modules():
    assert show(IRModule({"main": function(nothing())})) == dedent("""
        @I.ir_module
        class Module:
            @T.prim_func
            def main():
                T.func_attr({"global_symbol": "f"})
                T.evaluate(0)""").lstrip("\n")


@pytest.mark.parametrize(
    "e, text",
    [
        ((x + y) * z, "(x + y) * z"),
        (x + (y + z), "x + (y + z)"),
        (x - (y - z), "x - (y - z)"),
        (x - y - z, "x - y - z"),
        (x // 4 % y, "x // 4 % y"),
        (x // (y % 4), "x // (y % 4)"),
        ((x & y) << 2, "(x & y) << 2"),
        ((x << 2) & y, "x << 2 & y"),
        ((x + 1) << y, "x + 1 << y"),
        (x | y ^ z & x, "x | y ^ z & x"),
        (binary("eq", x < y, y < z), "(x < y) == (y < z)"),
        (all_of(x < y, any_of(y < z, x < 3)), "x < y and (y < z or x < 3)"),
        (logical_not(all_of(x < y, y < z)), "not (x < y and y < z)"),
        (binary("and", logical_not(x < y), y < z), "not x < y and y < z"),
        (truncdiv(x, y) + maximum(x, 3), "T.truncdiv(x, y) + T.max(x, 3)"),
        (x + -3, "x + -3"),
        (const(3, "int64"), "T.int64(3)"),
        (const(True), "T.bool(True)"),
        (const(2.0), "T.float32(2)"),
        (const(0.1, "float64"), "T.float64(0.1)"),
        (const(-0.0), "T.float32(-0.0)"),
        (-f, "-f"),
        (-(f * f), "-(f * f)"),
        (-f * f, "-f * f"),
        (f - -f, "f - -f"),
        (negate(-f), "-(-f)"),
        (const(0.0) - f, "T.float32(0) - f"),
        (const(math.inf), 'T.float32("inf")'),
        (const(math.nan), 'T.float32("nan")'),
        (Cast("float32", x), 'T.Cast("float32", x)'),
        (Select(x < y, x, y), "T.Select(x < y, x, y)"),
        (if_then_else(x < y, x, y), "T.if_then_else(x < y, x, y)"),
        (intrinsic("exp", f), "T.exp(f)"),
        (Call("reinterpret", (f,), "int32"), 'T.reinterpret("int32", f)'),
        (Call("clz", (x,), "int64"), 'T.clz(x, dtype="int64")'),
        (Ramp(x, IntImm(2), 4), "T.Ramp(x, 2, 4)"),
        (Let(y, x + 1, y * y), "T.Let(y * y, where={y: x + 1})"),
        (axis(4, "v"), 'T.iter_var(v, T.Range(0, 4), "DataPar", "")'),
    ],
)
def test_expressions(e, text):
    assert show(e) == text
    ast.parse(text)


def test_vector_indices_print_as_slices():
    A = decl_buffer((64,), name="A")
    assert show(Load(A, (Ramp(x * 8, IntImm(1), 8),))) == "A[x * 8:x * 8 + 8]"
    assert show(Load(A, (Ramp(x * 8, IntImm(2), 4),))) == "A[x * 8:x * 8 + 8:2]"
    assert show(Load(A, (Ramp(x, y, 4),))) == "A[T.Ramp(x, y, 4)]"


def test_names_are_unique_among_the_visible_and_free_again_afterwards():
    i, j, k = Var("i"), Var("i"), Var("i")
    body = seq([loop(i, 2, loop(j, 3, Evaluate(i + j))), loop(k, 4, Evaluate(k + 0))])
    check(
        body,
        """
        for i in range(2):
            for i_1 in range(3):
                T.evaluate(i + i_1)
        for i in range(4):
            T.evaluate(i)
    """,
    )
    assert show(Var("lambda") + Var("T") + Var("2x") + Var("a.b")) == "_lambda + T_1 + _2x + a_b"


def test_parentheses_follow_python():
    """Python reads every printed operator tree as the tree that was printed."""
    rng = random.Random(3)
    infix = ("add", "sub", "mul", "floordiv", "floormod", "bitand", "bitor", "bitxor", "shl", "shr")

    def tree(depth):
        if depth == 0:
            return rng.choice((x, y, z))
        return Binary(rng.choice(infix), tree(rng.randrange(depth)), tree(rng.randrange(depth)))

    for _ in range(200):
        e = tree(6)
        assert ast.unparse(rebuilt(e)) == ast.unparse(ast.parse(show(e), mode="eval"))


def rebuilt(e):
    nodes = {
        "add": ast.Add,
        "sub": ast.Sub,
        "mul": ast.Mult,
        "floordiv": ast.FloorDiv,
        "floormod": ast.Mod,
        "bitand": ast.BitAnd,
        "bitor": ast.BitOr,
        "bitxor": ast.BitXor,
        "shl": ast.LShift,
        "shr": ast.RShift,
    }
    return ast.Name(e.name) if isinstance(e, Var) else ast.BinOp(rebuilt(e.a), nodes[e.op](), rebuilt(e.b))


def test_an_end_of_a_type_without_sums_is_written_as_one():
    """Of bool; what is wrong with it is for others to say, who may print it."""
    low, extent = Var("low", "bool"), IntImm(1, "bool")
    stop = stop_of(low, extent)
    assert isinstance(stop, Binary) and stop.op == "add" and stop.a is low and stop.b is extent
