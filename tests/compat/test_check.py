"""`tilewright tvm --check`: the names of TVM that a script uses and we lack, found without running it."""
import textwrap

import pytest
from click.testing import CliRunner

from tilewright.cli.main import main
from tilewright.compat.check.names import missing_names
from tilewright.support.errors import ArgumentError


def found(text):
    return [(m.line, m.name) for m in missing_names(textwrap.dedent(text))]


def test_a_script_of_known_names_lacks_nothing():
    assert found("""
        import numpy as np, tvm
        from tvm import te
        from tvm.te import compute as make
        from tvm.tir import ir_builder
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        B = make(A.shape, lambda i: te.exp(A[i]) + tvm.tir.const(1, A.dtype), name="B")
        s = te.create_schedule(B.op)
        xo, xi = s[B].split(B.op.axis[0], factor=4)
        s[B].vectorize(xi)
        with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3) as ctx:
            f = tvm.build(s, [A, B], name="f")
        x = tvm.nd.array(np.zeros(4, "float32"), tvm.cpu(0))
        f(x, x); f.time_evaluator("f", tvm.cpu()); x.asnumpy().anything
        ib = ir_builder.create()
        p = ib.allocate("float32", (4,)); p.dtype
        A.op.name; np.missing; ctx.config
    """) == []


def test_modules_functions_and_methods_that_are_missing():
    assert found("""
        import tvm
        import tvm.contrib.mkl as blas
        from tvm import te, relay as R
        A = te.placeholder((4,))
        B = te.compute(A.shape, lambda i: te.sinc(A[i]) + tvm.tir.wave(1))
        s = te.create_schedule(B.op)
        s[B].vectorise(s[B].op.axis[0])
        s.anything()
        R.build(3)
        blas.matmul(A, B)
        f = tvm.build(s, [A, B])
        f.evaluator
        sch = tvm.tir.Schedule(f)
        sch.magic(sch.split)
        tvm.nd.array([1]).tolistt()
    """) == [
        (3, "tvm.contrib.mkl"), (4, "tvm.relay"), (6, "tvm.te.sinc"), (6, "tvm.tir.wave"), (8, "Stage.vectorise"),
        (9, "Schedule.anything"), (10, "tvm.relay.build"), (11, "tvm.contrib.mkl.matmul"), (13, "Module.evaluator"),
        (15, "tir.Schedule.magic"), (16, "NDArray.tolistt")]


def test_a_chain_is_reported_once_and_in_full():
    assert found("import tvm\ntvm.topi.vision.nms(1)(2)\n") == [(2, "tvm.topi.vision.nms")]
    assert found("import topi\ntopi.vision.nms\n") == [(2, "tvm.topi.vision.nms")]


def test_a_name_that_means_something_else_is_left_alone():
    assert found("""
        from tvm import te
        class Other: pass
        def f(te):
            return te.nothing
        te2 = te
        te2.missing
        te = Other()
        te.anything
        lambda te2: te2.missing
        from mine import tvm
    """) == [(7, "tvm.te.missing")]


def test_hints_are_those_of_the_names():
    hints = {m.name: m.hint for m in missing_names(
        "import tvm\ntvm.relay.nn.dense\ntvm.te.Compute\ntvm.te.create_schedule(1)[2].vectorise\ntvm.foo")}
    assert "tilewright.graph" in hints["tvm.relay.nn.dense"] and hints["tvm.te.Compute"] == "did you mean compute?"
    assert hints["Stage.vectorise"] == "did you mean vectorize?" and hints["tvm.foo"] == ""


def test_text_that_is_not_python():
    with pytest.raises(ArgumentError, match="script is not Python"):
        missing_names("def")


def test_the_command(tmp_path):
    path = tmp_path / "old.py"
    path.write_text("import tvm\nprint(1)\ntvm.relay.build()\ntvm.foo\n")
    result = CliRunner().invoke(main, ["tvm", "--check", str(path)])
    assert result.exit_code == 1 and result.output.splitlines() == [
        f"{path}:3: tvm.relay.build: Relay left TVM in 0.20; build the model with tilewright.graph",
        f"{path}:4: tvm.foo", "2 name(s) of TVM are missing"]
    path.write_text("import tvm\nprint(tvm.te)\n")
    result = CliRunner().invoke(main, ["tvm", "--check", str(path)])
    fine = "every name of TVM in it is here, and every call fits as far as can be told"
    assert (result.exit_code, result.output) == (0, f"{path}: {fine}\n")
    path.write_text("def\n")
    assert CliRunner().invoke(main, ["tvm", "--check", str(path)]).exit_code == 1


