"""Every construct of the script language, parsed and printed."""
from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ScriptError
from tilewright.tir import COMM_REDUCE, DATA_PARALLEL, OPAQUE, ORDERED, interp, walk
from tilewright.tir.stmt import Block, For, PrimFunc


def parse(body: str, params: str = "A: T.Buffer((8, 8), 'float32'), n: T.int32") -> PrimFunc:
    text = f"@T.prim_func\ndef f({params}):\n" + "".join(f"    {line}\n" for line in dedent(body).strip().split("\n"))
    func = from_source(text)
    assert_round_trip(func)
    return func


def body_of(func: PrimFunc) -> str:
    """The printed body, below the signature and the remark about the root block."""
    lines = [line[4:] for line in str(func).split("\n")[2:]]
    return "\n".join(line for line in lines if not line.startswith('# with T.block("root")'))


def check(source: str, printed: str | None = None, **kwargs: str) -> PrimFunc:
    """source prints as `printed`, or as it is."""
    func = parse(source, **kwargs)
    assert body_of(func) == dedent(printed if printed is not None else source).strip()
    return func


def test_loops_of_every_kind():
    func = check("""
        for i in range(8):
            for j in range(2, n + 2):
                A[i, j] = T.float32(0)
        for i in T.parallel(8):
            for j in T.unroll(8):
                A[i, j] = T.float32(1)
        for i in T.serial(8, annotations={"pragma_auto_unroll": 16, "names": ["a", "b"], "on": True, "x": 0.5}):
            for j in T.vectorized(8):
                A[i, j] = T.float32(2)
        for i in T.thread_binding(8, thread="blockIdx.x", annotations={"note": None}):
            A[i, 0] = T.float32(3)
        with T.launch_thread("threadIdx.x", n) as threadIdx_x:
            A[threadIdx_x, 0] = T.float32(4)
    """)
    loops = [s for s in walk(func.body) if isinstance(s, For)]
    assert [s.kind for s in loops] == ["serial", "serial", "parallel", "unroll", "serial", "vectorized",
                                       "thread_binding", "thread_binding"]
    assert str(loops[1].min) == "2" and str(loops[1].extent) == "n"
    assert loops[4].annotations == {"pragma_auto_unroll": 16, "names": ["a", "b"], "on": True, "x": 0.5}


def test_spellings_of_loops():
    check("""
        for i, j in T.grid(8, n):
            A[i, j] = 0
        for i in T.serial(1, 5):
            A[i, i] = 0.5
        for i in T.thread_binding(0, 4, "threadIdx.x"):
            A[i, 0] = 1
        i = T.launch_thread("blockIdx.x", 4)
        A[i, i] = 2
    """, """
        for i in range(8):
            for j in range(n):
                A[i, j] = T.float32(0)
        for i in range(1, 5):
            A[i, i] = T.float32(0.5)
        with T.launch_thread("threadIdx.x", 4) as threadIdx_x:
            A[threadIdx_x, 0] = T.float32(1)
        with T.launch_thread("blockIdx.x", 4) as blockIdx_x:
            A[blockIdx_x, blockIdx_x] = T.float32(2)
    """)


def test_the_dtype_of_a_loop_is_that_of_its_bounds():
    func = check("""
        for i in range(T.int64(8)):
            for j in T.parallel(T.int64(1), T.int64(3)):
                A[i, j] = T.float32(0)
    """)
    assert [s.loop_var.dtype for s in walk(func.body) if isinstance(s, For)] == ["int64", "int64"]


def test_axes_of_every_kind():
    func = check("""
        for i, j, k, r in T.grid(8, 8, 4, n):
            with T.block("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                vk = T.axis.scan((1, 5), k + 1)
                vo = T.axis.opaque(n, r)
                vx = T.axis.spatial(T.int64(9), T.Cast("int64", i + 1))
                T.where(i + j < 7 and r > 0)
                T.reads(A[0:8, vj])
                T.writes(A[vi, vk:vk + 3])
                T.block_attr({"a": 1, "b": T.int32(4), "c": ["x", (1, 2)]})
                with T.init():
                    A[vi, vk] = T.float32(0)
                A[vi, vk] = A[vi, vj]
    """)
    block = next(s for s in walk(func.body) if isinstance(s, Block) and s.name == "b")
    assert [iv.iter_type for iv in block.iter_vars] == [DATA_PARALLEL, COMM_REDUCE, ORDERED, OPAQUE, DATA_PARALLEL]
    assert str(block.iter_vars[2].dom.extent) == "4" and block.iter_vars[4].var.dtype == "int64"


