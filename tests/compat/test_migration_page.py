"""The table of spellings in docs/migration.md: both columns run."""
import re
from pathlib import Path

import pytest

from tilewright.compat import tvm

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text()
TABLE = PAGE.split("## Spellings of the years")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| (.*?) \| (.*?) \| .*? \|$", TABLE, re.MULTILINE)
CELLS = [cell for row in ROWS[2:] for cell in row]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the cells speak of."""
    te = tvm.te
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1, name="b")
    path = str(tmp_path_factory.mktemp("library") / "f.so")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm").export_library(path)
    i = te.var("i")
    return {"tvm": tvm, "te": te, "tir": tvm.tir, "topi": tvm.topi, "T": tvm.script.tir, "ForKind": tvm.tir.ForKind,
            "ib": tvm.tir.ir_builder.create(), "a": tvm.nd.array([1.0]), "x": tvm.const(1.0, "float32"), "i": i,
            "e": i + 0, "n": 8, "body": tvm.tir.Evaluate(i), "op": b.op, "args": [a, b], "path": path,
            "ctx": tvm.cpu(0), "dev": tvm.cpu(0)}


@pytest.mark.parametrize("cell", CELLS)
def test_a_spelling_runs(cell, names):
    spellings = re.findall(r"`([^`]*)`", cell)
    assert spellings
    home = spellings[0].rpartition(".")[0]
    for text in spellings:                       # "`tvm.ir_pass.A`, `B`": B of the same module
        short = text.isidentifier() and text not in names
        assert eval((f"{home}.{text}" if short else text).replace("...", ""), names) is not None


def test_the_table_is_read():
    assert len(ROWS) > 15
