"""Modules: functions of any name, and what is refused."""
from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright.script import from_source, ir_module
from tilewright.support.errors import IRError, ScriptError
from tilewright.tir import IRModule, PrimFunc, assert_structural_equal

NAMES = ["conv 1", "conv_1", "conv.1", "conv_1_1", "class", "_class", "__x", "f__x", "1x", "ünï",
         "\ufb01", "it's \"\n\\", "_"]


def function(value: int = 0) -> PrimFunc:
    func = from_source("@T.prim_func\ndef f(A: T.Buffer((2,), 'int32')):\n"
                       f"    for i in range(2):\n        A[i] = {value}")
    assert isinstance(func, PrimFunc)
    return func


def test_names_that_python_does_not_take():
    module = IRModule({name: function(k) for k, name in enumerate(NAMES)})
    assert_round_trip(module)
    again = from_source(str(module))
    assert isinstance(again, IRModule) and list(again.functions) == NAMES
    for k, name in enumerate(NAMES):
        a = np.full(2, -1, "int32")
        tw.tir.interp.run(again[name], a)
        assert list(a) == [k, k]
    assert str(IRModule({"f": function()})).startswith("@I.ir_module\nclass")


def test_the_printed_module_is_python_too(tmp_path):
    module = IRModule({name: function(k) for k, name in enumerate(NAMES)})
    path = tmp_path / "printed.py"
    path.write_text(f"from tilewright.script import ir as I, tir as T\n\n\n{module}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("printed", path)
    printed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(printed)
    assert list(printed.Module.functions) == NAMES
    assert_structural_equal(printed.Module, module)


@pytest.mark.parametrize(("names", "match"), [
    ({"g": "x"}, "names speaks of 'g', which is no function of the module(.|\n)*its functions are f, h"),
    ({"f": "h"}, "names gives two functions of the module one name: h, h"),
    ({"f": 3}, "not a dict of names"), (3, "names is 3, not a dict of names"),
])
def test_wrong_names(names, match):
    with pytest.raises(ScriptError, match=match):
        ir_module(names=names)(type("M", (), {"f": function(), "h": function()}))
    text = f"@I.ir_module(names={names!r})\nclass M:\n" + "".join(
        f"    @T.prim_func\n    def {name}(n: T.int32):\n        T.evaluate(n)\n" for name in "fh")
    with pytest.raises(ScriptError, match=match):
        from_source(text)


def test_a_module_that_is_refused_stays_as_it_was():
    module = IRModule({"f": function()})
    for call, match in [
        (lambda: module.update(3), "update takes functions by their names, a dict or an IRModule, not 3"),
        (lambda: module.update({"g": function(), "h": 3}), "a module holds functions, not int"),
        (lambda: module.update({3: function()}), "the name of a function is a text, not 3"),
        (lambda: module.update_func("g", "f"), "a module holds functions, not str"),
        (lambda: IRModule(3), "IRModule takes functions by their names"),
        (lambda: IRModule({"": function()}), "the name of a function is a text, not ''"),
    ]:
        with pytest.raises(IRError, match=match):
            call()
        assert list(module.functions) == ["f"]
    module.update(IRModule({"g": function(1)}))
    assert list(module.functions) == ["f", "g"]
