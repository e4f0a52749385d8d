"""Types, containers, JSON and constructors of nodes in the forms that programs give them."""
import json
import subprocess
import sys

import numpy as np
import pytest

from tilewright.support.errors import ArgumentError, IRError
from tilewright.tir import interp


def test_dtypes_and_types(tvm):
    d = tvm.DataType("float32x4")
    assert (d, d.bits, d.lanes, d.type_code) == ("float32x4", 32, 4, 2) and tvm.DataType("bool").type_code == 1
    assert tvm.DataType("bfloat16").type_code == 4 and tvm.DataType("float8_e5m2").type_code == 2
    pointer = tvm.ir.PointerType(tvm.ir.PrimType("float32"), "shared")
    assert pointer == tvm.ir.PointerType(tvm.ir.PrimType("float32"), "shared")
    assert pointer != tvm.ir.PointerType(tvm.ir.PrimType("float16"), "shared")
    assert len({pointer, tvm.ir.PointerType(tvm.ir.PrimType("float32"), "shared")}) == 1
    assert tvm.ir.PrimType("int32").dtype == "int32" and tvm.tir.Var("p", pointer).dtype == "handle"
    assert tvm.tir.Var("x", dtype="float32").dtype == "float32" and tvm.tir.Var("n").dtype == "int32"
    with pytest.raises(ArgumentError, match="not a storage scope"):
        tvm.ir.PointerType("float32", "nowhere")
    with pytest.raises(IRError, match="is not a dtype"):
        tvm.DataType("float33")


def test_containers(tvm):
    made = tvm.runtime.convert([1, 2.5, "a", {"k": (3,)}])
    assert str(made) == "[1, T.float32(2.5), 'a', {'k': [3]}]" and isinstance(made[2], tvm.runtime.String)
    assert isinstance(made, tvm.ir.Array) and isinstance(made[3], tvm.ir.Map) and not isinstance(3, tvm.ir.Array)
    assert tvm.runtime.container.String("a") == "a" and tvm.runtime.ShapeTuple([1, 2]) == (1, 2)
    x = tvm.te.var("x")
    assert tvm.convert(x) is x and tvm.convert(None) is None and tvm.convert(len) is len
    with pytest.raises(IRError, match="is not an expression"):
        tvm.convert(object())


def test_functions_are_made_of_pointers_and_buffers(tvm):
    ib = tvm.tir.ir_builder.create()
    n, a = tvm.te.var("n"), tvm.tir.decl_buffer((8,), "float32", name="A", buffer_type="")
    data = ib.buffer_ptr(a)
    with ib.for_range(0, n, name="i") as i:
        data[i] = data[i] + 1.0
    func = tvm.tir.PrimFunc([a, n], ib.get())
    assert func.buffers == (a,) and isinstance(func, tvm.tir.PrimFunc)
    values = np.zeros(8, "float32")
    interp.run(func, values, 5)
    np.testing.assert_array_equal(values, [1] * 5 + [0] * 3)
    tvm.build(func)(values, 3)
    np.testing.assert_array_equal(values, [2, 2, 2, 1, 1, 0, 0, 0])
    handle = tvm.tir.Var("h", "handle")
    for given in ((None, {handle: a}), ({handle: a},)):
        assert tvm.tir.PrimFunc([handle], func.body, *given).buffer_map[handle] is a
    pointer = ib.pointer("float32", name="P")
    assert tvm.tir.PrimFunc([pointer], tvm.tir.Evaluate(0)).params == (pointer.asobject(),)


def test_blocks_in_the_order_of_tvm(tvm):
    a = tvm.tir.decl_buffer((4,), "float32", name="A")
    i, vi = tvm.tir.Var("i", "int32"), tvm.tir.IterVar((0, 4), "vi")
    block = tvm.tir.Block([vi], [], [tvm.tir.BufferRegion(a, [vi.var])], "fill", tvm.tir.BufferStore(a, 2.0, [vi.var]))
    assert block.name_hint == "fill" and isinstance(block, tvm.tir.Block)
    nest = tvm.tir.For(i, 0, 4, tvm.tir.ForKind.SERIAL, tvm.tir.BlockRealize([i], True, block))
    root = tvm.tir.BlockRealize([], True, tvm.tir.Block([], [], [], name_hint="root", body=nest))
    func = tvm.tir.PrimFunc([a], root)
    values = np.zeros(4, "float32")
    interp.run(func, values)
    np.testing.assert_array_equal(values, [2] * 4)
    sch = tvm.tir.Schedule(func)
    assert isinstance(sch, tvm.tir.Schedule) and callable(tvm.tir.Schedule.split) and sch.get_block("fill")


