"""`explain`: the rules that took the blocks, and a program that makes the same schedule again."""
import numpy as np
import pytest

import tilewright as tw
from tests.fuzz import generate
from tilewright import te, tir
from tilewright.rules import apply_rules
from tilewright.support.errors import ArgumentError
from tilewright.tir.equal import structural_equal

CPUS = ["llvm -mcpu=znver4 -num-cores=2", "llvm -mcpu=haswell -num-cores=1"]


def product(dtype="float32", out="float32", n=64, epilogue=True):
    A, B = te.placeholder((n, n), dtype, name="A"), te.placeholder((n, n), dtype, name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k].astype(out) * B[k, j].astype(out), axis=k), name="C")
    D = te.compute((n, n), lambda i, j: te.max(C[i, j], te.const(0, out)), name="D")
    return [A, B, D] if epilogue else [A, B, C]


def softmax(n=64):
    A = te.placeholder((n, n), name="A")
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    M = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="M")
    E = te.compute((n, n), lambda i, j: te.exp(A[i, j] - M[i]), name="E")
    S = te.compute((n,), lambda i: te.sum(E[i, r], axis=r), name="S")
    return [A, te.compute((n, n), lambda i, j: E[i, j] / S[i], name="P")]


def symbolic():
    n = te.var("n")
    A = te.placeholder((n, 40), name="A")
    return [A, te.compute((n, 40), lambda i, j: te.tanh(A[i, j]) + 1.0, name="B")]


def scanned():
    m = te.var("m")
    X, state = te.placeholder((m, 40), name="X"), te.placeholder((m, 40))
    start = te.compute((1, 40), lambda _, i: X[0, i])
    step = te.compute((m, 40), lambda t, i: state[t - 1, i] * 0.5 + X[t, i], name="step")
    return [X, te.scan(start, step, state, inputs=[X])]


def full_reduction():
    A = te.placeholder((1 << 18,), name="A")
    k = te.reduce_axis((0, 1 << 18), name="k")
    return [A, te.compute((1,), lambda _: te.sum(A[k], axis=k), name="S")]


def opaque():
    A = te.placeholder((8,), name="A")

    def doubled(ins, outs):
        ib = tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 8, name="i") as i:
            b[i] = a[i] * 2.0
        return ib.get()
    return [A, te.extern((8,), [A], doubled, dtype="float32", name="E")]


PROGRAMS = {
    "product": product, "alone": lambda: product(epilogue=False), "bytes": lambda: product("uint8", "int32"),
    "signed": lambda: product("int8", "int32"), "bfloat16": lambda: product("bfloat16"), "softmax": softmax,
    "symbolic": symbolic, "scan": scanned, "full reduction": full_reduction}


def run(program, tmp_path):
    """What the text defines, as a script of its own."""
    path = tmp_path / "explained.py"
    path.write_text(program)
    names = {"__name__": "explained"}
    exec(compile(program, str(path), "exec"), names)
    return names["sch"]


def check(e, tmp_path):
    """The text makes the schedule of e: the same function, by the same calls."""
    sch = run(str(e), tmp_path)
    assert structural_equal(sch.func, e.schedule.func)
    assert str(sch.trace.simplified()) == str(e.schedule.trace.simplified())
    return sch


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_makes_the_same_schedule(name, cpu, tmp_path):
    func = te.create_prim_func(PROGRAMS[name]())
    e = tw.explain(func, cpu)
    check(e, tmp_path)
    assert structural_equal(e.schedule.func, apply_rules(func, tw.target(cpu)).func)


@pytest.mark.parametrize("seed", range(40))
def test_the_text_of_random_programs(seed, tmp_path):
    program = generate.program(seed)
    check(tw.explain(program.function()), tmp_path)


def test_the_text_runs_like_the_compiled_function(tmp_path):
    args = product()
    f, g = tw.compile(args), tw.build(check(tw.explain(args), tmp_path))
    a, b = (np.random.RandomState(k).rand(64, 64).astype("float32") for k in range(2))
    c, d = np.zeros((64, 64), "float32"), np.zeros((64, 64), "float32")
    f(a, b, c)
    g(a, b, d)
    assert np.array_equal(c, d) and np.allclose(c, a @ b, rtol=1e-5)


@pytest.mark.parametrize("name", ["T", "tw", "sch", "lambda", "a.b"])
def test_the_text_of_functions_of_other_names(name, tmp_path):
    e = tw.explain(te.create_prim_func(full_reduction(), name=name))
    assert check(e, tmp_path).func.name == name


def test_rules_and_their_blocks():
    def rules(name, cpu=CPUS[0]):
        return [(d.rule, d.blocks) for d in tw.explain(PROGRAMS[name](), cpu).decisions]
    assert rules("product") == [("contraction", ("C", "D"))]
    assert rules("alone") == [("contraction", ("C",))]
    assert rules("bytes") == [("dot_product", ("C", "D"))]
    assert rules("full reduction") == [("full_reduction", ("S",))]
    assert rules("softmax")[-1][0] == "rows"
    assert rules("symbolic") == [("elementwise", ("B",))]
    assert ("step", ("step",)) in rules("scan")
    found = tw.explain(opaque()).decisions
    assert [(d.rule, d.blocks, d.entries) for d in found] == [("", ("E",), ())]
    assert "# E: no rule. it has loops of its own" in str(tw.explain(opaque()))


def test_what_was_rewritten_and_what_was_refused_is_said():
    e = tw.explain(product("int8", "int32"), CPUS[0])
    assert [(d.rule, d.blocks) for d in e.rewrites] == [("signed_product", ("C",))]
    assert "# C: signed_product. Compute a product of signed bytes as one of unsigned bytes" in str(e)
    assert "signed_product" in repr(e)
    refused = [(d.blocks, r) for d in e.decisions for r in d.refused]
    assert refused and all(name and why for _, (name, why) in refused)
    assert "# not rows: compute_at(block=A_shifted" in str(e)
    assert not tw.explain(product(), CPUS[0]).rewrites


def test_its_views():
    e = tw.explain(product(), CPUS[0])
    assert repr(e).splitlines()[:3] == [
        "rules for main on llvm -mcpu=znver4 -num-cores=2", "  blocks  rule         refused  what it does",
        next(line for line in repr(e).splitlines() if line.startswith("  C, D    contraction  none     "))]
    assert "decompose_reduction" in e._repr_html_() and "<details open>" in e._repr_html_()


def test_inputs():
    args = product()
    assert str(tw.explain(args[-1])) == str(tw.explain(args))
    assert "def f(" in str(tw.explain(args, name="f"))
    mod = tw.IRModule({"f": te.create_prim_func(args, name="f"), "g": te.create_prim_func(args, name="g")})
    with pytest.raises(ArgumentError, match="explain one of them: f, g"):
        tw.explain(mod)
    assert tw.explain(mod["g"]).func.name == "g"
    sch = tw.Schedule(te.create_prim_func(args))
    sch.parallel(sch.get_loops("C")[0])
    with pytest.raises(ArgumentError, match="have been scheduled already"):
        tw.explain(sch)