def test_blocks_get_names_of_their_own():
    check("""
        for i in range(8):
            with T.block("B"):
                v = T.axis.S(8, i)
                A[v, 0] = 0
        for i in range(8):
            with T.block("B"):
                v = T.axis.R(8, i)
                A[v, 0] += 1
    """, """
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                T.reads()
                T.writes(A[v, 0])
                A[v, 0] = T.float32(0)
        for i in range(8):
            with T.block("B_1"):
                v = T.axis.reduce(8, i)
                T.reads(A[v, 0])
                T.writes(A[v, 0])
                A[v, 0] = A[v, 0] + T.float32(1)
    """)


def test_branches_and_while():
    check("""
        if n > 3 and not n == 5:
            A[0, 0] = T.float32(0)
        else:
            if T.likely(n < 2):
                A[0, 0] = T.float32(1)
        while A[0, 0] < T.float32(3):
            A[0, 0] = A[0, 0] + T.float32(1)
        if 0 <= n and n < 8:
            pass
    """)
    check("""
        if 0 <= n < 8:
            A[0, 0] = 1.0
        elif n == 9:
            A[0, 0] = 2.0
    """, """
        if 0 <= n and n < 8:
            A[0, 0] = T.float32(1)
        else:
            if n == 9:
                A[0, 0] = T.float32(2)
    """)


def test_variables():
    check("""
        x: T.int32 = n + 1
        with T.LetStmt(x * 2) as y:
            A[0, 0] = T.Cast("float32", y)
        A[x, 0] = T.Let(z * z, where={z: A[x, x]})
    """)
    check("""
        x = n + 1
        y = x
        B = A
        m = T.meta_var(4)
        a, b = x, 3
        B[a, b] = m
        x = x + 1
        A[x, y] = 0
    """, """
        x: T.int32 = n + 1
        y: T.int32 = x
        a: T.int32 = x
        b: T.int32 = 3
        A[a, b] = T.float32(4)
        x_1: T.int32 = x + 1
        A[x_1, y] = T.float32(0)
    """)


def test_buffers_with_everything():
    check("""
        B = T.alloc_buffer((4, n), "int64", strides=(n, 1), elem_offset=2, scope="local", align=128, offset_factor=8, axis_separators=[1])
        C = T.alloc_buffer((8,))
        with T.block("b"):
            T.reads()
            T.writes(B[0, 0], C[0])
            B[0, 0] = T.int64(1)
            C[0] = T.float32(1)
    """)  # noqa: E501
    check("""
        B = T.decl_buffer((4, 4), "int32", scope="shared", annotations={"padded": True})
        V = T.Buffer((16,), "int32", data=B.data)
        B[0, 0] = 1
        V[3] = V[4]
        with T.decl_buffer((2,)) as C:
            C[0] = T.float32(1)
        T.evaluate(0)
    """)


def test_old_allocate():
    check("""
        p = T.allocate([16], "float32", "local")
        B = T.Buffer((4, 4), "float32", data=p, scope="local")
        B[0, 1] = A[0, 1]
    """, """
        p = T.decl_buffer((16,), scope="local")
        B = T.Buffer((4, 4), "float32", scope="local", data=p.data)
        B[0, 1] = A[0, 1]
    """)


def test_symbolic_shapes_and_views():
    func = check("""
        m = T.int32()
        s = T.int64()
        B = T.match_buffer(var_B, (m, n), "float16", strides=(s, T.int64(1)), elem_offset=s)
        for i, j in T.grid(m, n):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vi:vi + 4, 0:n])
                T.writes()
                s0 = T.int32()
                o = T.int32()
                V = T.match_buffer(B[vi:vi + 4, 0:n], (4, n), "float16", strides=(s0, 1), elem_offset=o)
                T.evaluate(V[0, 0])
    """, params="var_B: T.handle, n: T.int32")
    assert [b.name for b in func.buffers] == ["B"]


