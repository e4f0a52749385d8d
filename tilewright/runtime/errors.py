"""Errors of several classes, so that `except ValueError` and `except TypeError` work as well."""
from __future__ import annotations

from tilewright.support.errors import ArgumentError, CallError, GraphError


class CallValueError(CallError, ValueError):
    """An argument of the right kind does not fit: extent, rank, strides, device, alignment, range."""


class CallTypeError(CallError, TypeError):
    """Too few or too many arguments, or one of the wrong kind or dtype."""


class ModelValueError(GraphError, CallValueError):
    """An argument of a compiled or loaded model does not fit: its shape, or memory that cannot be updated in place."""


class ModelTypeError(GraphError, CallTypeError):
    """Too few or too many arguments of a compiled or loaded model, or one of the wrong kind or dtype."""


class ElementError(ArgumentError, IndexError):
    """An element that a tensor does not have was asked for."""
