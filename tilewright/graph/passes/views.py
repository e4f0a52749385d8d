"""Views: results that are their input's memory under another shape, so that nothing is computed."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.graph.ir.callees import Operator
from tilewright.graph.ir.values import Call

VIEWS = frozenset({topi.reshape, topi.squeeze, topi.expand_dims, topi.flatten})


def is_view(callee: Any) -> bool:
    """True for operators whose result has the elements of input 0, row by row."""
    return isinstance(callee, Operator) and callee.rule in VIEWS


def is_view_call(call: Call) -> bool:
    return is_view(call.callee) and call.results[0].dtype == call.inputs[0].dtype
