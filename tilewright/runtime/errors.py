"""The two shapes of CallError, so that `except ValueError` and `except TypeError` work as well."""
from __future__ import annotations

from tilewright.support.errors import CallError


class CallValueError(CallError, ValueError):
    """An argument of the right kind does not fit: extent, rank, strides, device, alignment, range."""


class CallTypeError(CallError, TypeError):
    """Too few or too many arguments, or one of the wrong kind or dtype."""
