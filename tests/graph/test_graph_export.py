"""Functions of graphs as files: loaded by Tilewright, by tvm-ffi, by a program of C."""
import copy
import pickle
import subprocess

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import TensorType, size
from tilewright.graph.plan.loaded import load
from tilewright.runtime import export, ffi
from tilewright.runtime.llvm import host_triple
from tilewright.support.errors import CallError, GraphError, LoadError, TilewrightError

needs_linker = pytest.mark.skipif(not export.has_linker(host_triple()), reason="no linker on this machine")
RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


def model(n, target=None):
    """Rows through two layers: (scores of 5 classes, hidden values as [n * 2, 8])."""
    w, v = array(16, 20), array(5, 16)
    bb = BlockBuilder()
    x = bb.param("x", (n, 20))
    with bb.function("main", [x]):
        h = bb.emit_te(topi.tanh, bb.emit_te(topi.linear, x, bb.const(w)))
        y = bb.emit_te(topi.softmax, bb.emit_te(topi.linear, bb.emit_te(topi.multiply, h, h), bb.const(v)), axis=1)
        bb.emit_func_output([y, bb.emit_te(topi.reshape, h, (n * 2, 8))])

    def reference(x):
        h = np.tanh(x.astype("float64") @ w.T)
        e = np.exp((h * h) @ v.T)
        return e / e.sum(1, keepdims=True), h.reshape(-1, 8)
    return build_function(bb.get()["main"], target), reference


@needs_linker
@pytest.mark.parametrize("extent", [7, "n"])
@pytest.mark.parametrize("suffix", [".so", ".o"])
def test_exported_models_load_and_run(tmp_path, extent, suffix):
    run, reference = model(size(extent) if extent == "n" else extent)
    path = tmp_path / f"model{suffix}"
    run.export(path)
    again = load(path)
    for n in (7,) if extent == 7 else (7, 1, 300):
        x = array(n, 20)
        x.flags.writeable = False
        for got, want in zip(again(x), reference(x)):
            np.testing.assert_allclose(np.asarray(got), want, atol=1e-5)


X = array(3, 4)
WRONG = {
    "shape": ((X, array(3, 5)), {}), "sizes that differ": ((X, X[:2]), {}), "dimensions": ((X, X[0]), {}),
    "dtype": ((X, X.astype("float64")), {}), "tensor of another dtype": ((X, tw.nd.array(X, dtype="int32")), {}),
    "too few": ((X,), {}), "too many": ((X, X, X), {}), "no such name": ((X,), {"z": X}), "twice": ((X,), {"x": X}),
    "number": ((X, np.float32(1)), {}), "list": ((X, X.tolist()), {}), "none": ((X, None), {}), "text": ((X, "x"), {}),
    "byte order": ((X, X.astype(">f4")), {}), "complex": ((X, X.astype("complex64")), {}),
    "complex tensor": ((X, tw.nd.from_dlpack(X.astype("complex64"))), {}), "objects": ((X, X.astype(object)), {}),
    "wide floats": ((X, X.astype("longdouble")), {}), "texts": ((X, X.astype("U3")), {})}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """x + y, compiled and loaded from a file."""
    bb, path = BlockBuilder(), tmp_path_factory.mktemp("add") / "add.o"
    x, y = bb.param("x", (size("n"), 4)), bb.param("y", (size("n"), 4))
    with bb.function("add", [x, y]):
        bb.emit_func_output(bb.emit_te(topi.add, x, y))
    run = build_function(bb.get()["add"])
    run.export(path)
    return run, load(path)


@pytest.mark.parametrize("what", WRONG)
def test_compiled_and_loaded_models_refuse_alike(both, what):
    args, named = WRONG[what]
    errors = []
    for call in both:
        with pytest.raises(GraphError, match="^add[: ].*[xyz]") as found:
            call(*args, **named)
        assert isinstance(found.value, CallError) and isinstance(found.value, (ValueError, TypeError))
        errors.append((type(found.value), str(found.value)))
    assert errors[0] == errors[1]


def test_copies_and_pickles_of_loaded_models(both, tmp_path):
    _, model = both
    assert copy.copy(model) is copy.deepcopy(model) is model and copy.deepcopy(model.function) is model.function
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(model))(X, X)), X + X)


def test_kernels_are_no_models(tmp_path):
    x, a = te.placeholder((4,), name="x"), te.var("a", "float32")
    tw.compile([x, a, te.compute((4,), lambda i: x[i] * a, name="y")], name="scale").save(tmp_path / "scale.o")
    with pytest.raises(LoadError, match="load: .* takes a number, a(.|\n)*load_module"):
        load(tmp_path / "scale.o")


