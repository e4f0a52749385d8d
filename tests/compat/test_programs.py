"""Programs in the idioms of TVM 0.4 to 0.19 that the seeds do not show, each run and compared with NumPy."""
import numpy as np
import pytest

from .hybrid_programs import outer_product, steps

RNG = np.random.default_rng(3)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ran(tvm, func, *inputs, shape, dtype="float32"):
    """The result of func(inputs..., out), through arrays of tvm.nd."""
    out = tvm.nd.array(np.zeros(shape, dtype))
    func(*(tvm.nd.array(x) for x in inputs), out)
    return out.numpy()


def test_vector_add_in_a_target_scope(tvm):
    from tvm import te
    n = te.size_var("n")
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute(a.shape, lambda *i: a(*i) + b(*i), name="C")
    s = te.create_schedule(c.op)
    bx, tx = s[c].split(c.op.axis[0], factor=16)
    s[c].parallel(bx)
    s[c].vectorize(tx)
    assert tvm.target.Target.current(allow_none=True) is None
    with tvm.target.Target("llvm -mcpu=x86-64-v3") as target, tvm.transform.PassContext(opt_level=3):
        assert tvm.target.Target.current() is target
        add = tvm.build(s, [a, b, c], name="vector_add")
    x, y = f32(1027), f32(1027)
    np.testing.assert_array_equal(ran(tvm, add, x, y, shape=1027), x + y)


def test_reduction_with_rfactor(tvm):
    from tvm import te
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    ko, ki = s[b].split(b.op.reduce_axis[0], factor=16)
    bf = s.rfactor(b, ki)
    s[bf].compute_at(s[b], s[b].op.axis[0])
    x = f32(33, 130)
    f = tvm.build(s, [a, b], "llvm")
    np.testing.assert_allclose(ran(tvm, f, x, shape=33), x.astype("float64").sum(1), rtol=1e-4, atol=1e-4)


def test_convolution_written_as_a_reduction_over_two_axes(tvm):
    from tvm import te
    n = te.var("n")
    image, kernel = te.placeholder((n, n), name="Input"), te.placeholder((3, 3), name="Filter")
    di, dj = te.reduce_axis((0, 3), name="di"), te.reduce_axis((0, 3), name="dj")
    out = te.compute((n - 2, n - 2), lambda i, j: te.sum(image[i + di, j + dj] * kernel[di, dj], axis=[di, dj]))
    f = tvm.build(te.create_schedule(out.op), [image, kernel, out], "llvm")
    x, w = f32(11, 11), f32(3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), (3, 3))
    want = np.einsum("ijkl,kl->ij", windows, w)
    np.testing.assert_allclose(ran(tvm, f, x, w, shape=(9, 9)), want, rtol=1e-4, atol=1e-5)


def test_a_reducer_of_its_own(tvm):
    from tvm import te
    n, m = te.var("n"), te.var("m")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
    a = te.placeholder((n, m), name="a")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: product(a[i, k], axis=k), name="b")
    x = f32(6, 9)
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    np.testing.assert_allclose(ran(tvm, f, x, shape=6), x.astype("float64").prod(1), rtol=1e-5)


def test_argmax_as_a_reduction_of_pairs(tvm):
    from tvm import te

    def combine(left, right):
        bigger = left[1] >= right[1]
        return tvm.tir.Select(bigger, left[0], right[0]), tvm.tir.Select(bigger, left[1], right[1])

    def identity(t0, t1):
        return tvm.tir.const(-1, t0), te.min_value(t1)

    argmax = te.comm_reducer(combine, identity, name="argmax")
    m, n = te.var("m"), te.var("n")
    idx, val = te.placeholder((m, n), name="idx", dtype="int32"), te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    t0, t1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    f = tvm.build(te.create_schedule(t0.op), [idx, val, t0, t1], "llvm")
    values = RNG.permutation(60).reshape(4, 15).astype("int32")
    numbers = np.tile(np.arange(15, dtype="int32"), (4, 1))
    found, best = tvm.nd.empty((4,), "int32"), tvm.nd.empty((4,), "int32")
    f(tvm.nd.array(numbers), tvm.nd.array(values), found, best)
    np.testing.assert_array_equal(found.asnumpy(), values.argmax(1))
    np.testing.assert_array_equal(best.asnumpy(), values.max(1))


