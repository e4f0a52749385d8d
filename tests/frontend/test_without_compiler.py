"""Kernels, ONNX files and objects where no compiler is found, each in a process with an empty PATH."""
import pytest

from tests.frontend.without_compiler import run


@pytest.mark.parametrize("part", ["objects", "onnx"])
def test_part(part):
    if part == "onnx":
        pytest.importorskip("onnx")
    done = run(part)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
