"""What modules hold: functions under names, of this floor or of a higher one, and how they show themselves."""
from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.support.registry import hook


class Shown:
    """What has a script: functions and modules."""
    __slots__ = ()

    def script(self, *, name: str | None = None, **options: Any) -> str:
        """This as TVMScript, a function or a module's class under another name if one is given. `options` are TVM's
        for its printer."""
        return hook("tir.script")(self, name, options)

    def show(self, style: str | None = None, black_format: bool | None = None, *, name: str | None = None,
             **options: Any) -> None:
        """Print the script, with colours in a terminal or a notebook; `style` names those of Pygments."""
        hook("tir.show")(self, style, name, options)

    def _repr_html_(self) -> str:
        return hook("tir.html")(self)


@dataclass
class ModuleText:
    """What the texts of the functions of one module share.

    called: the name of its class. methods: what the functions are called in it, by their names in the module; defined:
    the same by the ids of the functions. tables: what is too large for a text stands in it as `metadata[key][number]`.
    plain: names of what functions define are numbers, and arrays are digests, so that equal functions have equal texts.
    """
    called: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    defined: dict[int, str] = field(default_factory=dict)
    tables: dict[str, list[Any]] = field(default_factory=dict)
    plain: bool = False

    def entry(self, key: str, thing: object) -> str:
        """The text that stands for thing."""
        if self.plain and isinstance(thing, np.ndarray):
            return f"{thing.dtype}{thing.shape}{hashlib.sha256(thing.tobytes()).hexdigest()}"
        table = self.tables.setdefault(key, [])
        known = next((k for k, x in enumerate(table) if x is thing), len(table))
        if known == len(table):
            table.append(thing)
        return f'metadata["{key}"][{known}]'


class BaseFunc(Shown):
    """A function that a module may hold: a PrimFunc, or one of a higher floor, which says how it prints."""
    __slots__ = ()

    @property
    def called_functions(self) -> Sequence[BaseFunc]:
        """The functions that this one calls by themselves, not by a name in the module."""
        return ()

    def lines_in(self, name: str, module: ModuleText) -> list[str]:
        """The lines of this function under a name, in the text of a module; a PrimFunc's are the printer's."""
        raise NotImplementedError


class GlobalVar(str):
    """The name of a function of a module."""
    __slots__ = ()

    @property
    def name_hint(self) -> str:
        """The name itself."""
        return str(self)
