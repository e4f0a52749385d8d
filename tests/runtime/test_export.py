"""Exported objects and libraries: loaded again, linked together, in programs that know nothing of Tilewright."""
import ctypes
import mmap
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
import runtime_kernels as kernels

from tilewright import te
from tilewright.driver import build
from tilewright.runtime import Module, array, empty, export, load_module, native, seal
from tilewright.runtime.export import linker, place, workplace
from tilewright.runtime.llvm import host_triple
from tilewright.runtime.seal import SIZE
from tilewright.support.errors import ArgumentError, CallError, CodegenError, LoadError, TargetError
from tilewright.support.target import target
from tilewright.tir import IRModule

needs_linker = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a system linker")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("lib") / "scale.so"
    kernels.scale().export_library(path)
    return path


def run(code, timeout=60):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def check_scale(module):
    a, c = np.arange(1000, dtype="float32"), np.zeros(1000, "float32")
    module["scale"](a, c)
    np.testing.assert_array_equal(c, 2 * a)
    c[:] = 0
    module(array(a), u := empty(1000))
    np.testing.assert_array_equal(u.numpy(), 2 * a)
    with pytest.raises(CallError, match=r"^scale: argument C\.shape\[0\] is 3, expected 1000"):
        module(a, c[:3])
    with pytest.raises(CallError, match="argument A is of type list"):
        module([1], c)
    with pytest.raises(CallError, match="num_args is 1"):
        module(a)


@needs_linker
def test_a_library_loads_again(library):
    m = load_module(library)
    assert m.names == ("scale",) and m.entry_name == "scale" and "scale" in m
    check_scale(m)
    assert m.time_evaluator("scale", number=3, repeat=2)(np.ones(4, "float32"), np.ones(4, "float32")).min > 0


@needs_linker
def test_a_library_that_was_written_again_is_loaded_again(tmp_path):
    a, path = np.ones(4, "float32"), tmp_path / "scale.so"
    kernels.scale().export_library(path)
    first = load_module(path)
    kernels.build(kernels.SCALE_SIGNATURE, kernels.SCALE.replace("fmul float %a, 2.0", "fmul float %a, 3.0")
                  ).export_library(path)
    before = set(os.listdir(tempfile.gettempdir()))
    for module, want in ((load_module(path), 3), (load_module(path), 3), (first, 2)):
        c = np.zeros(4, "float32")
        module(a, c)
        assert c[0] == want
    assert len([x for x in set(os.listdir(tempfile.gettempdir())) - before if x.startswith("tilewright-")]) <= 1


@needs_linker
def test_an_object_loads_again(tmp_path):
    kernels.scale().save(tmp_path / "scale.o")
    check_scale(load_module(tmp_path / "scale.o"))


@needs_linker
def test_a_program_without_tilewright_runs_the_library(library):
    out = run(f"""
        import sys
        import numpy as np, tvm_ffi
        m = tvm_ffi.load_module({str(library)!r})
        a, c = np.arange(100000, dtype="float32"), np.zeros(100000, "float32")
        m.scale(a, c)
        assert (c == 2 * a).all()
        try:
            m.scale(a, c[:5])
        except ValueError as error:
            print(str(error).splitlines()[0])
        try:
            m.scale(a)
        except TypeError as error:
            print(str(error).splitlines()[0])
        print("tilewright" in sys.modules)
    """)
    assert out == ("scale: argument C.shape[0] is 5, expected 100000 (constraint C.shape[0] == n, n = A.shape[0])\n"
                   "scale: num_args is 1, expected 2\nFalse\n")