def test_predicated_vectors():
    check("""
        A[0, 0:8] = A[1, 0:16:2] * T.Broadcast(T.float32(2), 8)
        A.vstore([n, T.Ramp(n * 8, 1, 4)], A.vload([1, T.Ramp(n, 1, 4)], predicate=T.Ramp(0, 1, 4) < T.Broadcast(n, 4)), predicate=T.Ramp(0, 1, 4) < T.Broadcast(n, 4))
        A[0, n * 2 + 3:n * 2 + 7] = A[0, T.Ramp(n, -1, 4)]
    """)  # noqa: E501
    check("A[0, 0:8] = 1", "A[0, 0:8] = T.Broadcast(T.float32(1), 8)")


def test_literals_of_every_type():
    check("""
        T.evaluate(T.int8(-3))
        T.evaluate(T.uint64(18446744073709551615))
        T.evaluate(T.bool(True))
        T.evaluate(T.float64(0.1))
        T.evaluate(T.float16(0.5))
        T.evaluate(T.bfloat16(1.5))
        T.evaluate(T.float32("nan"))
        T.evaluate(T.float32("-inf"))
        T.evaluate(T.float32(-0.0))
        T.evaluate(T.float64(1e+300))
        T.evaluate(-3)
        T.evaluate(T.int64(5000000000))
    """)
    check("T.evaluate(5000000000)", "T.evaluate(T.int64(5000000000))")
    check('A[0, 0] = -T.infinity("float32")', 'A[0, 0] = T.float32("-inf")')
    check('A[0, 0] = T.min_value("float32")', 'A[0, 0] = T.float32("-inf")')


@pytest.mark.parametrize("text", [
    "n * 1 + 0", "T.int32(2) * 3 + n", "T.max(T.int32(1), 2)", "0 - n", "n // 4 % 3", "n - (n - 1)", "n << 2 >> n",
    "n & 3 | n ^ 1", "T.truncdiv(n, 3)", "T.truncmod(n, 3)", "T.min(n, 3)", "T.abs(n)", "T.clz(n)", "T.popcount(n)",
    "T.bitwise_not(n)", "T.Select(n > 3, n, 4)", "T.if_then_else(n > 3, n, 4)", 'T.Cast("int64", n)',
    'T.Cast("int32", n)', 'T.Cast("float32", 3)', "T.exp(A[0, 0])", "T.pow(A[0, 0], A[1, 1])",
    "T.atan2(A[0, 0], A[0, 1])",
    "T.fma(A[0, 0], A[0, 0], A[0, 0])", 'T.reinterpret("float32", n)', "T.isnan(A[0, 0])", "(n < 3) == (n > 1)",
    "n < 3 or n > 5 and not n == 4", "T.bool(True) and n < 3", "not T.bool(False)", "T.checked_index(n, 8)",
    "A[0, 0] / A[0, 1]", 'T.access_ptr(A[0, 0], dtype="handle")', 'T.access_ptr(A[0, 0], 8, 8, dtype="handle")',
    "n % T.int32(0)", 'T.call_packed("f", n, "text", A[0, 0])', "T.sigmoid(A[0, 0] + T.float32(1))",
])
def test_expressions_come_back_as_they_are(text):
    effect = "T.call_packed" in text
    check(text if effect else f"T.evaluate({text})")


