"""The table of operators: for each name and range of versions the function that makes it in the graph."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NEWEST = 10**6
CONTRIB = "com.microsoft"


@dataclass(frozen=True)
class Row:
    """An operator of a domain from version `since` to version `until`; `make(node)` gives its results.

    text: what it is made of, for the reference. attributes, inputs: all that it knows and how many, where no schema of
    onnx says it.
    """
    domain: str
    name: str
    since: int
    until: int
    make: Callable[[Any], Any]
    text: str
    attributes: tuple[str, ...] | None = None
    inputs: int | None = None


ROWS: dict[tuple[str, str], list[Row]] = {}
EVALUATED: dict[tuple[str, str], list[Row]] = {}


def operator(*names: str, since: int = 1, until: int = NEWEST, domain: str = "", text: str = "",
             attributes: tuple[str, ...] | None = None, inputs: int | None = None,
             table: dict[tuple[str, str], list[Row]] = ROWS) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator that enters a function of a node for some operators.

    Those of CONTRIB say which attributes they know, and how many inputs.
    """
    known = () if attributes is None and domain == CONTRIB else attributes

    def enter(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        words = text or (inspect.getdoc(make) or "").split("\n\n")[0].replace("\n", " ")
        for name in names:
            table.setdefault((domain, name), []).append(Row(domain, name, since, until, make, words, known,
                                                           inputs))
        return make
    return enter


def evaluated(*names: str, since: int = 1, until: int = NEWEST) -> Callable[..., Any]:
    """A decorator for what the importer computes itself, of tensors whose elements it knows."""
    return operator(*names, since=since, until=until, table=EVALUATED)


def find(table: dict[tuple[str, str], list[Row]], domain: str, name: str, version: int) -> Row | None:
    """The row of an operator at a version of its domain."""
    return next((r for r in table.get((domain, name), ()) if r.since <= version <= r.until), None)