@needs_linker
def test_libraries_of_one_process_share_a_pool(tmp_path):
    for name in ("one", "two"):
        kernels.who().export_library(tmp_path / f"{name}.so")
    out = run(f"""
        import os, sys
        sys.path.insert(0, {str(HERE)!r})
        os.environ["TILEWRIGHT_NUM_THREADS"] = "3"
        import numpy as np, tvm_ffi
        one, two = (tvm_ffi.load_module({str(tmp_path)!r} + f"/{{n}}.so", keep_module_alive=False)
                    for n in ("one", "two"))
        seen, ids = np.zeros(200, "int64"), set()
        for m in (one, two):
            for _ in range(100):
                m.who(seen, 5000)
                ids |= set(seen)
        one = m = None                                      # the pool of the first library outlives it
        import runtime_kernels as kernels
        from tilewright.runtime import get_num_threads, set_num_threads
        who = kernels.who()["who"]
        for _ in range(100):
            who(seen, 5000)
            ids |= set(seen)
        two.who(seen, 10)
        print(get_num_threads(), len(ids) <= 3, len(os.listdir("/proc/self/task")) <= 3 + {count_blas()})
        set_num_threads(1)
        two.who(seen, 10)
        print(len(set(seen)))
    """)
    assert out == "3 True True\n1\n"


def count_blas():
    """Threads that NumPy's BLAS starts at import."""
    return int(run("import os, numpy\nprint(len(os.listdir('/proc/self/task')) - 1)"))


@needs_linker
def test_objects_link_into_a_program_of_ones_own(tmp_path):
    kernels.scale().save(tmp_path / "scale.o")
    kernels.cover().save(tmp_path / "cover.o")
    subprocess.run([*linker(host_triple()), "-shared", "-o", str(tmp_path / "both.so"), str(tmp_path / "scale.o"),
                    str(tmp_path / "cover.o")], check=True)
    out = run(f"""
        import numpy as np, tvm_ffi
        m = tvm_ffi.load_module({str(tmp_path / "both.so")!r})
        hits, a = np.zeros((30, 7), "int32"), np.ones(5, "float32")
        m.cover(hits); m.scale(a, a)
        print((hits == 1).all(), a[0])
    """)
    assert out == "True 2.0\n"


@needs_linker
def test_only_the_functions_are_visible(library):
    exported = ctypes.CDLL(str(library))
    assert exported["__tvm_ffi_scale"] and exported["scale"] and exported["tilewright_last_error"]
    for name in (*native.EXPORTS, "scale__kernel", "scale__signature"):     # another library may have one of that name
        with pytest.raises(AttributeError):
            exported[name]


@needs_linker
def test_an_export_is_complete_or_not_there(tmp_path):
    path = tmp_path / "x.so"
    path.write_text("older")
    with pytest.raises(CodegenError, match="the linker failed"):
        kernels.scale().export_library(path, cc="false")
    assert path.read_text() == "older" and os.listdir(tmp_path) == ["x.so"]
    with pytest.raises(CodegenError, match="cannot be started"):
        kernels.scale().export_library(path, cc="no-such-compiler")


def test_bad_files(tmp_path):
    with pytest.raises(ArgumentError, match="there is no file"):
        load_module(tmp_path / "absent.so")
    (tmp_path / "junk.so").write_bytes(b"junk")
    (tmp_path / "junk.o").write_bytes(b"junk")
    for name in ("junk.so", "junk.o"):
        with pytest.raises(LoadError, match="load_module: "):
            load_module(tmp_path / name)
    with pytest.raises(ArgumentError, match="unknown kind of file"):
        kernels.scale().save(tmp_path / "x.txt")
    with pytest.raises(ArgumentError, match=r"unknown kind of file\n\nhint: use \.so \(or \.dylib\), or \.tar"):
        kernels.scale().export_library(tmp_path / "x.txt")
    with pytest.raises(ArgumentError, match="there is no folder"):
        kernels.scale().save(tmp_path / "no" / "x.o")


@pytest.mark.parametrize("size, pax", [
    (2**62, {}), (2**80, {}), (64, {"size": str(2**70)}),
    (64, {"GNU.sparse.map": "0,64", "GNU.sparse.size": str(2**37), "GNU.sparse.name": "lib.o"})])
