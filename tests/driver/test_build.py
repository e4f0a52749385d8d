"""lower, build and compile: every form of input, the cache of objects, dumps, parameters merged in place."""
import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver.build import (
    Compiled,
    cache_key,
    compile_text,
    generate,
)
from tilewright.lowering import PASSES
from tilewright.runtime.loader import load_objects
from tilewright.schedule import Schedule
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.support.errors import ArgumentError, LowerError, TargetError, TensorExpressionError
from tilewright.tir import interp

N = 20


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """No test sees what another compiled."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("DUMP", "VERIFY", "CACHE", "STRICT_MATH"):
        monkeypatch.delenv(f"TILEWRIGHT_{name}", raising=False)


def tensors(n=N, scale=2.0):
    a = te.placeholder((n,), name="A")
    return a, te.compute((n,), lambda i: a[i] * scale + 1.0, name="B")


def staged(n=N):
    a, b = tensors(n)
    s = te.create_schedule(b.op)
    o, i = s[b].split(b.op.axis[0], factor=8)
    s[b].vectorize(i)
    return s, [a, b]


def func(n=N, name="scale"):
    return te.create_prim_func(list(tensors(n)), name=name)


def right(f, n=N):
    x, y = np.random.RandomState(0).rand(n).astype("float32"), np.full(n, 77, "float32")
    f(x, y)
    np.testing.assert_allclose(y, 2 * x + 1, rtol=1e-6)


# ---- lower

def test_lower_shows_loops():
    s, args = staged()
    assert str(tw.lower(s, args, simple_mode=True)["default_function"]).splitlines()[-4:] == [
        "    for i_outer in range(3):",
        "        for i_inner in T.vectorized(8):",
        "            if T.likely(i_outer * 8 + i_inner < 20):",
        "                B_1[i_outer * 8 + i_inner] = A_1[i_outer * 8 + i_inner] * T.float32(2) + T.float32(1)",
    ]


def test_lower_takes_every_form():
    s, args = staged()
    assert list(tw.lower(s, args, name="f").functions) == ["f"]
    assert tw.lower(s, args, name="f")["f"].name == "f"
    assert list(tw.lower(func()).functions) == ["scale"]
    assert list(tw.lower(func(), name="g").functions) == ["g"]
    assert tw.lower(Schedule(func()))["main"].name == "scale"
    module = tw.IRModule({"f": func(name="f"), "g": func(name="g")})
    assert list(tw.lower(module).functions) == ["f", "g"]
    for lowered in tw.lower(module).functions.values():
        x, y = np.ones(N, "float32"), np.zeros(N, "float32")
        interp.run(lowered, x, y)
        np.testing.assert_array_equal(y, 3)


WRONG_INPUTS = {
    "a schedule of stages needs the argument list": lambda s, args: tw.lower(s),
    "cannot lower a str": lambda s, args: tw.lower("text"),
    "args are given with a PrimFunc": lambda s, args: tw.build(func(), args),
    "args are given with a Schedule": lambda s, args: tw.build(Schedule(func()), []),
    "the module has no functions": lambda s, args: tw.build(tw.IRModule({})),
    "name='g' is given with a module of 2 functions": lambda s, args: tw.build(
        tw.IRModule({"a": func(), "b": func(name="h")}), name="g"),
    "two functions of the module have the global symbol 'scale'": lambda s, args: tw.build(
        tw.IRModule({"a": func(), "b": func()})),
    "name=7 cannot name a function": lambda s, args: tw.build(s, args, name=7),
    "name='no name' cannot name a function": lambda s, args: tw.lower(s, args, name="no name"),
    "name='größe' cannot name a function": lambda s, args: tw.compile(func(), name="größe"),
    "have been scheduled already": lambda s, args: tw.compile(s, args),
}


@pytest.mark.parametrize("message", WRONG_INPUTS)
def test_wrong_inputs(message):
    with pytest.raises(ArgumentError) as caught:
        WRONG_INPUTS[message](*staged())
    assert message in str(caught.value)


def test_missing_arguments_are_named():
    s, (a, b) = staged()
    with pytest.raises(TensorExpressionError, match="placeholder A"):
        tw.build(s, [b])


# ---- build and compile

@pytest.mark.parametrize("make", [tw.compile, tw.build])
def test_tensors_without_a_schedule(make):
    """A list gives the order of the call; one tensor alone takes what it is computed from, then itself."""
    A, B = te.placeholder((4, 3), name="A"), te.placeholder((3,), name="B")
    k = te.reduce_axis((0, 3), name="k")
    C = te.compute((4,), lambda i: te.sum(A[i, k] * B[k], axis=k), name="C")
    low, high = te.compute((4,), lambda i: (C[i], C[i] + 1.0), name="D")
    a, b = np.arange(12, dtype="float32").reshape(4, 3), np.array([1, 2, 3], "float32")
    for given, names in (([C, B, A], "CBA"), ((A, B, C), "ABC"), (C, "ABC"), (C.op, "ABC")):
        f = make(given, name="f")
        assert f.entry_name == "f" and [p.name for p in f.signatures["f"].params] == list(names)
        c = np.zeros(4, "float32")
        f(A=a, B=b, C=c)
        np.testing.assert_array_equal(c, a @ b)
    both = make(high)
    names = [p.name for p in both.signatures["main"].params]
    assert names[:2] == ["A", "B"] and len(names) == 4
    x, y = np.zeros(4, "float32"), np.zeros(4, "float32")
    both(a, b, x, y)
    np.testing.assert_array_equal([x, y], [a @ b, a @ b + 1])
    assert str(tw.lower([A, B, C])) == str(tw.lower(C))
    with pytest.raises(TensorExpressionError, match="placeholder B is used by C"):
        make([A, C])

def test_build_takes_every_form():
    s, args = staged()
    forms = [tw.build(s, args), tw.build(s, args, "llvm", name="f"), tw.build(s, args, "llvm", "llvm", name="f"),
             tw.build(func()), tw.build(Schedule(func())), tw.build(tw.IRModule({"f": func()})),
             tw.build(tw.lower(s, args)), tw.build(tw.lower(s, args, simple_mode=True)), tw.compile(func()),
             tw.compile(te.create_schedule(args[1].op), args), tw.build(func(), target=tw.target("llvm -opt-level=0")),
             tw.build(s, iter(args), name="g")]
    assert " ".join(m.entry_name for m in forms) == (
        "default_function f f scale scale scale default_function default_function scale default_function scale g")
    for m in forms:
        right(m)
        right(m[m.entry_name])


def test_a_module_of_several_functions():
    m = tw.build(tw.IRModule({"f": func(name="f"), "g": func(n=7, name="g")}))
    assert m.entry_name == "f" and m.names == ("f", "g")
    right(m["f"])
    right(m["g"], 7)


def test_extents_and_scalars_known_at_the_call():
    n, factor = te.var("n"), te.var("factor", "float32")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * factor, name="B")
    for build in (tw.build, tw.compile):
        m = build(te.create_schedule(b.op), [a, b, factor])
        for size in (0, 1, 1000):
            x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
            m(x, y, 3.0)
            np.testing.assert_array_equal(y, 3 * x)


def test_the_target_in_force_is_used():
    with tw.Target("llvm -mtriple=aarch64-linux-gnu"):
        m = tw.build(func())
    assert m.triple == "aarch64-linux-gnu" and "\tldr\t" in m.get_source("s")
    with pytest.raises(TargetError, match="cannot run on this machine"):
        m["scale"]


def test_there_is_no_gpu():
    for build in (tw.build, tw.compile):
        with pytest.raises(TargetError, match="no code generation for 'cuda'"):
            build(func(), target="cuda")
    s, (a, b) = staged()
    s[b].bind(s[b].leaf_iter_vars[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(LowerError, match="is bound to threadIdx.x"):
        tw.build(s, [a, b], "llvm")


def test_sources():
    m = tw.build(func())
    assert "define void @scale__kernel" in m.get_source("ll") and "scale__kernel:" in m.get_source("s")
    assert "def scale(" in m.get_source("tir")


# ---- the cache of objects

SCRIPT = """
import json, sys
import numpy as np
import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm import compile
from tilewright.schedule.stages.facade import StageSchedule

