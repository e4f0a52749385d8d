"""Object files joined without a linker: loaded again, by a linker too where there is one, and what is refused."""
import subprocess

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.runtime import elf, export
from tilewright.runtime.elf_join import joined
from tilewright.support.errors import CodegenError
from tilewright.topi import exp, matmul, softmax


@pytest.fixture
def model():
    """A function of several kernels and a constant."""
    bb = BlockBuilder()
    x = bb.param("x", (4, 5), "float32")
    weight = bb.const(np.arange(15, dtype="float32").reshape(5, 3) / 10)
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(softmax, bb.emit_te(matmul, bb.emit_te(exp, x), weight)))
    return build_function(bb.get()["main"])


def test_a_model_is_written_where_no_linker_is(model, tmp_path, monkeypatch):
    def none(*_):
        raise CodegenError("there is no C compiler")
    monkeypatch.setattr(export, "linker", none)
    model.export(tmp_path / "model.o")
    x = np.random.default_rng(0).standard_normal((4, 5)).astype("float32")
    np.testing.assert_array_equal(np.asarray(tw.load(tmp_path / "model.o")(x)), np.asarray(model(x)))


def test_linkers_read_it(model, tmp_path):
    try:
        command = export.linker(model.target.triple)
    except CodegenError:
        pytest.skip("there is no linker")
    objects = [*model.objects.values()]
    (tmp_path / "joined.o").write_bytes(joined(objects))
    subprocess.run([*command, "-r", "-nostdlib", "-o", str(tmp_path / "again.o"),
                    str(tmp_path / "joined.o")], check=True)
    defined = set.union(*(elf.symbols(o)[0] for o in objects))
    for name in ("joined.o", "again.o"):
        assert {s for s in elf.symbols((tmp_path / name).read_bytes())[0] if s and not s.startswith(".")} \
            == {s for s in defined if s and not s.startswith(".")}


def test_what_is_refused(model):
    data = next(iter(model.objects.values()))
    with pytest.raises(CodegenError, match="is defined twice"):
        joined([data, data])
    for wrong in ([], [b"\xcf\xfa\xed\xfe"], [data, b"text"]):
        with pytest.raises(CodegenError, match="object files of ELF"):
            joined(wrong)