@pytest.mark.parametrize("text, printed", [
    ("2 * 3 + n", "6 + n"), ("max(2, 3)", "3"), ("max(n, 3)", "T.max(n, 3)"), ("abs(n)", "T.abs(n)"),
    ("n if n > 3 else 4", "T.if_then_else(n > 3, n, 4)"), ("1 if 3 > 2 else n", "1"), ("-n", "0 - n"), ("+n", "n"),
    ("~n", "T.bitwise_not(n)"), ("T.cast(n, 'int64')", 'T.Cast("int64", n)'),
    ("n.astype('int64')", 'T.Cast("int64", n)'),
    ("T.float32(n)", 'T.Cast("float32", n)'), ("A[0, 0] * 2", "A[0, 0] * T.float32(2)"),
    ("A[0, 0] + n", 'A[0, 0] + T.Cast("float32", n)'),
    ("T.ceildiv(n, 4)", "(n + 3) // 4"), ("T.power(A[0, 0], 2)", "T.pow(A[0, 0], T.float32(2))"),
    ("T.const(3)", "3"), ('T.const(3, "int64")', "T.int64(3)"), ('T.IntImm("int64", 3)', "T.int64(3)"),
    ('T.FloatImm("float32", 0.5)', "T.float32(0.5)"),
    ('T.call_intrin("float32", "tir.exp", A[0, 0])', "T.exp(A[0, 0])"),
    ("T.exp10(A[0, 0])", "T.pow(T.float32(10), A[0, 0])"), ("T.fabs(A[0, 0])", "T.abs(A[0, 0])"),
    ("T.subtract(n, 1)", "n - 1"), ("T.multiply(n, 2)", "n * 2"), ("T.add(n, 1)", "n + 1"),
    ("T.div(n, 2)", "T.truncdiv(n, 2)"), ("T.div(A[0, 0], A[0, 1])", "A[0, 0] / A[0, 1]"),
    ("T.boolean(True)", "T.bool(True)"), ("T.hypot(A[0, 0], 3)", "T.hypot(A[0, 0], T.float32(3))"),
    ("A[0, 0] ** 2", "T.pow(A[0, 0], T.float32(2))"), ("T.all(n > 1, n < 3)", "n > 1 and n < 3"),
    ("T.any(n > 1, n < 3)", "n > 1 or n < 3"), ("(n > 1) & (n < 3)", "n > 1 and n < 3"), ("T.floordiv(n, 3)", "n // 3"),
    ("T.indexmod(n, 3)", "n % 3"), ("T.shift_left(n, 1)", "n << 1"),
    ("T.address_of(A[0, 1])", 'T.access_ptr(A[0, 1], dtype="handle")'),
    ('A.access_ptr("r")', 'T.access_ptr(A[0, 0], 8, 8, dtype="handle")'), ("A.shape[0]", "8"), ("len(A.shape)", "2"),
    ("T.call_extern('puts', 'x', dtype='int32')", 'T.evaluate(T.call_extern("int32", "puts", "x"))'),
    ("T.EQ(n, 3)", "n == 3"), ("T.Not(n > 3)", "not n > 3"), ("float('inf')", 'T.float32("inf")'),
    ("1 if int(A.shape[0]) == 8 else A", "1"), ("1 if A.dtype == T.float32 else A", "1"),
    ("1 if A.shape == (8, 8) else A", "1"), ("1 if A.dtype in (T.int8, T.float32) else A", "1"),
])
def test_spellings_of_expressions(text, printed):
    printed = printed.removeprefix("T.evaluate(") if "call_extern" in printed else f"T.evaluate({printed})"
    check(f"T.evaluate({text})", printed.removesuffix(")") if "call_extern" in printed else printed)


def test_regions():
    check("""
        with T.block("b"):
            T.reads([A[:, 2:5], A])
            T.writes(A[n, :], A[0:n + 1, n + 1:n + 3])
            A[n, 0] = A[0, 0]
    """, """
        with T.block("b"):
            T.reads(A[0:8, 2:5], A[0:8, 0:8])
            T.writes(A[n, 0:8], A[0:n + 1, n + 1:n + 3])
            A[n, 0] = A[0, 0]
    """)


def test_attributes_and_calls():
    func = parse("""
        "what it does"
        T.func_attr({"tir.noalias": True, "target": "llvm", "level": 2})
        T.call_extern("int32", "puts", "text")
        T.call_packed("show", A.access_ptr("rw"), n)
        T.assume(n > 3)
        A[0, 0] += 1
        A[0, 0] *= A[0, 1]
    """)
    assert func.attrs == {"global_symbol": "f", "tir.noalias": True, "target": "llvm", "level": 2}
    assert 'T.call_packed("show", T.access_ptr(A[0, 0], 8, 8, dtype="handle"), n)' in str(func)