def test_an_archive_whose_sizes_are_wrong(tmp_path, size, pax):
    info = tarfile.TarInfo("lib.o")
    info.size, info.pax_headers = size, pax
    (tmp_path / "f.tar").write_bytes(info.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT) + bytes(10240))
    with pytest.raises(LoadError, match="load_module: "):
        load_module(tmp_path / "f.tar")


def test_paths_that_no_file_has(tmp_path):
    m = kernels.scale()
    for path in ("a" * 5000 + ".o", "\ud800.o"):
        with pytest.raises(ArgumentError, match="load_module: "):
            load_module(path)
        with pytest.raises(ArgumentError):
            m.save(path)


@needs_linker
@pytest.mark.parametrize("name", ["$LIB", "$ORIGIN", os.fsdecode(b"\xff"), "a b", "\N{GREEK SMALL LETTER PI}"])
def test_a_library_in_a_folder_of_any_name(library, tmp_path, name):
    (tmp_path / name).mkdir()
    check_scale(load_module(shutil.copy(library, tmp_path / name / "scale.so")))


@needs_linker
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_are_for_those_whom_the_umask_lets_in(tmp_path, mask):
    before = os.umask(mask)
    try:
        kernels.scale().save(tmp_path / "f.o")
        kernels.scale().export_library(tmp_path / "f.so")
    finally:
        os.umask(before)
    assert (tmp_path / "f.o").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (tmp_path / "f.so").stat().st_mode & 0o777 == 0o777 & ~mask


def test_a_linker_that_says_what_is_no_text(tmp_path):
    (tmp_path / "cc").write_text("#!/bin/sh\nprintf 'no \\377' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(CodegenError, match="the linker failed.*\n\nno \ufffd"):
        kernels.scale().export_library(tmp_path / "f.so", cc=str(tmp_path / "cc"))


@needs_linker
def test_a_file_is_read_in_parts_of_any_size(library, monkeypatch, tmp_path):
    data = library.read_bytes()
    for window in (mmap.PAGESIZE, 2 * mmap.PAGESIZE, 1 << 20):
        monkeypatch.setattr(seal, "_WINDOW", window)
        check_scale(load_module(library))
        for at in (0, min(window, len(data)) - 1, min(window, len(data) - 9), len(data) - 1):
            assert seal.find(data, data[at:at + 9]) == data.find(data[at:at + 9])
            damaged = bytearray(data)
            damaged[at] ^= 1
            (tmp_path / "damaged.so").write_bytes(damaged)
            with pytest.raises(LoadError, match="is damaged"):
                load_module(tmp_path / "damaged.so")
        assert seal.find(data, b"in no such file") == -1
    (tmp_path / "empty.so").write_bytes(b"")
    with pytest.raises(LoadError, match="was not written by Tilewright"):
        load_module(tmp_path / "empty.so")


def test_a_file_larger_than_the_memory(tmp_path, monkeypatch):
    def read(path): raise MemoryError
    (tmp_path / "f.o").write_bytes(b"x")
    monkeypatch.setattr(Path, "read_bytes", read)
    with pytest.raises(ArgumentError, match="load_module: .*f.o cannot be read: it is larger than the memory"):
        load_module(tmp_path / "f.o")


def test_a_linker_of_ones_own_that_makes_nothing(tmp_path):
    with pytest.raises(CodegenError, match="has made no file"):
        kernels.scale().export_library(tmp_path / "f.so", fcompile=lambda path, objects: None)


def test_modules():
    m = Module.of_objects({"scale": kernels.scale().objects[0]}, target("llvm"))
    check_scale(m)
    assert m["scale"] is m["scale"] and "scale(A: float32[n], C: float32[n])" in repr(m)
    with pytest.raises(ArgumentError, match="no function 'nothing'; it has scale"):
        m["nothing"]
    with pytest.raises(ArgumentError, match="no signature of other"):
        Module.of_objects({"other": kernels.scale().objects[0]}, target("llvm"))
    with pytest.raises(ArgumentError, match="keeps no source 'ptx'"):
        m.get_source("ptx")
    foreign = Module(m.images, m.signatures, triple="riscv64-unknown-linux-gnu")
    with pytest.raises(TargetError, match="code for riscv64-unknown-linux-gnu cannot run on this machine"):
        foreign(1)


def test_a_missing_symbol_is_named():
    text = kernels.SCALE.replace("@tw_parallel", "@no_such_symbol_anywhere")
    m = kernels.build(kernels.SCALE_SIGNATURE, text)
    with pytest.raises(CodegenError, match="no_such_symbol_anywhere"):
        m["scale"]


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu", "aarch64-apple-darwin",
                                    "x86_64-apple-darwin", "x86_64-unknown-linux-musl"])
