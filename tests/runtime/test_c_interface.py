"""Exported files in programs of C: no Python, no tvm-ffi."""
from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.runtime import export
from tilewright.runtime.c_interface import c_names, header
from tilewright.runtime.llvm import host_triple
from tilewright.runtime.signature import Param, Signature
from tilewright.support.errors import ArgumentError

needs_linker = pytest.mark.skipif(not export.has_linker(host_triple()), reason="no linker on this machine")

MAIN = r"""
#include <stdio.h>
#include <string.h>
#include "rows.h"
static float a[2000 * 30], b[2000];
int main(void) {
    for (int i = 0; i < 2000 * 30; i++) a[i] = (float)(i % 30);
    tilewright_set_num_threads(4);
    for (int run = 0; run < 100; run++)
        if (rowsum(a, b, 2.0f, 2000, 30) != 0) { puts(tilewright_last_error()); return 1; }
    for (int i = 0; i < 2000; i++) if (b[i] != 870.0f) return 2;
    int status = rowsum(a, b, 1.0f, -3, 30);
    printf("%d %s\n", status, tilewright_last_error());
    status = rowsum(a, a, 1.0f, 2000, 30);
    printf("%d %.30s\n", status, tilewright_last_error());
    puts(strstr(tilewright_last_error(), "numpy") ? "a hint for Python" : "a hint for C");
    return 0;
}
"""
EXPECTED = ("-1 rowsum: n is -3, an extent is at least 0\n"
            "-1 rowsum: argument B overlaps ar\na hint for C\n")


def rowsum():
    """B[i] = scale * sum(A[i, :]), on all threads."""
    n, k, scale = te.var("n"), te.var("k"), te.var("scale", "float32")
    a = te.placeholder((n, k), name="A")
    r = te.reduce_axis((0, k))
    total = te.compute((n,), lambda i: te.sum(a[i, r], axis=r))
    b = te.compute((n,), lambda i: total[i] * scale, name="B")
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    return tw.build(s, [a, b, scale], name="rowsum")


def call(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_linker
@pytest.mark.parametrize("file", ("librows.so", "rows.o"))
def test_a_c_program_calls_it(tmp_path, file):
    m = rowsum()
    m.save(tmp_path / file)
    m.export_header(tmp_path / "rows.h")
    (tmp_path / "main.c").write_text(MAIN)
    call([*export.linker(host_triple()), "-Wall", "-Wextra", "-Werror", "-pedantic", "main.c", file,
          f"-Wl,-rpath,{tmp_path}", "-lm", "-lpthread", "-ldl", "-o", "main"], tmp_path)
    assert call([str(tmp_path / "main")], tmp_path) == EXPECTED


@needs_linker
def test_python_without_tilewright_loads_it(tmp_path):
    rowsum().export_library(tmp_path / "rows.so")
    out = call([sys.executable, "-c", f"""if True:
        import ctypes
        lib = ctypes.CDLL({str(tmp_path / "rows.so")!r})
        lib.tilewright_last_error.restype = ctypes.c_char_p
        a, b = (ctypes.c_float * 12)(*range(12)), (ctypes.c_float * 4)()
        print(lib.rowsum(a, b, ctypes.c_float(0.5), ctypes.c_int64(4), ctypes.c_int64(3)), list(b))
        print(lib.rowsum(None, b, ctypes.c_float(0.5), ctypes.c_int64(4), ctypes.c_int64(3)))
        print(lib.tilewright_last_error().decode().splitlines()[0])
        """], tmp_path)
    assert out == ("0 [1.5, 6.0, 10.5, 15.0]\n-1\n"
                   "rowsum: argument A.data is null, expected the address of its elements\n")


@needs_linker
def test_the_same_file_serves_tvm_ffi(tmp_path):
    rowsum().export_library(tmp_path / "rows.so")
    out = call([sys.executable, "-c", f"""if True:
        import numpy as np, tvm_ffi
        rows = tvm_ffi.load_module({str(tmp_path / "rows.so")!r})
        a, b = np.ones((4, 3), "float32"), np.zeros(4, "float32")
        rows.rowsum(a, b, 0.5)
        print(b)
        try:
            rows.rowsum(a, np.zeros(5, "float32"), 0.5)
        except ValueError as error:
            print(str(error).splitlines()[0])
        """], tmp_path)
    assert out.startswith("[1.5 1.5 1.5 1.5]\nrowsum: ")


SCALARS = {"bool": True, "int8": -7, "uint8": 250, "int16": -300, "uint16": 65000, "int32": -70000, "int64": -2**40,
           "uint64": 2**63 + 2**40, "float32": 0.1, "float64": 0.1, "float16": 0.1, "bfloat16": 0.1}


@needs_linker
def test_scalars_of_every_type_and_extents_that_are_computed(tmp_path):
    n = te.var("n")
    a = te.placeholder((n,), "float64", name="A")
    values = {d: te.var(d, d) for d in SCALARS}
    out = te.compute((te.floordiv(n * 3 + 1, 2), len(SCALARS)), lambda i, j: sum(
        (te.if_then_else(j == k, v.astype("float64"), 0.0) for k, v in enumerate(values.values())),
        te.const(0.0, "float64")) + a[0], name="out")
    m = tw.build(te.create_schedule(out.op), [a, out, *values.values()], name="spread")
    m.export_library(tmp_path / "spread.so")
    lib = ctypes.CDLL(str(tmp_path / "spread.so"))
    x, y = np.zeros(5), np.zeros((8, len(SCALARS)))
    types = {"bool": ctypes.c_bool, "float16": ctypes.c_float, "bfloat16": ctypes.c_float, "float32": ctypes.c_float,
             "float64": ctypes.c_double}
    scalars = [types.get(d, getattr(ctypes, f"c_{d}", None))(v) for d, v in SCALARS.items()]
    assert lib.spread(x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p), *scalars,
                      ctypes.c_int64(5)) == 0
    expected = [float(np.array(v).astype(getattr(ml_dtypes, d, d))) for d, v in SCALARS.items()]
    np.testing.assert_array_equal(y, np.tile(expected, (8, 1)))


