"""Errors that are Python's as well, so that `except ValueError` and `except TypeError` work as well."""
from __future__ import annotations

from tilewright.support.errors import ArgumentError, CallError


class CallValueError(CallError, ValueError):
    """An argument of the right kind does not fit: extent, rank, strides, device, alignment, range."""


class CallTypeError(CallError, TypeError):
    """Too few or too many arguments, or one of the wrong kind or dtype."""


class ElementError(ArgumentError, IndexError):
    """An element that a tensor does not have was asked for."""
