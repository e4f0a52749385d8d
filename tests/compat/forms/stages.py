"""Schedules of stages, and what becomes of them."""
import numpy as np

from tilewright.compat import tvm

from . import form
from .shared import added, check_added, run, staged

te, tir = tvm.te, tvm.tir


@form(r"schedule.InferBound", r"tvm\.te\.schedule does not")
def bounds_of_stages():
    s, (_, B) = staged()
    s = s.normalize()
    bounds = te.schedule.InferBound(s)
    assert tvm.schedule.InferBound and {int(r.extent) for r in bounds.values()} == {8}
    assert te.schedule.ScheduleOps(s, bounds) is not None


@form(r"tvm\.driver does not exist", "schedule_to_module")
def driver():
    from tvm.driver.build_module import schedule_to_module
    s, args = staged()
    check_added(tvm.build(schedule_to_module(s, args)))
    check_added(tvm.driver.build(tvm.driver.lower(s, args)))
    check_added(tvm.driver.build_module.build(s, args, "llvm"))


@form()
def lower_under_both_names():
    s, args = staged()
    mod = tvm.lower(s, args)
    assert mod["main"] is mod["default_function"]


@form("is an output of the schedule and is not among", "scan is an output")
def output_that_is_no_argument():
    s, (A, _) = staged()
    assert "B" in str(tvm.lower(s, [A], simple_mode=True))


@form("disable_predication")
def split_without_predicates():
    s, (A, B) = staged()
    s[B].split(B.op.axis[0], factor=4, disable_predication=True)
    check_added(tvm.build(s, [A, B]))


@form("a stage has no attribute 'transform_layout'")
def layout_of_a_stage():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda i, j: [j // 4, i, j % 4])
    a, b = np.random.rand(8, 8).astype("float32"), np.zeros((2, 8, 4), "float32")
    tvm.build(s, [A, B])(a, b)
    np.testing.assert_allclose(b, (a + 1).reshape(8, 2, 4).transpose(1, 0, 2))


@form("create_group")
def groups():
    A, B, C = added(2)
    s = te.create_schedule(C.op)
    s.create_group(outputs=B, inputs=A).compute_at(s[C], C.op.axis[0])
    np.testing.assert_allclose(run(tvm.build(s, [A, C]), np.zeros(8)), 2)


@form("one tensor at a time can be given a cache")
def caches_of_several_results():
    A = te.placeholder((8,), name="A")
    B, C = te.compute((8,), lambda i: (A[i] + 1, A[i] * 2), name="B")
    s = te.create_schedule(B.op)
    s.cache_write([B, C], "local")
    a, b, c = np.random.rand(8).astype("float32"), np.zeros(8, "float32"), np.zeros(8, "float32")
    tvm.build(s, [A, B, C])(a, b, c)
    np.testing.assert_allclose([b, c], [a + 1, a * 2], rtol=1e-6)


@form("is used as a number")
def tensors_in_arithmetic():
    A, B = te.placeholder((4, 4)), te.placeholder((4, 4))
    C = (A + B) * 2 + A[0, 0]
    a, b, c = *np.random.rand(2, 4, 4).astype("float32"), np.zeros((4, 4), "float32")
    tvm.build(te.create_schedule(C.op), [A, B, C])(a, b, c)
    np.testing.assert_allclose(c, (a + b) * 2 + a[0, 0], rtol=1e-5)


@form("were scheduled before")
def cache_after_loops():
    s, (A, B) = staged()
    s[B].split(B.op.axis[0], 4)
    s.cache_write(B, "local")
    check_added(tvm.build(s, [A, B]))


@form("is bound by no argument")
def variable_that_is_no_argument():
    n = te.var("n")
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + n.astype("float32"), name="B")
    assert "n" in str(tvm.lower(te.create_schedule(B.op), [A, B]))


@form("there is no axis to fuse")
def fused_nothing():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A() + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].fuse()
    a, b = np.array(3, "float32"), np.zeros((), "float32")
    tvm.build(s, [A, B])(a, b)
    assert b == 4


@form("CreateReadGraph", "AutoInline")
def automatic_inlining():
    A, B, C = added(2)
    s = te.create_schedule(C.op)
    te.schedule.AutoInlineElemWise(s)
    te.schedule.AutoInlineInjective(s)
    graph = te.schedule.CreateReadGraph([C.op])
    assert [t.op for t in graph[C.op]] == [B.op] and "alloc" not in str(tvm.lower(s, [A, C], simple_mode=True))


@form(r"hybrid\.build")
def hybrid_build():
    s, args = staged()
    check_added(te.hybrid.build(s, args[:1], args[1:]))


@form("index_dtype")
def dtype_of_indices():
    s, args = staged()
    check_added(tvm.build(te.create_prim_func(args, index_dtype_override="int64")))


@form("topi.utils")
def helpers_of_operators():
    assert tvm.topi.utils.get_const_tuple((te.const(4), 2)) == (4, 2)