def test_tuple_inputs_of_a_compute(tvm):
    from tvm import te
    m, n = te.var("m"), te.var("n")
    a0, a1 = te.placeholder((m, n), name="A0"), te.placeholder((m, n), name="A1")
    b0, b1 = te.compute((m, n), lambda i, j: (a0[i, j] + 2, a1[i, j] * 3), name="B")
    s = te.create_schedule(b0.op)
    outer, _ = s[b0].split(b0.op.axis[0], nparts=2)
    s[b0].parallel(outer)
    x, y = f32(5, 4), f32(5, 4)
    p, q = tvm.nd.empty((5, 4)), tvm.nd.empty((5, 4))
    tvm.build(s, [a0, a1, b0, b1], "llvm")(tvm.nd.array(x), tvm.nd.array(y), p, q)
    np.testing.assert_array_equal(p.numpy(), x + np.float32(2))
    np.testing.assert_array_equal(q.numpy(), y * np.float32(3))


def test_intrinsics_and_mathematics(tvm):
    from tvm import te
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda i: te.exp(a[i]) * tvm.tir.tanh(a[i]) + te.nearbyint(a[i]) - te.abs(a[i]), name="B")
    c = te.compute(a.shape, lambda i: te.if_then_else(te.all(a[i] > 0, te.any(a[i] < 1, i % 2 == 0)),
                                                     te.power(b[i], 2.0), te.div(b[i], 2.0)), name="C")
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    x = f32(64)
    y = x.astype("float64")
    b0 = np.exp(y) * np.tanh(y) + np.rint(y) - abs(y)
    i = np.arange(64)
    want = np.where((y > 0) & ((y < 1) | (i % 2 == 0)), b0 ** 2, b0 / 2)
    np.testing.assert_allclose(ran(tvm, tvm.build(s, [a, c], "llvm"), x, shape=64), want, rtol=2e-5, atol=1e-6)


def test_an_external_function_in_python(tvm):
    from tvm import te

    @tvm.register_func("tests.compat.mysum", override=True)
    def mysum(x, y):
        y.copyfrom(x.numpy() + 1)

    a = te.placeholder((12,), name="A")
    b = te.extern(a.shape, [a], lambda ins, outs: tvm.tir.call_packed("tests.compat.mysum", ins[0], outs[0]), name="B")
    c = te.compute(b.shape, lambda i: b[i] * 2.0, name="C")
    x = f32(12)
    f = tvm.build(te.create_schedule(c.op), [a, c], "llvm")
    np.testing.assert_array_equal(ran(tvm, f, x, shape=12), (x + 1) * 2)


def test_extern_with_ir_builder(tvm):
    from tvm import te

    def rotate(ins, outs):
        ib = tvm.tir.ir_builder.create()
        src, dst = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        rows, cols = ins[0].shape
        with ib.for_range(0, rows, name="i", kind="parallel") as i:
            row = ib.allocate("float32", (cols,), name="row", scope="local")
            with ib.for_range(0, cols, "j") as j:
                row[j] = src[i * cols + j]
            with ib.for_range(0, cols, "k") as k:
                with ib.if_scope(ib.likely(k < cols - 1)):
                    dst[i, k + 1] = row[k]
                with ib.else_scope():
                    dst[i, 0] = row[k]
        return ib.get()

    a = te.placeholder((6, 7), name="A")
    b = te.extern(a.shape, [a], rotate, name="rotated", dtype="float32")
    x = f32(6, 7)
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    np.testing.assert_array_equal(ran(tvm, f, x, shape=(6, 7)), np.roll(x, 1, axis=1))


