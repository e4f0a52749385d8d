"""`PrimFunc.specialize` and the methods by which programs change modules."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import tir as T
from tilewright.support.errors import IRError
from tilewright.tir import IRModule, decl_buffer, interp
from tilewright.tir.verify import verify


@T.prim_func
def scaled(a: T.handle, b: T.handle, n: T.int32, factor: T.float32):
    m = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    C = T.alloc_buffer((m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * factor
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, n - 1 - vj]


def check(func, *scalars):
    verify(func, "block")
    x = np.arange(15, dtype="float32").reshape(3, 5)
    for run in (lambda *args: interp.run(func, *args), tw.build(func)):
        y = np.zeros((3, 5), "float32")
        run(x, y, *scalars)
        np.testing.assert_array_equal(y, 2 * x[:, ::-1])


def test_scalars_are_parameters_no_longer():
    a, b, n, factor = scaled.params
    fixed = scaled.specialize({factor: 2.0})
    assert [p.name for p in fixed.params] == [a.name, b.name, "n"] and "T.float32(2)" in str(fixed)
    check(fixed, 5)
    check(scaled.specialize({factor: 2.0, n: 5}))
    assert "factor" in str(scaled)                           # which is as it was


def test_a_buffer_gives_the_variables_of_its_shape():
    a, _, _, factor = scaled.params
    fixed = scaled.specialize({a: decl_buffer((3, 5))})
    assert [p.name for p in fixed.params][2:] == ["factor"]
    assert "C = T.alloc_buffer((3, 5))" in str(fixed) and "T.grid(3, 5)" in str(fixed) and "4 - vj" in str(fixed)
    assert [tuple(map(int, buffer.shape)) for buffer in fixed.buffers] == [(3, 5), (3, 5)]
    check(fixed, 2.0)
    wide = decl_buffer((te.var("rows"), 5))                  # a variable stays one
    part = scaled.specialize({a: wide, factor: 2.0})
    assert "alloc_buffer((rows, 5))" in str(part)
    check(part)


def test_the_specialised_function_is_scheduled_and_compiled():
    a, _, _, factor = scaled.params
    sch = tw.Schedule(scaled.specialize({a: decl_buffer((3, 5)), factor: 2.0}))
    sch.compute_inline("C")
    i, j = sch.get_loops("B")
    sch.unroll(sch.fuse(i, j))
    check(sch.func)


def test_constants_fold_in_shapes_that_depend_on_a_parameter():
    n = te.var("n")
    a = te.placeholder((n, n * 2), name="A")
    func = te.create_prim_func([a, te.compute((n * 2,), lambda i: a[i // 2, i] + 1.0, name="B")])
    fixed = func.specialize({func.params[0]: decl_buffer((4, 8))})
    assert [tuple(map(int, b.shape)) for b in fixed.buffers] == [(4, 8), (8,)]
    x, y = np.random.rand(4, 8).astype("float32"), np.zeros(8, "float32")
    tw.build(fixed)(x, y)
    np.testing.assert_array_equal(y, x[np.arange(8) // 2, np.arange(8)] + 1)


REFUSED = {
    "specialize takes parameters, not": lambda a, n: {te.var("n"): 3},
    "not 'n'.*func.params are var_A, var_B, n, factor": lambda a, n: {"n": 3},
    "specialised by a buffer, not by 3": lambda a, n: {a: 3},
    "n is a scalar, not a buffer": lambda a, n: {n: decl_buffer((3,))},
    r"A is float32 of 2 dimension\(s\), the buffer given is float32 of 1": lambda a, n: {a: decl_buffer((3,))},
    "the buffer given is int32 of 2": lambda a, n: {a: decl_buffer((3, 5), "int32")},
    r"A\.shape\[1\] is 5, the value given is 6": lambda a, n: {n: 5, a: decl_buffer((3, 6))},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused(message):
    a, _, n, _ = scaled.params
    with pytest.raises(IRError) as caught:
        scaled.specialize(REFUSED[message](a, n))
    assert caught.match("(?s)" + message.replace("var_A, var_B", f"{a.name}, .*?"))


def test_functions_of_a_module_are_replaced_and_added():
    a, _, n, factor = scaled.params
    module = IRModule({"main": scaled})
    name = module.get_global_var("main")
    assert name == "main" and name.name_hint == "main" and module[name] is scaled
    assert [gv.name_hint for gv, _ in module.functions.items()] == ["main"] and module.get_global_vars() == [name]
    other = scaled.specialize({factor: 2.0, n: 5}).with_attr("global_symbol", "other")
    module.update_func(name, scaled.specialize({factor: 2.0}))
    module["other"] = other
    assert "other" in module and list(module.functions) == ["main", "other"] and module["main"] is not scaled
    module.update(IRModule({"main": scaled, "third": scaled.with_attr("global_symbol", "third")}))
    assert module["main"] is scaled and len(module.get_global_vars()) == 3
    check(module["other"])
    with pytest.raises(IRError, match="no function 'nobody'; it has main, other, third"):
        module.get_global_var("nobody")
    with pytest.raises(IRError, match="holds functions, not"):
        module["main"] = 3
