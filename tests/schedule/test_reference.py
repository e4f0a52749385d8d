"""The reference page of the primitives is complete and up to date."""
from __future__ import annotations

import pytest

from tests.schedule import reference
from tilewright.schedule import PRIMITIVES


def is_picture(paragraph: str) -> bool:
    return paragraph.startswith("    ")


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_docstring_has_its_form(name):
    """A sentence, a picture with an arrow unless it is a query, what else there is to say, and the condition."""
    paragraphs = reference.documentation(PRIMITIVES[name]).split("\n\n")
    assert paragraphs[0].rstrip().endswith(".") and len(paragraphs[0].splitlines()) <= 2
    if name.startswith("get_"):
        return
    assert is_picture(paragraphs[1]), f"{name}: the picture comes after the first sentence"
    assert any("->" in p for p in paragraphs if is_picture(p)), f"{name}: no arrow in the picture"
    assert paragraphs[-1].startswith("Legal when"), f"{name}: the condition comes last"


def test_every_primitive_is_in_one_family():
    found = reference.families()
    assert sorted(name for names in found.values() for name in names) == sorted(PRIMITIVES)
    assert set(reference.ORDER) <= set(found) and all(found.values())


def test_every_parameter_is_explained():
    """Each parameter of a primitive is named in its docstring, unless its name says all."""
    plain = {"sch", "block", "loop", "name", "func_name", "block_or_loop", "thread_axis", "ann_key", "ann_val",
             "scope_block", "loops", "ordered_loops", "storage_scope"}
    for name, fn in PRIMITIVES.items():
        text = reference.documentation(fn)
        call = reference.signature(name, fn)
        given = [p.strip().lstrip("*").partition("=")[0] for p in call[call.index("(") + 1:-1].split(",")]
        missing = [p for p in given if p and p not in plain and p not in text]
        assert not missing, f"{name}: {missing}"


def test_the_page_is_up_to_date():
    assert reference.PAGE.read_text() == reference.page(), "run python -m tests.schedule.reference"
