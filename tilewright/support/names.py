"""Fresh names: deterministic, readable, never twice in one scope."""
from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable

_LONGEST = 160                   # characters of a name that is made of others


class NameSupply:
    """Hands out `base`, `base_1`, `base_2`, ...: the first that is not taken."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        """base if it is free, else base_1, base_2, ...; the result is taken from then on."""
        if base not in self._taken:
            self._taken.add(base)
            return base
        count = self._next.get(base, 1)
        while f"{base}_{count}" in self._taken:
            count += 1
        self._next[base] = count + 1
        name = f"{base}_{count}"
        self._taken.add(name)
        return name


def combined(name: str) -> str:
    """A name that was made of others, its middle left out where it is long: rounds of fuse and split double it."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST // 2]}__{name[-_LONGEST // 2:]}"


def identifier(name: str) -> str:
    """name made a Python identifier: `i.outer` becomes `i_outer`, and letters are what Python reads them as."""
    text = re.sub(r"\W", "_", name if name.isascii() else _plain(name)) or "v"
    return f"_{text}" if text[0].isdigit() or keyword.iskeyword(text) else text


def _plain(name: str) -> str:
    """name in the form that Python compares identifiers in (NFKC), without what no identifier has."""
    return "".join(c if f"a{c}".isidentifier() else "_" for c in unicodedata.normalize("NFKC", name))
