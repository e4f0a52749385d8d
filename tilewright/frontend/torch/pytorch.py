"""PyTorch, which is loaded where it is needed."""
from __future__ import annotations

from typing import Any

from tilewright.support.errors import ImportModelError


def pytorch() -> Any:
    """The module torch. Raises ImportModelError where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise ImportModelError(f"PyTorch cannot be loaded: {error}", "pip install 'tilewright[torch]'") from None
    return torch