def test_a_search_with_a_while_loop_and_let(tvm):
    from tvm import te

    def search(ins, outs):
        ib = tvm.ir_builder.create()
        keys, queries, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        n, m = ins[0].shape[0], ins[1].shape[0]
        with ib.for_range(0, m, for_type="serial") as i:
            low, high = ib.allocate("int32", (1,), "low"), ib.allocate("int32", (1,), "high")
            low[0], high[0] = 0, n
            wanted = ib.let("wanted", queries[i])
            with ib.while_loop(low[0] < high[0]):
                middle = tvm.tir.indexdiv(low[0] + high[0], 2)
                with ib.if_scope(keys[middle] < wanted):
                    low[0] = middle + 1
                with ib.else_scope():
                    high[0] = middle
            out[i] = low[0]
        return ib.get()

    n, m = te.var("n"), te.var("m")
    keys, queries = te.placeholder((n,), name="keys"), te.placeholder((m,), name="queries")
    out = te.extern((m,), [keys, queries], search, name="search", dtype="int32")
    k, q = np.sort(f32(40)), f32(9)
    f = tvm.build(te.create_schedule(out.op), [keys, queries, out], "llvm")
    np.testing.assert_array_equal(ran(tvm, f, k, q, shape=9, dtype="int32"), np.searchsorted(k, q))


def test_a_prefix_sum_written_with_ir_builder(tvm):
    from tvm import te

    def scan(ins, outs):
        ib = tvm.tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.new_scope():
            y[0] = x[0]
            with ib.for_range(1, ins[0].shape[0]) as i:
                y[i] = y[i - 1] + x[i]
        return ib.get()

    n = te.var("n")
    a = te.placeholder((n,), name="A", dtype="int64")
    b = te.extern((n,), [a], scan, dtype="int64")
    x = RNG.integers(-9, 9, 50)
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    np.testing.assert_array_equal(ran(tvm, f, x, shape=50, dtype="int64"), np.cumsum(x))


def test_a_scope_of_its_own_ends_what_is_allocated_in_it(tvm):
    ib = tvm.tir.ir_builder.create()
    out = tvm.tir.decl_buffer((2,), "int32", name="out")
    y = ib.buffer_ptr(out)
    with ib.new_scope():
        own = ib.allocate("int32", 1, name="own")
        own[0] = 3
        y[0] = own[0]
    y[1] = 2
    handle = tvm.tir.Var("h", "handle")
    f = tvm.build(tvm.tir.PrimFunc((handle,), ib.get(), {handle: out}, {"global_symbol": "f"}))
    got = np.zeros(2, "int32")
    f(got)
    assert got.tolist() == [3, 2]


def test_hybrid_script_of_an_outer_product(tvm):
    from tvm import te
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    c = outer_product(a, b)
    d = te.compute(c.shape, lambda i, j: c[i, j] + 1.0, name="D")
    x, y = f32(5), f32(8)
    f = tvm.build(te.create_schedule(d.op), [a, b, d], "llvm")
    np.testing.assert_array_equal(ran(tvm, f, x, y, shape=(5, 8)), np.outer(x, y) + np.float32(1))
    np.testing.assert_array_equal(outer_product(x, y), np.outer(x, y))


