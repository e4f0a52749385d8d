"""Modules that hold code for several kinds of devices: here of this process, and of one that runs scripts."""
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.back_end import BackEnd
from tilewright.codegen.registry import BACK_ENDS, register
from tilewright.lowering.passes import CPU, LISTS, without_vectors
from tilewright.runtime.loader import LOADERS, Image, register_loader
from tilewright.runtime.module import Module, load_module
from tilewright.script import from_source
from tilewright.support.errors import TargetError
from tilewright.support.target.kinds import KINDS, kind
from tilewright.tir import IRModule, interp


class Scripts:
    """A device that runs the functions that its images spell out."""
    loads = 0

    def __init__(self, images):
        Scripts.loads += 1
        self.modules = {i.functions[0]: from_source(i.data.decode()) for i in images}

    def function(self, name):
        return lambda *args: interp.run(self.modules[name], *args)


@pytest.fixture
def scripts():
    """The kind of targets "paper", whose images are scripts."""
    register(BackEnd("paper", kind("cpu"), without_vectors(CPU), version=lambda: "1", loader="script",
                     image=lambda funcs, target: str(IRModule({f.name: f for f in funcs})).encode(),
                     sources={"txt": lambda funcs, target: "\n".join(map(str, funcs))}))
    register_loader("script")(Scripts)
    yield
    for table, key in ((BACK_ENDS, "paper"), (LISTS, "paper"), (KINDS, "paper"), (LOADERS, "script")):
        table.pop(key, None)


def scaled(factor, name, target):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * factor, name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    return tw.build(s, [A, B], target, name=name)


def both():
    """double for this process, triple for the device."""
    one, other = scaled(2.0, "double", "llvm"), scaled(3.0, "triple", "paper")
    return Module([*one.images, *other.images], {**one.signatures, **other.signatures})


def check(module):
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    for name, factor in (("double", 2), ("triple", 3), ("double", 2)):
        module[name](a, b)
        np.testing.assert_array_equal(b, factor * a)


def test_each_function_runs_where_its_image_belongs(scripts):
    module, before = both(), Scripts.loads
    assert [(i.kind, i.functions) for i in module.images] == [("object", ("double",)), ("script", ("triple",))]
    module["double"]
    assert Scripts.loads == before                     # images are loaded when they are asked for
    check(module)
    assert Scripts.loads == before + 1
    assert "call_parallel" in scaled(3.0, "triple", "paper").get_source()


def test_all_images_are_pickled_written_and_shown(scripts, tmp_path):
    module = both()
    check(pickle.loads(pickle.dumps(module)))
    module.save(tmp_path / "both.o")
    check(load_module(tmp_path / "both.o"))
    assert load_module(tmp_path / "both.o").images[0] == module.images[1]
    module.export_library(tmp_path / "both.so")
    check(load_module(tmp_path / "both.so"))
    first = str(module).splitlines()[0]
    assert first.endswith("B for script")


def test_an_image_that_nothing_loads(scripts):
    module = both()
    LOADERS.pop("script")
    with pytest.raises(TargetError, match="code for 'script' cannot run here"):
        module["triple"]
    module["double"]
    assert isinstance(module.images[1], Image)
