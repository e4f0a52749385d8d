"""The example of each primitive prints what its docstring says, replays, and means what it meant.

`python -m tests.schedule.test_examples` writes the docstrings.
"""
from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.moves import MOVES
from tests.schedule import primitives  # noqa: F401
from tests.schedule.case import CASES
from tilewright.lowering.pipeline import lower
from tilewright.schedule import PRIMITIVES, Schedule
from tilewright.schedule.trace import KINDS
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify

from .core_support import check_replay


def original(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Schedule, PrimFunc]:
    """The example, and the function that it began with."""
    given: list[PrimFunc] = []
    init = Schedule.__init__

    def keep(self, func, **more):
        given.append(func)
        init(self, func, **more)
    with monkeypatch.context() as patch:
        patch.setattr(Schedule, "__init__", keep)
        sch = CASES[name].example_function()
    return sch, given[0]


def text_of(sch: Schedule) -> str:
    """The last call, as the trace has it, and the program, unless the call leaves that as it is."""
    call = sch.trace.as_python()[-1]
    return call if sch.trace.entries[-1].kind.is_pure else f"{call}\n\n{sch.func}"


def write_golden(name: str) -> None:
    """Put what the example prints into its docstring."""
    fn = CASES[name].example_function
    path = Path(inspect.getfile(fn))
    node = next(n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)
                and n.name == fn.__name__)
    lines = path.read_text().splitlines(keepends=True)
    first, end = node.body[0].lineno - 1, node.body[0].end_lineno if fn.__doc__ is not None else None
    text = text_of(fn())
    noqa = "  # noqa: E501" if max(map(len, text.splitlines())) > 116 else ""
    golden = textwrap.indent(f'"""\n{text}\n"""{noqa}\n', "    ")
    lines[first:first if end is None else end] = [golden]
    path.write_text("".join(lines))


def triple(x: np.ndarray, y: np.ndarray) -> None:
    y[...] = x * 3


def test_every_primitive_has_an_example_wrong_uses_and_a_move():
    """A primitive that changes no function needs no move, a query that cannot be wrong no wrong use."""
    assert set(CASES) == set(PRIMITIVES)
    for name, kind in KINDS.items():
        rewrites = not kind.is_pure and name != "enter_postproc"
        assert name in MOVES or not rewrites, f"no move draws {name}"
        assert CASES[name].rows or not rewrites, f"{name} has no wrong use"


@pytest.mark.parametrize("name", CASES)
def test_an_example_prints(name):
    sch = CASES[name].example_function()
    assert sch.trace.entries[-1].primitive == name
    assert text_of(sch) == CASES[name].golden, "run python -m tests.schedule.test_examples and read what changed"


@pytest.mark.parametrize("name", CASES)
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
    for case in CASES:
        write_golden(case)
    print(f"{len(CASES)} primitives")