def test_hybrid_script_with_variables_and_two_outputs(tvm):
    from tvm import te
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    weights = (0.25, 0.5, 0.25)
    out, places = steps(a, weights)
    x, y, z = f32(20), np.zeros(18, "float32"), np.zeros(4, "int32")
    tvm.build(te.create_schedule(out.op), [a, out, places], "llvm")(x, y, z)
    v = x.astype("float64")
    total = v[:-2] * 0.25 + v[1:-1] * 0.5 + v[2:] * 0.25 + v[:-2]
    want = np.where((total > 1) & (np.arange(18) % 2 == 0), total - 1, np.sqrt(abs(total)))
    np.testing.assert_allclose(y, np.maximum(want, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(z, [0, 2, 4, 6])
    np.testing.assert_allclose(steps(x, weights)[0], y, rtol=1e-5, atol=1e-6)


def test_index_arithmetic_of_a_reshape(tvm):
    from tvm import te
    a = te.placeholder((6, 4), name="A")
    b = te.compute((24,), lambda i: a[tvm.indexdiv(i, 4), tvm.indexmod(i, 4)] + te.max_value("int8"), name="B")
    x = f32(6, 4)
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    np.testing.assert_array_equal(ran(tvm, f, x, shape=24), x.reshape(-1) + np.float32(127))


def test_a_pass_of_the_program(tvm):
    """The tutorial on customised passes: loops over 8 iterations are split and the inner one vectorised."""
    from tvm import te
    seen = []

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def vectorize8(func, mod, ctx):
        def find(op):
            if isinstance(op, tvm.tir.For) and isinstance(op.extent, tvm.tir.IntImm) and op.extent.value % 8 == 0:
                seen.append(op)

        def change(op):
            if op not in seen:
                return None
            outer, inner = tvm.tir.Var(op.loop_var.name + ".outer", "int32"), tvm.tir.Var("inner", "int32")
            body = tvm.tir.stmt_functor.substitute(op.body, {op.loop_var: outer * 8 + inner})
            body = tvm.tir.For(inner, 0, 8, tvm.tir.ForKind.VECTORIZED, body)
            return tvm.tir.For(outer, 0, op.extent.value // 8, tvm.tir.ForKind.SERIAL, body)

        tvm.tir.stmt_functor.post_order_visit(func.body, find)
        return func.with_body(tvm.tir.stmt_functor.ir_transform(func.body, None, change, ["tir.For"]))

    a = te.placeholder((16,), name="a")
    b = te.compute(a.shape, lambda i: a[i] * 3.0, name="b")
    s = te.create_schedule(b.op)
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize8)]}):
        text = str(tvm.lower(s, [a, b], simple_mode=True))
        f = tvm.build(s, [a, b], "llvm")
    assert len(seen) == 2 and "T.vectorized(8)" in text
    x = f32(16)
    np.testing.assert_array_equal(ran(tvm, f, x, shape=16), x * np.float32(3))


def test_nodes_of_python_numbers(tvm):
    """Numbers and lists in the fields of nodes become constants and tuples, of the dtype that the field has."""
    tir = tvm.tir
    x, y, z = (tir.Var(name, "int64") for name in "xyz")
    handle = tir.Var("h", "handle")
    b = tir.decl_buffer((8,), "float32", name="b")
    some = tir.IfThenElse(x < 3, tir.BufferStore(b, 1, [x]), tir.BufferStore(b, tir.Select(x < 5, 2.0, b[x]), [x]))
    loop = tir.For(x, 0, 6, tir.ForKind.SERIAL, tir.SeqStmt([tir.Evaluate(0), some]), annotations={"key": 1})
    last = tir.LetStmt(y, 7, tir.BufferStore(b, tir.BufferLoad(b, [5]) + tir.Let(z, 1, z + 2).astype("float32"), [y]))
    wide = tir.BufferStore(b, tir.Broadcast(4.0, 2), [tir.Ramp(6, 1, 2)])
    assert loop.min.dtype == "int64" and loop.body.seq[1] is some
    assert isinstance(loop, tir.For) and isinstance(some, tir.IfThenElse)
    axis = tir.IterVar((0, 8), "i", tir.IterVar.CommReduce)
    assert (axis.var.name, axis.dom.extent.value, axis.iter_type) == ("i", 8, 2)
    out = np.zeros(8, "float32")
    tvm.build(tir.PrimFunc([handle], tir.SeqStmt([wide, loop, last]), {handle: b}))(out)
    np.testing.assert_array_equal(out, [1, 1, 1, 2, 2, 0, 4, 3])


def test_options_of_old_programs(tvm):
    from tvm import te
    a = te.placeholder((16,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].op.axis[0])
    vectorized = str(tvm.lower(s, [a, b]))
    with tvm.build_config(disable_vectorize=True, auto_unroll_max_step=16):
        serial = str(tvm.lower(s, [a, b]))
    with tvm.transform.PassContext(disabled_pass=["tir.VectorizeLoop", "AlterOpLayout"]):
        assert str(tvm.lower(s, [a, b])) == serial
    assert "b_1[0:16]" in vectorized and "0:16" not in serial and "for i in range(16)" in serial
    with pytest.raises(tvm.TVMError, match="tir.disable_vectorise"):
        tvm.transform.PassContext(config={"tir.disable_vectorise": True})
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}) as context:
        assert tvm.transform.PassContext.current() is context and context.options.checked


