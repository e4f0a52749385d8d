"""`tilewright run` on what `export` wrote."""
import numpy as np
import pytest
from click.testing import CliRunner

from tilewright import topi
from tilewright.cli.main import main
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import size
from tilewright.runtime import export
from tilewright.runtime.llvm import host_triple

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
])
def test_refusals(exported, arguments, message):
    done = CliRunner().invoke(main, [str(exported) if a == "MODEL" else a for a in arguments])
    assert done.exit_code == 1 and message in done.output


def test_an_unknown_kind_of_file(tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("nothing")
    done = CliRunner().invoke(main, ["compile", str(path), "-o", str(tmp_path / "out.so")])
    assert done.exit_code == 1 and "unknown kind of file" in done.output
