"""Targets in scripts: the attribute "target" of a function."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.support.target import Target


def target_of(target_config: str | Mapping[str, Any] | Target, host: Any = None) -> Target:
    """The target of a text such as "llvm -mcpu=znver4", or of a dict: `T.func_attr({"target": T.target("llvm")})`."""
    return Target(target_config, host)