def test_loops_in_the_forms_of_every_year(tvm):
    i, body = tvm.te.var("i"), tvm.tir.Evaluate(0)
    new = tvm.tir.For(i, 0, 8, tvm.tir.ForKind.VECTORIZED, body, annotations={"a": 1})
    old = tvm.tir.For(i, 0, 8, tvm.tir.For.Vectorized, 0, body)
    numbered = tvm.tir.For(i, 0, 8, 2, 0, body)
    assert new.kind == old.kind == numbered.kind == "vectorized" and old.body is body and new.annotations == {"a": 1}
    with pytest.raises(ArgumentError, match="kind of the loop is 9"):
        tvm.tir.For(i, 0, 8, 9, body)


def test_buffers_in_the_form_of_tvm(tvm):
    p = tvm.tir.Var("p", "handle")
    a = tvm.tir.decl_buffer(8, "float16", "A", p, strides=[1], data_alignment=-1, axis_separators=None)
    assert a.data is p and a.data_alignment == 64 and len(a.shape) == 1 and a.dtype == "float16"
    assert tvm.tir.decl_buffer((8, 8), axis_separators=[1]).axis_separators == (1,)
    with pytest.raises(ArgumentError, match="buffer_type='auto_broadcast' is not supported"):
        tvm.tir.decl_buffer((8,), buffer_type="auto_broadcast")


def scaled(tvm, factor=2.0, name="main"):
    a = tvm.te.placeholder((6,), name="A")
    return tvm.te.create_prim_func([a, tvm.te.compute((6,), lambda i: a[i] * factor, name="B")]).with_attr(
        "global_symbol", name)


def test_json_gives_the_same_program(tvm):
    func = scaled(tvm)
    module = tvm.IRModule({"main": func.with_attr("target", tvm.target.Target("llvm"))})
    back = tvm.ir.load_json(tvm.ir.save_json(module))
    tvm.ir.assert_structural_equal(back, module)
    assert back["main"].params[0] is not func.params[0] and back["main"].attrs["target"] == tvm.target.Target("llvm")
    x, y = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    tvm.build(back)(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    v = tvm.te.var("v")
    pair = tvm.ir.load_json(tvm.ir.save_json([v, v + 1, {"n": float("inf")}, (None, True)]))
    assert pair[1].a is pair[0] is not v and pair[2] == {"n": float("inf")} and pair[3] == (None, True)
    assert tvm.ir.base.save_json is tvm.save_json


@pytest.mark.parametrize("text", [
    "", "{}", "[]", "3", '{"tilewright": 2, "root": null, "nodes": []}',
    '{"tilewright": 1, "root": {"node": 0}, "nodes": []}', '{"tilewright": 1, "root": null, "nodes": [["Var", "x"]]}',
    '{"tilewright": 1, "root": null, "nodes": [["System", 1]]}',
    '{"tilewright": 1, "root": {"node": true}, "nodes": [["Var", "x", "int32"]]}',
    '{"tilewright": 1, "root": {"set": [1]}, "nodes": []}', '{"tilewright": 1, "root": [1], "nodes": []}'])
def test_other_json_is_refused(text, tvm):
    with pytest.raises(ArgumentError, match="load_json"):
        tvm.ir.load_json(text)


def test_only_ir_becomes_json(tvm):
    with pytest.raises(ArgumentError, match="is no IR"):
        tvm.ir.save_json(object())
    assert json.loads(tvm.ir.save_json(3))["root"] == 3


def test_nodes_of_json_are_of_the_classes_that_their_modules_have():
    """Also where nothing has collected what `slots` leaves of each class."""
    code = """
import gc, sys
gc.disable()
from tilewright.compat.node_json import KINDS
print([name for name, c in KINDS.items() if getattr(sys.modules[c.__module__], name) is not c], "For" in KINDS)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[] True\n"