def test_tags_of_operations(tvm):
    from tvm import te
    a = te.placeholder((4,), name="a")
    with te.tag_scope(tag="broadcast"):
        b = te.compute((4,), lambda i: a[i] * 2.0, name="b")

    @tvm.tag_scope(tag="conv")
    def make():
        return te.compute((4,), lambda i: b[i] + 1.0, name="c")

    assert b.op.tag == "broadcast" and make().op.tag == "conv" and a.op.tag == ""
    x = f32(4)
    f = tvm.build(tvm.IRModule.from_expr(te.create_prim_func([a, b])), target="llvm")
    np.testing.assert_array_equal(ran(tvm, f, x, shape=4), 2 * x)


def test_questions_to_the_analyzer(tvm):
    from tvm import te
    analyzer, i, n = tvm.arith.Analyzer(), te.var("i"), te.var("n")
    analyzer.bind(i, tvm.ir.Range(0, 8))
    assert analyzer.simplify(tvm.tir.floordiv(i + 16, 8)).value == 2
    assert analyzer.can_prove(i < 8) and not analyzer.can_prove(i < 7) and analyzer.can_prove_equal(i + i, i * 2)
    bound = analyzer.const_int_bound(i * 3 + 1)
    assert (bound.min_value, bound.max_value) == (1, 22)
    with analyzer.constraint_scope(n > 5):
        assert analyzer.can_prove_greater_equal(n, 6) and not analyzer.can_prove_less(n, 100)
    analyzer.bind(n, 3)
    assert analyzer.simplify(n + 1).value == 4
    whole = tvm.ir.make_node("IntImm", dtype="int32", value=5)
    assert isinstance(whole, tvm.tir.IntImm) and isinstance(i + 1, tvm.tir.Add) and not isinstance(i, tvm.tir.Add)
    assert isinstance(tvm.tir.Sub(i, 1), tvm.tir.Sub) and isinstance(tvm.ir.Range.from_min_extent(2, 3), tvm.ir.Range)


def test_passes_over_modules(tvm):
    from tvm import te

    @tvm.transform.module_pass(opt_level=1)
    def rename(mod, ctx):
        assert ctx.opt_level == 2
        return tvm.IRModule({f"{k}_new": f for k, f in mod.functions.items()})

    @tvm.ir.transform.module_pass(opt_level=1, name="Count")
    class Count:
        def __init__(self):
            self.seen = []

        def transform_module(self, mod, ctx):
            self.seen += mod.functions
            return mod

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    class Mark:
        def transform_function(self, func, mod, ctx):
            return func.with_attr("marked", True)

    a = te.placeholder((4,), name="a")
    mod = tvm.IRModule.from_expr(te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0)]))
    out = tvm.transform.Sequential([Mark(), Count(), rename])(mod)
    assert list(out.functions) == ["main_new"] and out["main_new"].attrs["marked"]
    assert [n for n in range(3) if tvm.tir.stmt_functor.pre_order_visit(out["main_new"], lambda node: False)] == []


def test_nodes_with_tvm_constructors(tvm):
    i = tvm.tir.Var("i", "int32")
    five = tvm.tir.IntImm("int32", 5)
    assert isinstance(five, tvm.tir.IntImm) and five.value == 5 and isinstance(i * five, tvm.tir.Mul)
    assert isinstance(tvm.tir.Cast("float32", i), tvm.tir.Cast)
    assert isinstance(tvm.tir.FloatImm("float32", 1), tvm.tir.FloatImm)
    root = tvm.tir.Call("float32", "tir.sqrt", [tvm.tir.const(2.0, "float32")])
    assert isinstance(root, tvm.tir.Call) and root.dtype == "float32" and root.op == "sqrt"
    assert str(tvm.tir.bitwise_and(i, five)) == "i & 5" and str(tvm.tir.shift_left(i, five)) == "i << 5"
