"""A pytest plugin: every well-formed function that a test builds must survive print and parse.

`python -m pytest -p tests.script.every_function tests/schedule tests/lowering`: a test fails when one of the functions
that it made does not; the totals stand at the end.
"""
from __future__ import annotations

from collections import Counter

import pytest

from tests.script.round_trip import assert_round_trip
from tilewright.arith.axis_domains import departures
from tilewright.support.errors import TilewrightError
from tilewright.tir.stmt import BlockRealize, PrimFunc
from tilewright.tir.verify import verify

MOST = 400                                              # functions of one test that are checked
_made: list[PrimFunc] = []
_seen: set[str] = set()
_counts: Counter[str] = Counter()
_init = PrimFunc.__init__


def _recorded(self: PrimFunc, *args: object, **kwargs: object) -> None:
    _init(self, *args, **kwargs)
    if len(_made) < MOST:
        _made.append(self)


def pytest_configure() -> None:
    PrimFunc.__init__ = _recorded


def is_well_formed(func: PrimFunc) -> bool:
    try:
        verify(func, "block" if isinstance(func.body, BlockRealize) else "loop")
        if any(True for _ in departures(func)):         # the parser refuses these as well
            return False
    except TilewrightError:
        return False
    except Exception:                                   # a test of what the verifier does with garbage
        return False
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    _made.clear()
    result = yield
    made = _made[:]
    for func in made:
        if not is_well_formed(func):
            _counts["ill-formed, left out"] += 1
            continue
        text = str(func)
        if text in _seen:
            continue
        _seen.add(text)
        _counts["checked"] += 1
        try:
            assert_round_trip(func)
        except AssertionError:
            _counts["wrong"] += 1
            raise
    return result


def pytest_terminal_summary(terminalreporter) -> None:
    terminalreporter.write_line(f"round trips: {dict(_counts)}")
