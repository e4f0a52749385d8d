"""The reference page of the stage primitives is complete and up to date, and its pictures are of right programs."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.schedule import stage_reference as reference
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.stages.stage import Stage
from tilewright.tir import interp

LISTED = [name for names in reference.FAMILIES.values() for name in names]
WANTED = {"scale": lambda a: a * 2, "chain": lambda a: a * 2 + 1, "sums": lambda a: a.sum(1), "tiles": lambda a: a * 2,
          "blur": lambda a: 2 * (a[:-2] + a[1:-1] + a[2:])}
# What the schedule itself calls, or shows.
INTERNAL = {"axis", "has_axis", "index_of", "is_leaf", "reduce_axis", "replace_op", "restart", "root_axes", "row",
            "said_of", "storage_axes", "rewrites", "view", "call_intrinsic", "give_intrinsic", "attachment", "groups"}


def test_every_method_is_listed_once():
    public = {name for kind in (Stage, StageSchedule) for name in dir(kind) if not name.startswith("_")}
    tabled = {name for _, _, _, names in reference.OTHERS for name in names} - {"op", "stages", "outputs"}
    assert sorted(LISTED) == sorted(set(LISTED)) and set(LISTED) == set(reference.EXAMPLES)
    assert {*LISTED, *tabled, *INTERNAL} == public and not set(LISTED) & (tabled | INTERNAL)


@pytest.mark.parametrize("name", LISTED)
def test_a_docstring_has_its_form(name):
    """A sentence, what else there is to say, and the condition; every parameter is named."""
    how, kind = reference.owner(name)
    text = reference.unindented(reference.documentation(getattr(kind, name)))
    paragraphs = text.split("\n\n")
    assert paragraphs[0].rstrip().endswith((".", ").")) and len(paragraphs[0].splitlines()) <= 2
    assert paragraphs[-1].startswith("Legal when ") and paragraphs[-1].rstrip().endswith(".")
    call = reference.signature(name, getattr(kind, name), how)
    given = [p.strip().lstrip("*").partition("=")[0] for p in call[call.index("(") + 1:-1].split(",")]
    plain = {"", "args", "var", "ivar", "threads", "pragma_value", "tensor_intrin", "x_factor", "y_factor"}
    assert [p for p in given if p not in plain and p not in text] == []


@pytest.mark.parametrize("name", LISTED)
def test_a_picture_is_of_what_the_program_computes(name):
    example = reference.EXAMPLES[name]
    names = reference.start(example.program)
    for calls in (example.before, example.calls):
        exec(calls, names)
        func = tw.lower(names["s"], [names["A"], names["C"]])["default_function"]
        a = np.random.RandomState(0).rand(*(int(n) for n in names["A"].shape)).astype("float32")
        wanted = WANTED[example.program](a.astype("float64"))
        c = np.full(wanted.shape, np.nan, "float32")
        interp.run(func, a, c)
        np.testing.assert_allclose(c, wanted, rtol=1e-5)


def test_pictures_show_a_change():
    """But for the calls that record nothing."""
    same = {name for name, example in reference.EXAMPLES.items() if len(set(reference.steps(example))) == 1}
    assert same == {"set_store_predicate", "env_threads"}


def test_refusals_are_those_of_their_method():
    found = reference.refusals()
    assert set(found) <= set(LISTED) and sum(map(len, found.values())) >= 60
    assert all(f".{name}(" in message for name, rows in found.items() for _, message in rows)


def test_the_page_is_up_to_date():
    assert reference.PAGE.read_text() == reference.page(), "run python -m tests.schedule.stage_reference"