@pytest.mark.parametrize("content, message", [
    (b"\x7fELF\xff\xfe", "old.py is not Python"), (b"import tvm\0", "null bytes"),
    (b"x = " + b"-" * 50_000 + b"1", "nested too deeply"),
    (b"# coding: foo\n", "old.py is not Python: unknown encoding"),
])
def test_files_that_are_no_script(content, message):
    with pytest.raises(ArgumentError, match=message):
        missing_names(content, "old.py")


def test_files_are_read_as_python_reads_them():
    for content in (b"# coding: latin-1\nimport tvm # \xe9\ntvm.nope", b"\xef\xbb\xbfimport tvm\ntvm.nope"):
        assert [m.name for m in missing_names(content)] == ["tvm.nope"]


def calls(text):
    return [(m.line, m.name, m.hint) for m in missing_names(textwrap.dedent(text)) if m.call]


def test_calls_that_do_not_fit():
    wrong = calls("""
        import tvm
        from tvm import te
        A = te.placeholder((4,), dtyp="int8")
        B = te.compute((4,), lambda i: A[i], "B", "", None, None, 3)
        s = te.create_schedule(B.op)
        s[B].split(B.op.axis[0], factors=[4])
        s[B].split()
        f = tvm.build(s, [A, B], target="llvm", opt_levl=3)
        sch = tvm.tir.Schedule(te.create_prim_func([A, B]), sed=3)
        sch.fuse(1, 2, order=True)
        f.time_evaluator("f", tvm.cpu(), repeats=3)
        tvm.tir.For(te.var("i"), 0, 4)
        tvm.nd.array([1], ctx=tvm.cpu(), contxt=3)
        tvm.tir.Schedule.split(sch, 1)
    """)
    assert [(line, name, hint.split(";")[0]) for line, name, hint in wrong] == [
        (4, "tvm.te.placeholder(...)", "got an unexpected keyword argument 'dtyp'"),
        (5, "tvm.te.compute(...)", "too many positional arguments"),
        (7, "Stage.split(...)", "got an unexpected keyword argument 'factors'"),
        (8, "Stage.split(...)", "missing a required argument: 'parent'"),
        (9, "tvm.build(...)", "got an unexpected keyword argument 'opt_levl'"),
        (10, "tvm.tir.Schedule(...)", "got an unexpected keyword argument 'sed'"),
        (11, "tir.Schedule.fuse(...)", "got an unexpected keyword argument 'order'"),
        (12, "Module.time_evaluator(...)", "got an unexpected keyword argument 'repeats'"),
        (13, "tvm.tir.For(...)", "missing a required argument: 'kind'"),
        (14, "tvm.nd.array(...)", "got an unexpected keyword argument 'contxt'"),
        (15, "tir.Schedule.split(...)", "missing a required argument: 'factors'")]
    instead = {line: hint.split("; ")[1] for line, _, hint in wrong}
    assert {instead[n] for n in (4, 7, 14)} == {f"did you mean {n}=?" for n in ("dtype", "factor", "ctx")}
    assert instead[13] == "the arguments are loop_var, min, extent, kind"


def test_calls_of_which_nothing_is_known_fit():
    assert found("""
        import tvm
        from tvm import te
        shape, more = (4,), {"name": "A"}
        A = te.placeholder(shape, **more)
        B = te.compute(*(shape, lambda i: A[i]), **more)
        C = te.compute(*(shape, lambda i: A[i]), name="C")
        unknown(1, 2, three=3)
        A.op.anything(3)
        te.exp(A[0]); te.max(A[0], 1); te.sum(A[0], axis=te.reduce_axis((0, 4)), where=None)
        @tvm.register_func("f")
        def f(x): return x
        tvm.tir.Var("x", dtype="float32"); tvm.tir.For(te.var("i"), 0, 4, 0, 0, tvm.tir.Evaluate(0))
        tvm.lower(te.create_schedule(B.op), [A, B], name="f", simple_mode=True)
        tvm.target.Target("llvm", host="llvm"); tvm.target.Target.current(allow_none=True)
        tvm.tir.transform.UnrollLoop(3, four=4)
    """) == []
    assert calls("""
        from tvm import te
        te.placeholder(*[1], shap=3)
    """) == [(3, "tvm.te.placeholder(...)", "got an unexpected keyword argument 'shap'; did you mean shape=?")]


def test_the_command_counts_calls(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import tvm\ntvm.te.placeholder((4,), dtyp='int8')\n")
    result = CliRunner().invoke(main, ["tvm", "--check", str(path)])
    assert result.exit_code == 1 and result.output.splitlines()[-1] == "1 call(s) do not fit"
    assert result.output.startswith(f"{path}:2: tvm.te.placeholder(...): got an unexpected keyword argument 'dtyp'")