def test_the_support_code_compiles_for_other_machines(triple):
    data = native.compile_support(triple, exported=True)
    for name in native.EXPORTS:
        assert name.encode() in data


def test_targets_without_threads_are_refused():
    for triple in ("x86_64-pc-windows-msvc", "wasm32-unknown-unknown", "armv7l-none-linux-gnueabihf"):
        with pytest.raises(TargetError, match=re.escape(triple)):
            native.compile_support(triple)


def test_code_is_unloaded_with_its_last_function():
    for _ in range(20):
        f = kernels.scale()["scale"]
        a = np.ones(4, "float32")
        f(a, a)
        assert a[0] == 2


def test_an_object_is_saved_and_loaded_without_a_linker(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None)
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: a[i] * 2.0, name="B")
    module = build(te.create_schedule(b.op), [a, b], "llvm", name="twice")
    module.save(tmp_path / "twice.o")
    x, y = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    load_module(tmp_path / "twice.o")(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(CodegenError, match="tilewright\\[export\\]"):
        module.export_library(tmp_path / "twice.so")
    assert not (tmp_path / "twice.so").exists()


def test_no_name_and_no_temporary_folder_that_the_system_refuses(tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match=r"cannot write .*: File name too long"):
        place(tmp_path / f"{'x' * 300}.so", b"")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ArgumentError, match=r"cannot write temporary files to .*nowhere: No such file"), workplace():
        pass
    assert list(tmp_path.iterdir()) == []


MUTATE = """
    import random, sys
    from pathlib import Path
    from tilewright.runtime import load_module
    from tilewright.support.errors import LoadError
    source, others = Path(sys.argv[1]), [Path(p).read_bytes() for p in sys.argv[2:4]]
    seed, count = map(int, sys.argv[4:])
    data, draw = source.read_bytes(), random.Random(seed)
    target = source.with_name(f"mutated{source.suffix}")

    def flipped(b):
        b = bytearray(b)
        for _ in range(draw.choice((1, 1, 2, 20))):
            b[draw.randrange(len(b))] ^= 1 << draw.randrange(8)
        return bytes(b)

    def spliced(b):
        other = draw.choice(others)
        at, start = draw.randrange(len(b)), draw.randrange(len(other))
        return b[:at] + other[start:start + draw.randrange(1, 400)] + b[at + draw.randrange(400):]

    kinds = [flipped, spliced, lambda b: b[:draw.randrange(len(b))], lambda b: b[draw.randrange(1, len(b)):],
             lambda b: b + draw.randbytes(draw.randrange(1, 100)),
             lambda b: b[:(at := draw.randrange(len(b) - 99))] + bytes(99) + b[at + 99:]]
    refused = 0
    for _ in range(count):
        mutated = draw.choice(kinds)(data)
        if mutated == data:
            continue
        target.write_bytes(mutated)
        try:
            load_module(target)
        except LoadError as error:
            assert str(target) in str(error) and "hint: " in str(error), error
            refused += 1
        else:
            raise AssertionError(f"{count}: a damaged file was loaded")
    print("refused", refused)
"""


