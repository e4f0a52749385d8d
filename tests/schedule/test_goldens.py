"""Each primitive has an example, whose printed program and trace stand in goldens.txt, and which means what it meant.

`python -m tests.schedule.test_goldens` writes goldens.txt.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.lowering.pipeline import lower
from tilewright.schedule import PRIMITIVES, Schedule
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify

from .core_support import check_replay
from .examples import EXAMPLES

FILE = Path(__file__).with_name("goldens.txt")
HEADING = "==== "


def goldens() -> dict[str, str]:
    """The text of each section of the file."""
    parts = FILE.read_text().split(HEADING)[1:]
    return {name: text.strip("\n") for name, _, text in (part.partition("\n") for part in parts)}


def original(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Schedule, PrimFunc]:
    """The example, and the function that it began with."""
    given: list[PrimFunc] = []
    init = Schedule.__init__

    def keep(self, func, **more):
        given.append(func)
        init(self, func, **more)
    with monkeypatch.context() as patch:
        patch.setattr(Schedule, "__init__", keep)
        sch = EXAMPLES[name]()
    return sch, given[0]


def text_of(sch: Schedule) -> str:
    """The last call, as the trace has it, and the program, unless the call leaves that as it is."""
    call = sch.trace.as_python()[-1]
    return call if sch.trace.entries[-1].kind.is_pure else f"{call}\n\n{sch.func}"


def triple(x: np.ndarray, y: np.ndarray) -> None:
    y[...] = x * 3


def test_every_primitive_has_an_example():
    assert set(EXAMPLES) == set(PRIMITIVES) == set(goldens())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints(name):
    sch = EXAMPLES[name]()
    assert sch.trace.entries[-1].primitive == name
    assert text_of(sch) == goldens()[name], "run python -m tests.schedule.test_goldens and read what changed"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_means_what_it_meant(name, monkeypatch):
    sch, start = original(name, monkeypatch)
    verify(sch.func, "block")
    check_replay(sch, start)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, [int(d) for d in b.shape]).astype("int32") for b in sch.func.buffers]
    wanted, got = [x.copy() for x in arrays], [x.copy() for x in arrays]
    interp.run(start, *wanted)
    interp.run(lower(sch.func), *got, externs={"triple": triple})
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
    assert any((x != y).any() for x, y in zip(wanted, arrays, strict=True))


if __name__ == "__main__":
    FILE.write_text("\n\n".join(f"{HEADING}{name}\n{text_of(EXAMPLES[name]())}" for name in PRIMITIVES) + "\n")
    print(f"{FILE}: {len(PRIMITIVES)} primitives")
