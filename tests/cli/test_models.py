"""`tilewright run` on what `export` wrote."""
import numpy as np
import pytest
from click.testing import CliRunner

import tilewright as tw
from tilewright import topi
from tilewright.cli.main import main
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import size
from tilewright.runtime import export
from tilewright.runtime.llvm import host_triple
from tilewright.support.errors import ArgumentError

needs_linker = pytest.mark.skipif(not export.has_linker(host_triple()), reason="no linker on this machine")


@pytest.fixture
def exported(tmp_path):
    bb = BlockBuilder()
    x = bb.param("x", (size("n"), 3))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.exp, x))
    path = tmp_path / "model.so"
    build_function(bb.get()["main"]).export(path)
    return path


@needs_linker
def test_run_of_an_exported_model(exported, tmp_path):
    given, wanted = tmp_path / "x.npy", tmp_path / "out.npz"
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.save(given, x)
    done = CliRunner().invoke(main, ["run", str(exported), "--input", f"x={given}", "-o", str(wanted)])
    assert done.exit_code == 0 and "float32[2, 3]" in done.output
    np.testing.assert_allclose(np.load(wanted)["result0"], np.exp(x), rtol=1e-6)
    done = CliRunner().invoke(main, ["run", str(exported), "--size", "n=4"])
    assert "float32[4, 3]" in done.output


@needs_linker
@pytest.mark.parametrize("arguments, message", [
    (["run", "MODEL", "--input", "y=x.npy"], "no input 'y'"),
    (["run", "MODEL", "--input", "x"], "not NAME=VALUE"),
    (["compile", "MODEL", "-o", "out.so"], "compiled already"),
    (["profile", "MODEL"], "profile what it was compiled from"),
    (["run", "MODEL", "--size", "m=3"], "the model has no size 'm'\n\nhint: it has n"),
    (["run", "MODEL", "--size", "n=99999999999999"], "error: Unable to allocate"),
    (["run", "MODEL", "--size", "n=-1"], "'-1' is not a number of elements"),
    (["run", "MODEL", "--input", "x=nothing.npy"], "x=nothing.npy cannot be read: No such file"),
    (["run", "MODEL", "--size", "n=1", "--size", "n=2"], "n is given twice: 1 and 2"),
    (["run", "MODEL", "-o", "/no/such/out.npz"], "there is no folder /no/such"),
])
def test_refusals(exported, arguments, message):
    done = CliRunner().invoke(main, [str(exported) if a == "MODEL" else a for a in arguments])
    assert done.exit_code == 1 and message in done.output


def test_an_unknown_kind_of_file(tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("nothing")
    done = CliRunner().invoke(main, ["compile", str(path), "-o", str(tmp_path / "out.so")])
    assert done.exit_code == 1 and "unknown kind of file" in done.output


def test_a_damaged_program_of_pytorch(tmp_path):
    path = tmp_path / "model.pt2"
    path.write_bytes(b"nothing")
    done = CliRunner().invoke(main, ["run", str(path)])
    assert done.exit_code == 1 and ("which is not installed" in done.output or "damaged" in done.output)


def test_results_have_the_names_of_the_file(tmp_path):
    helper = pytest.importorskip("onnx.helper")
    x, *outs = (helper.make_tensor_value_info(name, t, [2]) for name, t in (
        ("x", 1), ("grown", 1), ("shrunk", 1), ("file", 16)))
    nodes = [helper.make_node("Exp", ["x"], ["grown"]), helper.make_node("Neg", ["x"], ["shrunk"]),
             helper.make_node("Cast", ["x"], ["file"], to=16)]
    model, wanted = tmp_path / "model.onnx", tmp_path / "out.npz"
    made = helper.make_model(helper.make_graph(nodes, "g", [x], outs),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.write_bytes(made.SerializeToString())
    done = CliRunner().invoke(main, ["run", str(model), "-o", str(wanted)])
    assert done.exit_code == 0 and "grown: float32[2]" in done.output
    found = np.load(wanted)
    np.testing.assert_allclose(found["grown"], np.exp(-found["shrunk"]), rtol=1e-6)
    np.testing.assert_allclose(found["file"], -found["shrunk"], rtol=1e-2)


def test_compile_of_a_path_that_is_no_model():
    with pytest.raises(ArgumentError, match="compile: 'env.txt': unknown kind of file"):
        tw.compile("env.txt")
