"""`help(T.grid)`: every name of T says how it is written and what it does."""
import inspect
import pydoc

import pytest

from tilewright.script import tir as T
from tilewright.script import usage
from tilewright.script.language import _FORMS, NAMES

TYPED = ["grid", "serial", "block", "axis", "Buffer", "match_buffer", "alloc_buffer", "reads", "init", "float32", "exp",
         "if_then_else", "Assert", "call_packed", "Ramp", "floordiv", "max", "Add", "bitwise_and", "hypot"]


@pytest.mark.parametrize("name", TYPED)
def test_help_shows_the_name_its_arguments_and_a_sentence(name):
    text = pydoc.render_doc(getattr(T, name), renderer=pydoc.plaintext)
    assert f"T.{name}" in text and "dataclass" not in text and "Methods defined here" not in text
    lines = [line.strip() for line in inspect.getdoc(getattr(T, name)).splitlines()]
    assert lines[0].startswith(f"T.{name}") and any(len(line) > 8 for line in lines[1:])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "axis"])
def test_every_name_is_documented(name):
    doc = getattr(T, name).__doc__
    assert doc.splitlines()[0].lstrip("@").startswith(("T.", "Decorator")) or name == "prim_func"


def test_the_axes_are_listed_under_their_group():
    doc = T.axis.__doc__
    assert all(f"T.axis.{name}(" in doc for name in ("spatial", "reduce", "scan", "opaque", "remap"))
    assert "T.axis.spatial(domain, value)" in T.axis.members["spatial"].__doc__


def test_no_text_is_of_a_name_that_is_not_there():
    known = {*NAMES, *(f"axis.{name}" for name in NAMES["axis"].members)}
    assert set(usage.FORMS) | set(usage.FUNCTIONS) <= known
    assert set(_FORMS) <= set(usage.FORMS)


def test_names_print_as_they_are_written():
    assert [repr(x) for x in (T.grid, T.exp, T.float32, T.Buffer)] == ["T.grid", "T.exp", "T.float32", "T.Buffer"]
