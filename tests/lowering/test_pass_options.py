"""The lists of passes, the options that choose among them, passes of programs, and instruments."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scheduled_programs import tiled_matmul

import tilewright as tw
from tilewright.driver.build import cache_key
from tilewright.lowering import (
    PASSES,
    Instrument,
    PassOptions,
    PassRecord,
    list_of,
    lower,
    own_pass,
    pass_options,
    register_pass,
)
from tilewright.lowering.options import OFF, OPTIONAL, REGISTERED, current_options, scopes
from tilewright.lowering.passes import CPU, LISTS, passes_for, without_vectors
from tilewright.script import from_source
from tilewright.support.errors import LowerError
from tilewright.support.target.kinds import KINDS
from tilewright.tir import SERIAL, For, PrimFunc, interp, walk

ROWS = [p for rows in LISTS.values() for p in rows]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert not scopes()
    REGISTERED.clear()


def names(simple_mode: bool = False) -> list[str]:
    return [p.name for p in passes_for(current_options(), tw.target("llvm"), simple_mode)]


def check_product(func: PrimFunc) -> None:
    """func, in the interpreter, and what is built under the options in force are the product of 13 x 9 by 9 x 20."""
    a, b = (np.random.default_rng(0).random(shape, "float32") for shape in ((13, 9), (9, 20)))
    c = np.zeros((13, 20), "float32")
    interp.run(func, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    c[:] = 0
    tw.build(tiled_matmul(13, 20, 9))(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_a_list_without_vectors_has_loops_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LISTS, "stackvm", without_vectors(CPU))
    text = """@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in T.vectorized(6):
        A[i] = A[i] * T.float32(2)