@needs_linker
@pytest.mark.parametrize("suffix", [".o", ".so"])
def test_no_damaged_file_is_loaded(tmp_path, suffix):
    """Nor does one end the process: bits flipped, parts missing, added, zeroed, or taken from other objects."""
    path = tmp_path / f"scale{suffix}"
    (kernels.scale().save if suffix == ".o" else kernels.scale().export_library)(path)
    kernels.cover().save(tmp_path / "cover.o")
    kernels.who().save(tmp_path / "who.o")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(MUTATE), path, tmp_path / "cover.o",
                           tmp_path / "who.o", "1", "1500"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and int(done.stdout.split()[1]) > 1300, (done.returncode, done.stderr[-2000:])
    check_scale(load_module(path))


def cut(data): return data[:len(data) - 300]
def with_segment_outside(data): return data[:0x60] + b"\xff\xff\xff\x7f" + data[0x64:]


@needs_linker
@pytest.mark.parametrize("damage", [cut, with_segment_outside, lambda data: data[:-2000], lambda data: data[:0x30]])
def test_a_library_that_others_linked_is_loaded_when_its_tables_are_whole(tmp_path, damage):
    kernels.scale().save(tmp_path / "scale.o")
    path = tmp_path / "own.so"
    subprocess.run([*linker(host_triple()), "-shared", "-o", str(path), str(tmp_path / "scale.o")], check=True)
    check_scale(load_module(path))
    broken = tmp_path / "broken.so"
    broken.write_bytes(damage(path.read_bytes()))
    with pytest.raises(LoadError):
        load_module(broken)


@needs_linker
@pytest.mark.parametrize("suffix", [".o", ".so"])
def test_a_file_whose_checksum_was_taken_away_is_refused(tmp_path, suffix):
    path = tmp_path / f"scale{suffix}"
    (kernels.scale().save if suffix == ".o" else kernels.scale().export_library)(path)
    path.write_bytes(path.read_bytes()[:-SIZE])
    with pytest.raises(LoadError, match=r"(?s)no checksum at its end.*strip and objcopy take the checksum away"):
        load_module(path)


def test_an_object_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "x.o").write_bytes(kernels.scale().objects[0])
    with pytest.raises(LoadError, match=r"(?s)x\.o was not written by Tilewright.*hint: "):
        load_module(tmp_path / "x.o")


@needs_linker
def test_an_object_that_was_loaded_is_saved_and_archived(tmp_path):
    kernels.scale().save(tmp_path / "one.o")
    load_module(tmp_path / "one.o").save(tmp_path / "two.o")
    check_scale(load_module(tmp_path / "two.o"))
    load_module(tmp_path / "one.o").export_library(tmp_path / "two.so")
    check_scale(load_module(tmp_path / "two.so"))
    if shutil.which("ar"):
        subprocess.run(["ar", "rcs", tmp_path / "lib.a", tmp_path / "one.o"], check=True)
        subprocess.run([*linker(host_triple()), "-shared", "-o", str(tmp_path / "all.so"), "-Wl,--whole-archive",
                        str(tmp_path / "lib.a"), "-Wl,--no-whole-archive"], check=True)
        check_scale(load_module(tmp_path / "all.so"))


@needs_linker
def test_functions_of_one_object_have_constants_of_their_own(tmp_path):
    """A linker that joins objects keeps local symbols of one name, such as those of constants."""
    def function(rule):
        x = te.placeholder((64,), name="x")
        return te.create_prim_func([x, te.compute((64,), lambda i: rule(x[i]), name="y")], name=rule.__name__)

    rules = (te.tanh, te.exp, te.erf)
    made = build(IRModule({f.__name__: function(f) for f in rules}))
    made.save(tmp_path / "three.o")
    loaded = load_module(tmp_path / "three.o")
    x = np.linspace(-2, 2, 64).astype("float32")
    for rule in rules:
        want, got = np.empty(64, "float32"), np.empty(64, "float32")
        made[rule.__name__](x, want)
        loaded[rule.__name__](x, got)
        np.testing.assert_array_equal(got, want)
