"""What works where no compiler and no linker is: `python -m tests.frontend.without_compiler [PART ...]`.

Each part runs in a process of its own, whose PATH is an empty folder, which does not find the package ziglang and
whose cache of compiled objects is empty. Parts whose packages are not installed are named and left out.
"""
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np

COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "clang++", "tcc", "icx", "nvcc", "zig", "ld", "ld.lld", "lld", "as")


def objects(folder: Path) -> str:
    """A kernel and a model of the graph, run, written as objects, loaded and run again; a library is refused."""
    import tilewright as tw
    from tilewright import te
    from tilewright.support.errors import TilewrightError
    x = te.placeholder((te.var("n"),), name="x")
    kernel = tw.compile([x, te.compute(x.shape, lambda i: x[i] * 2 + 1, name="y")])
    data, result = np.arange(5, dtype="float32"), np.empty(5, "float32")
    kernel.save(folder / "kernel.o")
    for f in (kernel, tw.load_module(folder / "kernel.o")):
        f(data, result)
        np.testing.assert_array_equal(result, data * 2 + 1)
    try:
        kernel.export_library(folder / "kernel.so")
    except TilewrightError as error:
        return "written and loaded; export_library: " + str(error).partition("\n")[0]
    raise AssertionError("a library was linked, so there is a linker")


def onnx(folder: Path) -> str:
    """A transformer in an ONNX file with named sizes, beside the evaluator of the onnx package; its object."""
    import onnx as package

    import tilewright as tw
    from tests.frontend.onnx_models import reference, transformer
    path = folder / "transformer.onnx"
    package.save(transformer(), path)
    run = tw.compile(path)
    run.export(folder / "transformer.o")
    loaded = tw.load(folder / "transformer.o")
    worst = 0.0
    for shape in ((1, 3), (2, 7)):
        ids = np.arange(np.prod(shape)).reshape(shape) % 50
        wanted = reference(transformer(), ids)[0]
        worst = max(worst, *(float(np.abs(np.asarray(f(ids)) - wanted).max()) for f in (run, loaded)))
    assert worst < 1e-4, worst
    return f"{worst:.1e} apart, as an object too"


def torch(folder: Path) -> str:
    """torch.compile of a network with sizes as variables, with gradients too, and an exported program as an object."""
    import torch as package
    from torch import nn

    import tilewright as tw
    from tilewright.frontend import torch as frontend
    frontend.register()
    package.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)).eval()
    run, worst = package.compile(model, backend="tilewright", dynamic=True), 0.0
    for n in (3, 5):
        x = package.randn(n, 8)
        with package.no_grad():
            worst = max(worst, float((run(x) - model(x)).abs().max()))
        found, wanted = (package.autograd.grad((f(x) ** 2).sum(), list(model.parameters())) for f in (run, model))
        worst = max(worst, *(float((a - b).abs().max()) for a, b in zip(found, wanted)))
    program = package.export.export(model, (x,), dynamic_shapes=({0: package.export.Dim("batch")},))
    tw.compile(program).export(folder / "model.o")
    result = np.asarray(tw.load(folder / "model.o")(x))
    worst = max(worst, float(np.abs(result - model(x).detach().numpy()).max()))
    assert worst < 1e-4, worst
    return f"{worst:.1e} apart: torch.compile, gradients, the object of an exported program"


PARTS = {"objects": objects, "onnx": onnx, "torch": torch}


class WithoutZiglang:
    """Finds all packages but one."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] == "ziglang" else PathFinder.find_spec(name, path, target)


def inside(name: str) -> None:
    """A part, in a process where nothing that compiles or links is found."""
    sys.meta_path[:] = [WithoutZiglang if f is PathFinder else f for f in sys.meta_path]
    found = [c for c in COMPILERS if shutil.which(c)] + [c for c in ("ziglang",) if importlib.util.find_spec(c)]
    assert not found and not {"CC", "CXX", "LD"} & set(os.environ), f"there is a compiler: {found}"
    with tempfile.TemporaryDirectory() as folder:
        print(PARTS[name](Path(folder)))


def run(name: str) -> subprocess.CompletedProcess:
    """A part in an environment without a compiler."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as cache:
        kept = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX", "LD", "CFLAGS", "LDFLAGS")}
        environment = {**kept, "PATH": empty, "TILEWRIGHT_CACHE_DIR": cache}
        return subprocess.run([sys.executable, "-m", "tests.frontend.without_compiler", "--inside", name],
                              env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[2])


def main(names) -> int:
    if names[:1] == ["--inside"]:
        inside(names[1])
        return 0
    failed = 0
    for name in names or PARTS:
        if importlib.util.find_spec(name) is None and name != "objects":
            print(f"left out  {name}: the package is not installed")
            continue
        done = run(name)
        failed += done.returncode != 0
        text = done.stdout if done.returncode == 0 else done.stderr
        print(f"{'worked  ' if done.returncode == 0 else 'FAILED  '}  {name}: {text.strip()}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