def test_names_that_c_has_already():
    signatures = {n: Signature(n, ()) for n in ("matmul", "exp", "main", "for", "a.b", "a-b", "_x", "9x", "tw_alloc",
                                                "matmul__kernel")}
    assert c_names(signatures) == {
        "matmul": "matmul", "exp": "tilewright_exp", "main": "tilewright_main", "for": "tilewright_for",
        "a.b": "tilewright_a_b", "a-b": "tilewright_a_b_", "_x": "tilewright__x", "9x": "tilewright_9x",
        "tw_alloc": "tilewright_tw_alloc", "matmul__kernel": "tilewright_matmul__kernel"}


TAKEN = ("expf linux unix static_cast typeof thread_local static_assert int64_t uint8_t NULL INT64_MAX errno mmap "
         "getpid xor_eq co_await _Bool bool I puts uint ushort fd_set alloca").split()


@needs_linker
def test_the_header_compiles_beside_those_of_c(tmp_path):
    if not sys.platform.startswith("linux"):
        pytest.skip("the names are those of Linux")
    assert list(c_names({n: Signature(n, ()) for n in TAKEN}).values()) == [f"tilewright_{n}" for n in TAKEN]
    functions = {n: Signature(n, (Param(n, "int32"), Param("n", "int64", (n + "_extent",)))) for n in TAKEN}
    (tmp_path / "taken.h").write_text(header(functions, "taken.h"))
    headers = ("stdio", "errno", "math", "stdlib", "complex", "assert", "unistd", "sys/mman", "taken")
    (tmp_path / "main.c").write_text("".join(f'#include "{name}.h"\n' for name in headers))
    call([*export.linker(host_triple()), "-Wall", "-Werror", "-c", "main.c"], tmp_path)
    if shutil.which("g++"):
        call(["g++", "-x", "c++", "-fsyntax-only", "taken.h"], tmp_path)


def test_the_header_says_what_is_expected():
    text = header({"f": Signature("f", (
        Param("X", "float16", ("n", 4), ("s", 1)), Param("int", "int32"),
        Param("q", "uint8", (("mul", "n", 2),), written=True, exclusive=True)))}, "a-b.h")
    assert "#ifndef TILEWRIGHT_A_B_H" in text
    assert "int f(const uint16_t *X, int32_t int_, uint8_t *q, int64_t n, int64_t s);" in text
    assert "X: float16[n, 4], strides in elements [s, 1], read\n" in text
    assert "q: uint8[n * 2], written, overlaps no other argument" in text


def test_a_header_is_called_so(tmp_path):
    with pytest.raises(ArgumentError, match=r"export_header\(.*x.txt'\): unknown kind of file"):
        rowsum().export_header(tmp_path / "x.txt")


def twice(triple):
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    cpu = "-mcpu=generic-rv64 -mattr=+m,+f,+d,+v" if "riscv" in triple else "-mcpu=generic"
    return tw.build(s, [a, b], f"llvm -mtriple={triple} {cpu}", name="twice")


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs the export extra")
@pytest.mark.parametrize("triple, magic", [
    ("aarch64-unknown-linux-gnu", b"\x7fELF"), ("aarch64-apple-darwin", b"\xcf\xfa\xed\xfe")])
def test_libraries_for_other_machines_are_linked(tmp_path, triple, magic):
    twice(triple).export_library(path := tmp_path / "twice.so")
    data = path.read_bytes()
    assert data[:4] == magic and (magic != b"\x7fELF" or data[18] == 183)


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs the export extra")
@pytest.mark.parametrize("triple, magic, machine, name", [
    ("riscv64-unknown-linux-gnu", b"\x7fELF", 243, "riscv64-linux-gnu"),
    ("x86_64-unknown-linux-musl", b"\x7fELF", 62, "x86_64-linux-musl"),
    ("x86_64-apple-darwin", b"\xcf\xfa\xed\xfe", 7, "x86_64-macos")])
def test_objects_and_linkers_for_other_machines(triple, magic, machine, name, monkeypatch):
    """Zig builds a C library for each machine that it links for the first time, which takes half a minute."""
    (image,) = twice(triple).images
    assert image.data[:4] == magic and image.data[18 if magic == b"\x7fELF" else 4] == machine
    monkeypatch.setenv("PATH", "")
    assert export.linker(triple)[-4:] == ["ziglang", "cc", "-target", name]