"""
    assert "for i in range(6):\n        A_1[i] = A_1[i] * T.float32(2)" in str(lower(from_source(text), "stackvm"))
    own = text.replace("A[i] = A[i] * T.float32(2)", "A[0:4] = A[0:4] * T.Broadcast(T.float32(2), 4)")
    with pytest.raises(LowerError, match=r"main: A.0:4. .* is a vector, and the target has none"):
        lower(from_source(own), "stackvm")


def test_every_kind_of_target_has_a_list() -> None:
    assert set(LISTS) <= set(KINDS)
    assert all(list_of(kind) for kind in KINDS)
    for rows in LISTS.values():
        assert len({p.name for p in rows}) == len(rows)
        stages = ["block loop flat module".split().index(p.stage) for p in rows]
        assert stages == sorted(stages) and all(p.run.__doc__ and p.when.__doc__ for p in rows)


@pytest.mark.parametrize("name", [p.name for p in ROWS if p.use == OPTIONAL])
def test_without_an_optional_pass_the_result_is_the_same(name: str) -> None:
    with pass_options(disable=[name]):
        assert name not in names()
        check_product(lower(tiled_matmul(13, 20, 9)))


@pytest.mark.parametrize("name", [p.name for p in ROWS if p.use == OFF])
def test_with_a_pass_that_is_off_by_default_the_result_is_the_same(name: str) -> None:
    assert name not in names()
    with pass_options(enable=[name]):
        assert name in names() and name in names(simple_mode=True)
        check_product(lower(tiled_matmul(13, 20, 9)))


def test_disabled_loops_are_serial() -> None:
    with pass_options(disable=["vectorize"]):
        with pass_options(disable=["unroll"]):
            assert names()[-5:-2] == ["hoist_allocations", "serialize_loops", "split_lanes"]
            func = lower(tiled_matmul(16, 64, 8))
        assert names()[-3:-1] == ["unroll", "transpose_tiles"]
        with pass_options(enable=["vectorize"]):
            assert names() == [p.name for p in PASSES]
    assert {n.kind for n in walk(func.body) if isinstance(n, For)} <= {SERIAL, "parallel"}


def test_options_come_on_top_of_those_around() -> None:
    record = PassRecord()
    with pass_options(checked=True, instruments=[record]), pass_options(disable=["unroll"]) as scope:
        assert scope.options == current_options() == PassOptions(True, ("unroll",), instruments=(record,))
        assert not current_options(checked=False).checked
        assert "check_bounds" in names() and "assert_bounds" not in names()


def marked(label: str):
    def mark(func: PrimFunc) -> PrimFunc:
        """func with the label among its attributes"""
        return func.with_attr("marks", (*func.attrs.get("marks", ()), label))
    return mark


def test_passes_of_a_program_run_at_their_places() -> None:
    own = [own_pass("after simplify", marked("b"), "b"), own_pass("before lower_blocks", marked("a"), "a"),
           own_pass("after simplify", marked("c"), "c"), own_pass("after unroll", marked("d"), "d")]
    with pass_options(passes=own):
        seen = names()
        assert seen.index("a") + 1 == seen.index("lower_blocks") and seen[seen.index("unroll") + 1] == "d"
        assert seen[seen.index("simplify") + 1:][:2] == ["b", "c"]
        simple = names(simple_mode=True)
        assert simple[simple.index("simplify") + 1:][:2] == ["b", "c"] and simple[-1] == "d"
        func = lower(tiled_matmul(13, 20, 9))
        with pass_options(disable=["c"]):
            assert "c" not in names()
    assert func.attrs["marks"] == ("a", "b", "c", "d")
    check_product(func)


def test_conditions_see_options_and_target() -> None:
    def narrow(options: PassOptions, target: tw.Target) -> bool:
        return not options.checked and target.vector_bytes < 64

    own = own_pass("after simplify", marked("x"), "x", when=narrow)
    with pass_options(passes=[own]):
        for cpu, checked, runs in (("haswell", False, True), ("haswell", True, False), ("znver4", False, False)):
            target = f"llvm -mcpu={cpu} -mtriple=x86_64-unknown-linux-gnu"
            func = lower(tiled_matmul(16, 16, 16), target, options=current_options(checked))
            assert ("marks" in func.attrs) == runs


def test_a_registered_pass_may_be_off_until_it_is_enabled() -> None:
    register_pass(own_pass("after simplify", marked("x"), "mine", off=True))
    kept = cache_key("program", tw.target("llvm"))
    assert kept is not None and "mine" not in names()
    with pass_options(enable=["mine"]):
        assert "mine" in names() and cache_key("program", tw.target("llvm")) is None
    REGISTERED.clear()
    register_pass(own_pass("before unroll", marked("x"), "mine"))
    assert names()[names().index("mine") + 1] == "unroll" and cache_key("program", tw.target("llvm")) is None
    with pass_options(disable=["mine"]):
        assert cache_key("program", tw.target("llvm")) not in (None, kept)


def test_options_are_part_of_the_key() -> None:
    keys = []
    for asked in ({}, {"disable": ["unroll"]}, {"enable": ["remove_no_ops"]}, {"checked": True}):
        with pass_options(**asked):
            keys.append(cache_key("program", tw.target("llvm")))
    assert None not in keys and len(set(keys)) == len(keys)
    for asked in ({"instruments": [PassRecord()]}, {"passes": [own_pass("after simplify", marked("x"))]}):
        with pass_options(**asked):
            assert cache_key("program", tw.target("llvm")) is None


def test_a_record_has_the_function_before_and_after_each_pass() -> None:
    record = PassRecord()
    func = tiled_matmul(13, 20, 9)
    with pass_options(instruments=[record]):
        flat = lower(func)
    assert [s.name for s in record.steps] == [p.name for p in PASSES]
    assert record.steps[0].before is func and record.steps[-1].after is flat
    assert all(a.after is b.before for a, b in zip(record.steps, record.steps[1:]))
    assert all(s.seconds >= 0 for s in record.steps)
    changed = {s.name for s in record.steps if s.changed}
    assert {"lower_blocks", "flatten_buffers", "vectorize"} <= changed and "inject_prefetches" not in changed
    lines = str(record).splitlines()
    assert len(lines) == len(PASSES) and any(line.endswith("* lower_blocks") for line in lines)


def test_an_instrument_may_leave_a_pass_out() -> None:
    class Without(Instrument):
        def before(self, p, func):
            return p.name != "hoist_allocations"

    record = PassRecord()
    with pass_options(instruments=[Without(), record]):
        lower(tiled_matmul(13, 20, 9))
    assert [s.name for s in record.steps] == [p.name for p in PASSES if p.name != "hoist_allocations"]