calls = []
for owner, name in ((StageSchedule, "replay"), (compile, "emit_module")):
    def counted(*args, _call=getattr(owner, name), _name=name, **kwargs):
        calls.append(_name)
        return _call(*args, **kwargs)
    setattr(owner, name, counted)
a = te.placeholder((20,), name="A")
b = te.compute((20,), lambda i: a[i] * 2.0 + 1.0, name="B")
s = te.create_schedule(b.op)
o, i = s[b].split(b.op.axis[0], factor=8)
s[b].vectorize(i)
m = tw.build(s, [a, b], "llvm", name=sys.argv[1])
x, y = np.arange(20, dtype="float32"), np.zeros(20, "float32")
m[sys.argv[1]](x, y)
assert (y == 2 * x + 1).all()
print(json.dumps([calls, str(m.signatures[sys.argv[1]])]))
"""


def in_a_process(*args, **environment):
    done = subprocess.run([sys.executable, "-c", SCRIPT, *args], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_second_process_neither_replays_nor_compiles():
    first, signature = in_a_process("f")
    assert first == ["replay", "emit_module"]
    assert in_a_process("f") == [[], signature]
    assert in_a_process("g")[0] == first
    assert in_a_process("f", TILEWRIGHT_STRICT_MATH="1")[0] == first
    assert in_a_process("f", TILEWRIGHT_VERIFY="1")[0] == first
    assert in_a_process("f", TILEWRIGHT_CACHE="0")[0] == first


def test_what_the_key_depends_on(monkeypatch):
    flags = ("", "-opt-level=1", "-mcpu=x86-64", "-mtriple=aarch64-linux-gnu")
    targets = [tw.target(f"llvm {f}") for f in flags]
    keys = [cache_key(what, t) for t in targets for what in ("a", "b")]
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    keys.append(cache_key("a", targets[0]))
    assert len(set(keys)) == len(keys)
    assert cache_key("a", tw.target("llvm -num-cores=1")) == cache_key("a", tw.target("llvm -num-cores=9"))


def test_rules_for_other_cores_are_other_code(monkeypatch):
    a = te.placeholder((1000, 1000), name="A")
    b = te.compute((1000, 1000), lambda i, j: a[i, j] + 1.0, name="B")
    f = te.create_prim_func([a, b], name="f")
    one, two = (tw.compile(f, target=f"llvm -num-cores={n}").objects for n in (1, 2))
    assert one != two


def test_the_same_program_gives_the_same_bytes(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    assert tw.build(*staged()).objects == tw.build(*staged()).objects
    assert tw.compile(func()).objects == tw.compile(func()).objects


def test_a_replay_that_fails_leaves_nothing_in_the_cache(monkeypatch, tmp_path):
    s, args = staged()
    monkeypatch.setattr(StageSchedule, "replay", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tw.build(s, args)
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_entries_are_objects_with_signatures():
    entry = generate(func(), tw.target())
    compiled = Compiled.from_bytes(entry)
    assert compiled.to_bytes() == entry and compiled.signature.name == "scale"
    assert [p.name for p in compiled.signature.params] == ["A", "B"]


# ---- what is written for people who look

def test_dumps(monkeypatch, tmp_path):
    tw.build(*staged(), name="f")                            # in the cache from here on
    folder = tmp_path / "dump" / "deep"
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(folder))
    right(tw.build(*staged(), name="f"))
    names = sorted(p.name for p in folder.iterdir())
    assert [n.split("_", 1)[1] for n in names if n.endswith(".py")] == [
        *(f"f_{step:02d}_{p.name}.py" for step, p in enumerate(PASSES)), "f_00_outline_parallel_loops.py",
        "f_01_widen_small_floats.py"]
    assert {n for n in names if not n.endswith(".py")} == {"f.ll", "f.opt.ll", "f.s"}
    for name in names:
        text = (folder / name).read_text()
        assert ("def f(" if name.endswith(".py") else "f__kernel") in text
    last = (folder / next(n for n in reversed(names) if n.endswith(".py"))).read_text()
    assert "T.vectorized" not in last and "B_1[16:20] = A_1[16:20] * " in last
    tw.build(*staged(), name="f", target="c")
    assert "void f__kernel(" in (folder / "f.c").read_text()


def test_text_is_compiled_and_kept(tmp_path):
    text = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"
    data = compile_text(text, tw.target())
    assert data == compile_text(text, tw.target())
    library = load_objects([data])
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("twice"))(21) == 42
    assert len([p for p in (tmp_path / "cache").rglob("*") if p.is_file()]) == 1


def test_a_forgotten_list_is_told():
    a = te.placeholder((N,), name="A")
    b = te.compute((N,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    for call in (tw.lower, tw.build, tw.compile):
        for given in ((a, b), (a,), (a, b, a)):
            with pytest.raises(ArgumentError, match=r"A\), not a list(.|\n)*lower\(s, \[A, B, C\]\)"):
                call(s, *given)