def test_arguments_by_name(both):
    for call in both:
        np.testing.assert_array_equal(np.asarray(call(y=X, x=X)), X + X)


@needs_linker
def test_other_programs_load_them(tmp_path):
    run, reference = model(size("n"))
    path = tmp_path / "model.so"
    run.export(path, "classify")
    x, y, h = array(4, 20), np.empty((4, 5), "float32"), np.empty((8, 8), "float32")
    ffi.load_library(str(path)).get_function("classify")(*map(ffi.from_dlpack, (x, y, h)))
    np.testing.assert_allclose(y, reference(x)[0], atol=1e-5)


C = r"""
#include <stdio.h>
#include "model.h"
int main(void) {
    static float x[4 * 20], y[4 * 5], h[8 * 8];
    for (int i = 0; i < 80; i++) x[i] = (float)(i % 7) - 3;
    if (classify(x, y, h, 4) != 0) { puts(tilewright_last_error()); return 1; }
    for (int i = 0; i < 20; i++) printf("%.6f\n", y[i]);
    return 0;
}
"""


@needs_linker
def test_a_program_of_c_calls_them(tmp_path):
    run, reference = model(size("n"))
    module = run.module("classify")
    module.save(tmp_path / "model.o")
    module.export_header(tmp_path / "model.h")
    (tmp_path / "main.c").write_text(C)
    subprocess.run([*export.linker(host_triple()), "main.c", "model.o", "-o", "main", "-lm", "-lpthread", "-ldl"],
                   cwd=tmp_path, check=True, timeout=120)
    out = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True, timeout=60).stdout
    x = (np.arange(80) % 7 - 3).astype("float32").reshape(4, 20)
    np.testing.assert_allclose(np.array(out.split(), "float64").reshape(4, 5), reference(x)[0], atol=1e-5)


@needs_linker
@pytest.mark.parametrize("flags", [("-O3", "-march=native"), ("-O2", "-DTILEWRIGHT_SCALAR"), ("-O1", "-fopenmp")])
@pytest.mark.parametrize("extent", ["n", 4])
def test_source_files_of_a_graph(tmp_path, extent, flags):
    """They need nothing of Tilewright."""
    run, reference = model(size("n") if extent == "n" else 4, "c -mcpu=x86-64")
    made = run.export_source(tmp_path, "classify")
    assert [p.name for p in made] == ["classify.h", "classify.c", "main.c", "classify.bin"]
    (tmp_path / "main.c").write_text(C.replace("model.h", "classify.h").replace(
        ", 4)", ", 4)" if extent == "n" else ")"))
    ran = subprocess.run([*export.linker(host_triple()), "-std=gnu11", "-fwrapv", "-fno-tree-loop-vectorize", *flags,
                          "classify.c", "main.c", "-o", "main", "-lm"], cwd=tmp_path, capture_output=True, text=True)
    if ran.returncode and "-fopenmp" in flags and "omp" in ran.stderr:
        pytest.skip("the compiler has no OpenMP")
    assert not ran.returncode, ran.stderr
    out = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True, timeout=60).stdout
    x = (np.arange(80) % 7 - 3).astype("float32").reshape(4, 20)
    np.testing.assert_allclose(np.array(out.split(), "float64").reshape(4, 5), reference(x)[0], atol=1e-5)


@needs_linker
def test_source_files_report_an_index_outside(tmp_path):
    bb = BlockBuilder()
    at = bb.param("at", (size("n"),), "int64")
    values = array(10, 4)
    with bb.function("main", [at]):
        bb.emit_func_output(bb.emit_te(topi.take, bb.const(values), at, axis=0))
    build_function(bb.get()["main"], "c").export_source(tmp_path, "rows")
    (tmp_path / "main.c").write_text(r"""
#include <stdio.h>
#include "rows.h"
int main(void) {
    int64_t good[2] = {3, 9}, bad[2] = {1, 99};
    float out[8];
    if (rows(bad, out, 2) != -1) return 1;
    puts(tilewright_last_error());
    if (rows(good, out, 2) != 0) return 2;
    for (int i = 0; i < 8; i++) printf("%.9g\n", out[i]);
    return 0;
}
""")
    subprocess.run([*export.linker(host_triple()), "-std=gnu11", "-fwrapv", "rows.c", "main.c", "-o", "main", "-lm"],
                   cwd=tmp_path, check=True, timeout=120)
    ran = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True, timeout=60)
    message, *numbers = ran.stdout.splitlines()
    assert "= 99 of in0 is outside of its extent 10" in message
    np.testing.assert_array_equal(np.array(numbers, "float32").reshape(2, 4), values[[3, 9]])


