"""`tvm.lower` and `tvm.build` in their forms; modules that import modules; targets of functions."""
import numpy as np
import pytest

from tests.compat.test_node_types import scaled
from tilewright.support.errors import ArgumentError, IRError, TargetError


def staged(tvm, n=6):
    a = tvm.te.placeholder((n,), name="A")
    b = tvm.te.compute((n,), lambda i: a[i] + 1, name="B")
    return tvm.te.create_schedule(b.op), [a, b]


def run(f, n=6):
    x, y = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    f(x, y)
    return y


ADDED = np.arange(6, dtype="float32") + 1


def test_the_names_of_what_is_lowered(tvm):
    s, args = staged(tvm)
    mod = tvm.lower(s, args)
    assert mod["main"] is mod["default_function"] and list(mod.functions) == ["main"] and isinstance(mod, tvm.IRModule)
    named = tvm.lower(s, args, "f", None, True)
    assert named["f"] is named["main"] and named.name == "f" and named.body is named["f"].body and len(named.args) == 2
    assert "f" in str(named) and tvm.driver.lower is tvm.lower is tvm.driver.build_module.lower
    np.testing.assert_array_equal(run(tvm.build(mod)), ADDED)
    two = tvm.lower(tvm.IRModule({"g": scaled(tvm, 2, "g"), "h": scaled(tvm, 3, "h")}))
    with pytest.raises(IRError, match="no one function"):
        two["main"]
    with pytest.raises(IRError, match="no function 'f'"):
        two["f"]
    assert str(tvm.lower(scaled(tvm, name="g"))["g"].attrs["global_symbol"]) == "g"


@pytest.mark.parametrize("form", [
    lambda tvm, s, args: tvm.build(s, args, "llvm", "llvm", "f")["f"],
    lambda tvm, s, args: tvm.build(s, args, target="llvm", target_host="llvm", name="f", binds=None)["f"],
    lambda tvm, s, args: tvm.build(tvm.lower(s, args, name="f"), "llvm"),
    lambda tvm, s, args: tvm.build(tvm.lower(s, args, name="f"), target=tvm.target.Target("llvm", host="llvm")),
    lambda tvm, s, args: tvm.compile(tvm.lower(s, args, name="f"), tvm.target.Target("llvm")),
    lambda tvm, s, args: tvm.build([tvm.lower(s, args, name="f"), scaled(tvm, 3, "g")], target="llvm")["f"],
    lambda tvm, s, args: tvm.build({"llvm": tvm.lower(s, args, name="f")})["f"],
    lambda tvm, s, args: tvm.build({tvm.target.Target("llvm"): [tvm.lower(s, args, name="f"), scaled(tvm, 3, "g")]})[
        "f"],
    lambda tvm, s, args: tvm.build(s, args, runtime=None)])
def test_forms_of_build(form, tvm):
    np.testing.assert_array_equal(run(form(tvm, *staged(tvm))), ADDED)


def test_all_functions_of_a_list_are_there(tvm):
    f = tvm.build([scaled(tvm, 2, "f"), scaled(tvm, 3, "g")], target="llvm")
    np.testing.assert_array_equal(run(f["g"]), 3 * np.arange(6))
    np.testing.assert_array_equal(run(f["f"]), 2 * np.arange(6))


def test_forms_that_are_refused(tvm):
    s, args = staged(tvm)
    for call, message in (
            (lambda: tvm.build([scaled(tvm, 2, "f"), scaled(tvm, 3, "f")]), "two functions of the list are called 'f'"),
            (lambda: tvm.build([s]), "the list has an object of type StageSchedule"),
            (lambda: tvm.build({"llvm": scaled(tvm), "llvm -opt-level=1": scaled(tvm)}), "two functions of the"),
            (lambda: tvm.build(scaled(tvm), "llvm", "llvm"), "stands in the place of the arguments"),
            (lambda: tvm.build(s, args, binds={args[0]: 1}), "binds"),
            (lambda: tvm.lower(s, args, binds={args[0]: 1}), "binds"),
            (lambda: tvm.build(s, args, runtime=3), "a runtime and a pipeline")):
        with pytest.raises(ArgumentError, match=message):
            call()
    with pytest.raises(TargetError, match="function f is for llvm, function g for llvm -opt-level=1"):
        tvm.build({"llvm": scaled(tvm, 2, "f"), "llvm -opt-level=1": scaled(tvm, 2, "g")})
    with pytest.raises(TargetError, match="no code generation for 'cuda'"):
        tvm.build({"cuda": scaled(tvm)})


def test_the_target_of_a_function_decides(tvm):
    func = scaled(tvm).with_attr("target", tvm.target.Target("llvm -mtriple=aarch64-linux-gnu"))
    assert tvm.build(func, target="llvm").triple == "aarch64-linux-gnu"


def test_a_module_finds_what_it_imports(tvm):
    one, other = tvm.build(scaled(tvm, 2, "f")), tvm.build(scaled(tvm, 3, "g"))
    assert not one.implements_function("g") and one.imported_modules == []
    one.import_module(other)
    assert one.imported_modules == [other] and "g" in one and one.implements_function("g", query_imports=True)
    assert not one.implements_function("g")
    np.testing.assert_array_equal(run(one["g"]), 3 * np.arange(6))
    np.testing.assert_array_equal(run(one["f"]), 2 * np.arange(6))
    with pytest.raises(ArgumentError, match="no function 'g'"):
        one.get_function("g", query_imports=False)
    with pytest.raises(ArgumentError, match="is not a module"):
        one.import_module(3)
    for module in (one, other):
        with pytest.raises(ArgumentError, match="imports this one"):
            other.import_module(module)
    with pytest.raises(ArgumentError, match="imported modules cannot be saved"):
        one.save("unused.o")


def test_the_device_of_a_measurement_by_its_old_name(tvm):
    f, dev = tvm.build(scaled(tvm)), tvm.context("llvm", 0)
    x = tvm.nd.array(np.zeros(6, "float32"), ctx=dev)
    assert f.time_evaluator(f.entry_name, ctx=dev, number=2)(x, tvm.nd.array(np.zeros(6, "float32"), dev)).mean > 0