def test_constants_above_the_function():
    func = from_source("""
        from tvm.script import tir as T
        N = 2 * 4
        shape = (N, N)

        @T.prim_func
        def f(A: T.Buffer(shape, "float32"), B: T.Buffer[(N,), "float32"]) -> None:
            for i in range(N - 1):
                B[i] = A[i, N // 2]
    """)
    assert str(func.buffers[0].shape) == "(8, 8)" and "range(7)" in str(func)


def test_what_it_means():
    func = from_source("""
        @T.prim_func
        def f(A: T.Buffer((6, 4), "float32"), B: T.Buffer((6,), "float32")):
            for i, k in T.grid(6, 4):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 0
                    B[vi] += T.exp(A[vi, vk]) if vk > 0 else 1.0
    """)
    a = np.random.default_rng(0).random((6, 4), "float32")
    b = np.empty(6, "float32")
    interp.run(func, a, b)
    np.testing.assert_allclose(b, 1 + np.exp(a[:, 1:].astype("float64")).sum(1), rtol=1e-6)


def test_buffers_of_a_function_without_blocks():
    """They are those of the root block, which then reads and writes what the statements do."""
    func = check("""
        for i in range(8):
            x = T.alloc_buffer((1,), "int32", scope="local")
            x[0] = n
            while x[0] > i:
                x[0] = x[0] - 8
            A[i, 0] = A[i, 1] + x[0]
    """, """
        T.reads(A[0:8, 1])
        T.writes(A[0:8, 0])
        x = T.alloc_buffer((1,), "int32", scope="local")
        for i in range(8):
            x[0] = n
            while x[0] > i:
                x[0] = x[0] - 8
            A[i, 0] = A[i, 1] + x[0]
    """, params="A: T.Buffer((8, 8), 'int32'), n: T.int32")
    for run in (lambda *args: interp.run(func, *args), tw.build(func)):
        out = np.ones((8, 8), "int32")
        run(out, 30)
        np.testing.assert_array_equal(out[:, 0], [31 - 8 * -(-(30 - i) // 8) for i in range(8)])


def test_spellings_of_older_scripts():
    check("""
        x = T.allocate([8], "float32", "global")
        y = T.buffer_decl((8,), "float32", data=x)
        y[0] = T.call_pure_extern("float32", "sqrtf", A[0, 0])
        A[0, 1] = y[0]
    """, """
        x = T.decl_buffer((8,))
        y = T.Buffer((8,), "float32", data=x.data)
        y[0] = T.call_extern("float32", "sqrtf", A[0, 0])
        A[0, 1] = y[0]
    """)


def test_thread_axes_that_are_named_first():
    check("""
        bx = T.env_thread("blockIdx.x")
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(bx, 8)
        with T.launch_thread(tx, 8):
            A[bx, tx] = T.float32(0)
    """, """
        with T.launch_thread("blockIdx.x", 8) as blockIdx_x:
            with T.launch_thread("threadIdx.x", 8) as threadIdx_x:
                A[blockIdx_x, threadIdx_x] = T.float32(0)
    """)


@pytest.mark.parametrize("name", ["print", "exp", "alloc_buffer"])
def test_a_name_of_T_without_T(name):
    with pytest.raises(ScriptError, match=rf"the name '{name}' is not defined here(?s:.*)did you mean T\.{name}\?"):
        parse(f"A[0, 0] = {name}(A[0, 1])")


def test_a_variable_that_let_binds():
    check("""
        x = T.int32()
        with T.let(x, n + 1):
            A[x, 0] = T.float32(1)
        with T.LetStmt(n + 2, var=x):
            A[x, x] = T.float32(2)
        with T.LetStmt(3) as y:
            A[y, y] = T.float32(3)
    """, """
        with T.LetStmt(n + 1) as x:
            A[x, 0] = T.float32(1)
        with T.LetStmt(n + 2) as x:
            A[x, x] = T.float32(2)
        y: T.int32 = 3
        A[y, y] = T.float32(3)
    """)
    for body, match in [
        ("with T.let(n, 1):\n    A[n, n] = 1.0", "n is no variable that is still to be bound"),
        ("x = T.int64()\nwith T.let(x, n):\n    A[n, n] = 1.0", "the variable is int64, its value is int32"),
        ("x = T.int32()\nwith T.let(x, n) as y:\n    A[n, n] = 1.0", "the variable has a name already"),
        ("x = T.int32()\nA[x, x] = 1.0", "x is used, but nothing defines it here"),
        ("with T.let(x, n):\n    A[n, n] = 1.0", "the name 'x' is not defined here"),
    ]:
        with pytest.raises(ScriptError, match=match):
            parse(body)


@pytest.mark.parametrize("made", ['T.SizeVar("m", "int64")', 'T.Var("m", "int64")', 'T.int64(is_size_var=True)',
                                  'T.var("int64")', "T.int64()"])
def test_variables_of_shapes(made):
    func = parse(f"""
        m = {made}
        B = T.match_buffer(b, (m, 2))
        for i in T.serial(m):
            B[i, 0] = B[i, 1]
    """, params="b: T.handle")
    b = np.arange(6, dtype="float32").reshape(3, 2)
    tw.build(func)(b)
    assert (b[:, 0] == [1, 3, 5]).all() and (b[:, 1] == [1, 3, 5]).all()


def test_a_vector_is_stored_from_a_place_on():
    func = check("""
        for i in range(8):
            A.vstore([i, 0], A.vload([7 - i, 0], "float32x8") * T.Broadcast(T.float32(2), 8))
            A.vstore((i, T.Ramp(0, 1, 4)), A.vload([i, T.Ramp(4, 1, 4)], "float32x4"))
            A.vstore([i, n], 1)
            A.vstore([i, T.Ramp(4, 2, 2)], 3)
    """, """
        for i in range(8):
            A[i, 0:8] = A[7 - i, 0:8] * T.Broadcast(T.float32(2), 8)
            A[i, 0:4] = A[i, 4:8]
            A[i, n] = T.float32(1)
            A[i, 4:8:2] = T.Broadcast(T.float32(3), 2)
    """)
    given = np.random.default_rng(0).normal(size=(8, 8)).astype("float32")
    want = given.astype("float64")
    for i in range(8):
        want[i] = want[7 - i] * 2
        want[i, :4] = want[i, 4:]
        want[i, 2] = 1
        want[i, 4:8:2] = 3
    for run in (lambda x: interp.run(func, x, 2), lambda x: tw.build(func)(x, 2)):
        out = given.copy()
        run(out)
        np.testing.assert_array_equal(out, want)


def test_low_bit_integers_in_scripts():
    func = parse("""
        for i in range(8):
            with T.block("pack"):
                v = T.axis.spatial(8, i)
                P[v] = T.pack_int4(X[2 * v], T.saturate_cast(T.int8, F[v]))
        for i in range(16):
            U[i] = T.unpack_int4(P, i)
            V[i] = T.unpack_int4(P, i, signed=False)
        for i in range(8):
            S[i] = T.saturate_cast("uint8", X[i])
    """, "X: T.Buffer((16,), 'int8'), F: T.Buffer((8,), 'float32'), P: T.Buffer((8,), 'uint8'), "
         "U: T.Buffer((16,), 'int8'), V: T.Buffer((16,), 'uint8'), S: T.Buffer((8,), 'uint8')")
    x, f = np.arange(-8, 8, dtype="int8"), np.array([-300, -3.7, 0, 5.2, 7, 200, np.inf, -8], "float32")
    high = np.clip(np.trunc(f.astype("float64")), -128, 127).astype("int8")
    pairs = np.stack([x[::2], high], 1).reshape(16).view("uint8") & 15
    for run in (lambda *a: interp.run(func, *a), tw.build(func)):
        p, u, v, s = (np.zeros(n, d) for n, d in ((8, "uint8"), (16, "int8"), (16, "uint8"), (8, "uint8")))
        run(x, f, p, u, v, s)
        np.testing.assert_array_equal(p, pairs[::2] | pairs[1::2] << 4)
        np.testing.assert_array_equal(v, pairs)
        np.testing.assert_array_equal(u, np.where(pairs > 7, pairs.astype(int) - 16, pairs))
        np.testing.assert_array_equal(s, np.clip(x[:8], 0, None))


def test_a_pointer_outside_of_a_function_may_say_what_it_leads_to():
    assert T.handle("float32").dtype == T.handle().dtype == "handle"
    with pytest.raises(tw.TilewrightError):
        T.handle("no type")