@needs_linker
def test_source_files_of_choices_and_loops(tmp_path):
    """y = x * 2 or x + 1, four times, and the sums of each step."""
    bb = BlockBuilder()
    x, i, flag = bb.param("x", (size("n"),)), bb.param("i", (), "int64"), bb.param("flag", (), "bool")
    for name, rule, other in (("twice", topi.multiply, 2.0), ("more", topi.add, 1.0)):
        with bb.function(name, [x]):
            bb.emit_func_output(bb.emit_te(rule, x, other))
    with bb.function("turn", [i, x, flag]):
        y, = bb.emit_call(If(bb.get()["twice"], bb.get()["more"]), [flag, x])
        bb.emit_func_output([bb.emit_te(topi.less, i, 9), y, bb.emit_te(topi.sum, y)])
    with bb.function("main", [x, flag]):
        bb.emit_func_output(bb.emit_call(Loop(bb.get()["turn"], 1, 4), [
            bb.const(np.array(4)), bb.const(np.array(True)), x, flag]))
    build_function(bb.get()["main"], "c -mcpu=x86-64").export_source(tmp_path, "repeat")
    (tmp_path / "main.c").write_text(r"""
#include <stdio.h>
#include "repeat.h"
int main(void) {
    float x[3] = {1, 2, 3}, y[3], sums[4];
    for (int k = 0; k < 2; k++) {
        uint8_t flag = k;
        if (repeat(x, (void *)&flag, y, sums, 3) != 0) { puts(tilewright_last_error()); return 1; }
        for (int i = 0; i < 3; i++) printf("%g ", y[i]);
        for (int i = 0; i < 4; i++) printf("%g ", sums[i]);
    }
    return 0;
}
""")
    subprocess.run([*export.linker(host_triple()), "-std=gnu11", "-fwrapv", "-Wall", "-Werror", "repeat.c", "main.c",
                    "-o", "main", "-lm"], cwd=tmp_path, check=True, timeout=120)
    out = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.split() == "5 6 7 9 12 15 18 16 32 48 12 24 48 96".split()


def test_graphs_for_llvm_have_no_source_files(tmp_path):
    with pytest.raises(TilewrightError, match="no source files"):
        model(4)[0].export_source(tmp_path)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_index_outside_is_an_error_of_the_module_too(target):
    bb = BlockBuilder()
    table, at = bb.param("table", (10, 4)), bb.param("at", (size("n"),), "int64")
    with bb.function("main", [table, at]):
        bb.emit_func_output(bb.emit_te(topi.take, table, at, axis=0))
    module = build_function(bb.get()["main"], target).module("rows")
    values, out = array(10, 4), np.empty((2, 4), "float32")
    with pytest.raises(CallError, match="= 99 of in0 is outside of its extent 10"):
        module["rows"](values, np.array([1, 99]), out)
    module["rows"](values, np.array([1, 9]), out)
    np.testing.assert_array_equal(out, values[[1, 9]])


def test_what_calls_python_cannot_be_exported(tmp_path):
    @tw.register_func("tests.graph.twice", override=True)
    def twice(x, y):
        y.copyfrom(np.asarray(x) * 2)

    bb = BlockBuilder()
    x = bb.param("x", (3,))
    with bb.function("main", [x]):
        y = bb.call_packed("tests.graph.twice", [bb.emit_te(topi.exp, x)], [TensorType((3,))])
        bb.emit_func_output(bb.emit_te(topi.add, y, 1.0))
    run = build_function(bb.get()["main"])
    given = array(3)
    np.testing.assert_allclose(np.asarray(run(given)), np.exp(given) * 2 + 1, rtol=1e-5)
    with pytest.raises(GraphError, match="tests.graph.twice"):
        run.export(tmp_path / "model.so")


@needs_linker
def test_damaged_files_are_refused(tmp_path):
    run, _ = model(3)
    path = tmp_path / "model.so"
    run.export(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(LoadError, match="damaged"):
        load(path)


def test_arguments_that_are_not_compact(tmp_path):
    bb = BlockBuilder()
    x = bb.param("x", (size("n"), 3))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.exp, x))
    run = build_function(bb.get()["main"])
    run.export(tmp_path / "model.o")
    a = array(4, 3)
    unaligned = np.frombuffer(b"-" + a.tobytes(), "float32", offset=1, count=12).reshape(4, 3)
    for given in (a[::-1], array(3, 4).T, unaligned, a[:0], tw.nd.from_dlpack(array(3, 4).T)):
        for call in (run, load(tmp_path / "model.o")):
            np.testing.assert_allclose(call(given).numpy(), np.exp(np.asarray(given)), rtol=1e-5)
