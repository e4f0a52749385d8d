"""Functions of programs' own, and rules for what calls become."""
import numpy as np
import pytest

from tilewright.lowering.intrin_rules import RULES
from tilewright.support.errors import ArgumentError
from tilewright.tir.ops import INTRINSICS


@pytest.fixture(autouse=True)
def _as_before():
    rows = dict(INTRINSICS)
    yield
    RULES.clear()
    for name in set(INTRINSICS) - set(rows):
        del INTRINSICS[name]


def computed(tvm, f, *inputs):
    tensors = [tvm.te.placeholder((len(x),), x.dtype.name, name=f"A{i}") for i, x in enumerate(inputs)]
    out = tvm.te.compute((len(inputs[0]),), lambda i: f(*(t[i] for t in tensors)), name="B")
    got = np.zeros(len(inputs[0]), out.dtype)
    tvm.build(tvm.te.create_schedule(out.op), [*tensors, out], "llvm")(*inputs, got)
    return got


X = np.linspace(1, 2, 5).astype("float32")


def test_a_function_of_ones_own_becomes_others(tvm):
    seen = []

    def rule(op):
        seen.append((isinstance(op, tvm.tir.Call), op.op.name, op.dtype))
        return tvm.tir.call_intrin(op.dtype, "tir.log", op.args[0]) * 2.0

    tvm.ir.register_op_attr("tir.mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
    tvm.ir.register_intrin_lowering("tir.mylog", target="llvm", f=rule, level=99)
    got = computed(tvm, lambda x: tvm.tir.call_intrin(x.dtype, "tir.mylog", x) + 1.0, X)
    np.testing.assert_allclose(got, 2 * np.log(X) + 1, rtol=1e-6)
    assert seen[0] == (True, "tir.mylog", "float32") and tvm.ir.Op.get("tir.mylog").name == "tir.mylog"


def test_the_form_of_2018(tvm):
    def rule(op):
        return tvm.call_pure_extern("float32", f"{op.name}f", op.args[0]) if op.dtype == "float32" else op
    tvm.register_intrin_rule("llvm", "cbrt", rule, override=True)
    got = computed(tvm, lambda x: tvm.call_pure_intrin(x.dtype, "cbrt", x), X)
    np.testing.assert_allclose(got, np.cbrt(X), rtol=1e-6)


def test_rules_for_our_functions_and_their_order(tvm):
    lower = tvm.ir.register_intrin_lowering
    lower("tir.exp", "llvm", f=lambda op: tvm.tir.const(1, op.dtype), level=1)
    lower("tir.exp", "cuda", f=lambda op: tvm.tir.const(2, op.dtype), level=50)
    np.testing.assert_array_equal(computed(tvm, tvm.te.exp, X), np.ones(5))
    lower("tir.exp", "default", f=lambda op: None, level=60)
    np.testing.assert_array_equal(computed(tvm, tvm.te.exp, X), np.ones(5))

    @lower("tir.exp", "llvm", level=20)
    def third(op):
        return op
    np.testing.assert_array_equal(computed(tvm, tvm.te.exp, X), np.ones(5))
    RULES.pop("exp")
    np.testing.assert_allclose(computed(tvm, tvm.te.exp, X), np.exp(X), rtol=1e-6)


def test_rules_that_are_refused(tvm):
    lower, call = tvm.ir.register_intrin_lowering, tvm.tir.call_intrin
    lower("tir.one", "llvm", f=lambda op: call(op.dtype, "tir.other", *op.args))
    lower("tir.other", "llvm", f=lambda op: call(op.dtype, "tir.one", *op.args))
    with pytest.raises(ArgumentError, match="call each other without end"):
        computed(tvm, lambda x: call(x.dtype, "tir.one", x), X)
    for made, message in ((3, "gives 3"), (tvm.tir.const(1, "int32"), "a int32")):
        lower("tir.wrong", "llvm", f=lambda op, made=made: made)
        with pytest.raises(ArgumentError, match=message):
            computed(tvm, lambda x: call(x.dtype, "tir.wrong", x), X)
    with pytest.raises(ArgumentError, match="not a function"):
        lower("tir.wrong", "llvm", f=3)
    with pytest.raises(ArgumentError, match="are fixed"):
        tvm.ir.register_op_attr("tir.exp", "TCallEffectKind", tvm.tir.CallEffectKind.Opaque)
    with pytest.raises(ArgumentError, match="there is no function 'tir.never'"):
        tvm.ir.Op.get("tir.never")
