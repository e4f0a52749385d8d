"""Exported objects in TVM's idioms: temporary folders, `cc.create_shared`, names of functions in modules."""
import os
import shutil

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.export import has_linker
from tilewright.runtime.llvm import host_triple
from tilewright.support.errors import ArgumentError, CodegenError

needs_linker = pytest.mark.skipif(not has_linker(host_triple()), reason="needs a linker")


def add_one(tvm, name="myadd"):
    n = tvm.te.var("n")
    a = tvm.te.placeholder((n,), name="A")
    b = tvm.te.compute((n,), lambda i: a[i] + 1.0, name="B")
    return tvm.build(tvm.te.create_schedule(b.op), [a, b], "llvm", name=name)


def check(f):
    x, y = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    f(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_a_temporary_folder_goes_away(tvm):
    from tvm.contrib import util, utils
    assert util.tempdir is utils.tempdir
    temp = utils.tempdir()
    path = temp.relpath("x.txt")
    assert os.path.isabs(path) and temp.listdir() == [] and os.path.dirname(path) == temp.temp_dir
    with open(path, "w") as f:
        f.write("text")
    assert temp.listdir() == ["x.txt"] and (temp / "x.txt").read_text() == "text"
    folder = temp.temp_dir
    temp.remove()
    assert not os.path.exists(folder)
    unnamed = utils.tempdir().temp_dir                       # nobody holds it
    with utils.tempdir() as held:
        assert os.path.isdir(held.temp_dir)
    assert not os.path.exists(unnamed) and not os.path.exists(held.temp_dir)


def test_a_folder_of_ones_own_stays(tvm, tmp_path):
    from tvm.contrib import utils
    folder = str(tmp_path / "mine")
    utils.tempdir(folder)
    assert os.path.isdir(folder)
    kept = utils.tempdir(keep_for_debug=True).temp_dir
    assert os.path.isdir(kept)
    shutil.rmtree(kept)


def test_a_temporary_folder_survives_a_forked_process(tvm):
    from tvm.contrib import utils
    temp = utils.tempdir()
    child = os.fork()
    if child == 0:
        temp._gone()                                         # what the end of a Python process calls
        os._exit(0)
    os.waitpid(child, 0)
    assert temp.listdir() == []


@needs_linker
def test_linking_that_fails_leaves_the_library_that_was_there(tvm, tmp_path):
    from tvm.contrib import cc
    add_one(tvm).save(tmp_path / "good.o")
    (tmp_path / "bad.o").write_bytes(b"junk")
    cc.create_shared("lib.so", "good.o", cwd=str(tmp_path))
    before = (tmp_path / "lib.so").read_bytes()
    with pytest.raises(CodegenError, match="the linker failed"):
        cc.create_shared(tmp_path / "lib.so", [tmp_path / "bad.o"])
    assert (tmp_path / "lib.so").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.o", "good.o", "lib.so"]


@needs_linker
def test_an_object_is_linked_and_loaded(tvm):
    from tvm.contrib import cc, utils
    temp = utils.tempdir()
    fadd = add_one(tvm)
    fadd.save(temp.relpath("myadd.o"))
    if len(fadd.imported_modules) > 0:
        raise AssertionError("there are no modules of devices")
    cc.create_shared(temp.relpath("myadd.so"), [temp.relpath("myadd.o")])
    cc.create_shared(temp.relpath("again.so"), temp.relpath("myadd.o"), options=["-O2"], cc=cc.get_cc())
    assert sorted(temp.listdir()) == ["again.so", "myadd.o", "myadd.so"]
    for name in ("myadd.so", "again.so"):
        m = tvm.runtime.load_module(temp.relpath(name))
        assert m.entry_name == "myadd"
        check(m)
        check(m["myadd"])


@needs_linker
def test_a_library_is_linked_by_a_function(tvm, tmp_path):
    from tvm.contrib import cc
    lib = add_one(tvm)
    lib.export_library(str(tmp_path / "a.so"), cc.create_shared)
    lib.export_library(str(tmp_path / "b.so"), fcompile=cc.create_shared)
    for name in ("a.so", "b.so"):
        check(tvm.runtime.load_module(str(tmp_path / name)))


def test_what_cannot_be_linked(tvm, tmp_path):
    from tvm.contrib import cc
    with pytest.raises(ArgumentError, match="create_shared: there is no file nowhere.o"):
        cc.create_shared(str(tmp_path / "x.so"), ["nowhere.o"])
    with pytest.raises(ArgumentError, match="options is '-O2', not a list"):
        cc.create_shared(str(tmp_path / "x.so"), [], options="-O2")
    (tmp_path / "bad.o").write_bytes(b"no object")
    if cc.get_cc() is not None:
        with pytest.raises(CodegenError, match="the linker failed"):
            cc.create_shared(str(tmp_path / "x.so"), [str(tmp_path / "bad.o")])
    with pytest.raises(CodegenError, match="cannot be started"):
        cc.create_shared(str(tmp_path / "x.so"), [str(tmp_path / "bad.o")], cc="/no/such/compiler")


# ---- names of functions

@pytest.mark.parametrize("build", [tw.build, tw.compile])
def test_a_scheduled_function_goes_by_its_name_and_by_main(tvm, build, tmp_path):
    T = tvm.script.tir
    source = """@T.prim_func
def mm(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
"""
    assert T is not None
    sch = tvm.tir.Schedule(tvm.script.from_source(source))
    assert list(sch.mod.functions) == ["main"] and sch.mod["main"].attrs["global_symbol"] == "mm"
    lib = build(sch.mod, target="llvm")
    lib.save(tmp_path / "mm.o")
    for m in (lib, tw.load_module(tmp_path / "mm.o")):
        assert m.names == ("mm",) and m.entry_name == "mm"
        assert "mm" in m and "main" in m and "__tvm_main__" in m and "nm" not in m
        x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
        for f in (m, m["mm"], m["main"], m["__tvm_main__"], m.get_function("main")):
            y[:] = 0
            f(x, y)
            np.testing.assert_array_equal(y, x + 1)
        assert m["main"] is m["mm"] and m.time_evaluator("main", tvm.cpu(), number=1)(x, y).mean > 0
        with pytest.raises(ArgumentError, match="no function 'nm'; it has mm"):
            m["nm"]


def test_a_symbol_comes_before_the_name_in_the_module(tvm):
    def func(name, value):
        a = tvm.te.compute((1,), lambda i: tvm.tir.const(value, "float32"), name="A")
        return tvm.te.create_prim_func([a]).with_attr("global_symbol", name)

    m = tvm.build(tvm.IRModule({"main": func("first", 1.0), "other": func("main", 2.0)}), target="llvm")
    out = np.zeros(1, "float32")
    for name, value in (("first", 1), ("main", 2), ("other", 2), ("__tvm_main__", 1)):
        m[name](out)
        assert out[0] == value
