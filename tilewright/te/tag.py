"""`te.tag_scope`: a tag for the operations that are made inside."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from tilewright.support.errors import TensorExpressionError, described

_state = threading.local()


@contextlib.contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """`with te.tag_scope("broadcast"):` (or as a decorator): operations made inside have this tag.

    Raises TensorExpressionError inside another one, and for an operation with a tag of its own.
    """
    if not isinstance(tag, str) or not tag:
        raise TensorExpressionError(f"tag_scope: {described(tag)} is not a tag")
    if current() is not None:
        raise TensorExpressionError(f"tag_scope({tag!r}) inside tag_scope({current()!r}): tags are not nested")
    _state.tag = tag
    try:
        yield
    finally:
        _state.tag = None


def current() -> str | None:
    """The tag of the scope in force."""
    return getattr(_state, "tag", None)


def tagged(tag: str, what: str) -> str:
    """The tag of an operation that is given `tag`. Raises TensorExpressionError when there are two."""
    around = current()
    if around is None:
        return tag
    if tag:
        raise TensorExpressionError(f"{what}: tag={tag!r} inside tag_scope({around!r})", "leave one of them out")
    return around
