"""`tilewright.compat.tvm`: the 2018 and the `te` era spellings of TVM, as thin aliases.

compat.modules says what each module holds: names and our objects. A name that is not there raises AttributeError
that says what to use instead.
"""
from __future__ import annotations

import difflib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.compat.absent import INSTEAD
from tilewright.compat.modules import ALIASES, TABLE
from tilewright.script import ir as script_ir
from tilewright.script import tir as script_tir
from tilewright.support.errors import with_hint


class Namespace(types.ModuleType):
    """A module made of a table of names."""

    def __init__(self, name: str, names: Mapping[str, Any], doc: str) -> None:
        super().__init__(name, doc)
        self.__dict__.update(names)
        self.__file__ = __file__
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise AttributeError(_missing(f"{self.__name__}.{name}"))

    def __dir__(self) -> list[str]:
        return sorted(n for n in self.__dict__ if not n.startswith("__"))


def hint_for(full: str) -> str:
    """What to use instead of a name that is not here, or a name that is near; "" where neither is known."""
    parent, _, name = full.rpartition(".")
    words = full.removeprefix("tvm.").split(".")             # what became of a module says it for all in it
    if ".".join(words) in INSTEAD:
        return INSTEAD[".".join(words)]
    known = {n.lower(): n for n in (dir(MODULES[parent]) if parent in MODULES else ())}
    near = difflib.get_close_matches(name.lower(), known, 1, 0.8)
    if near:
        return f"did you mean {known[near[0]]}?"
    around = (".".join(words[:n]) for n in range(len(words) - 1, 0, -1))
    return next((INSTEAD[key] for key in (name, *around) if key in INSTEAD), "")


def _missing(full: str) -> str:
    """The message for a name that is not here: what to use instead, a name that is near, or where to look."""
    parent = full.rpartition(".")[0]
    return with_hint(f"{full} does not exist in tilewright.compat.tvm",
                            hint_for(full) or f"dir({parent}) lists the names there are")


def _modules() -> dict[str, Namespace]:
    rows = TABLE | {alias: TABLE[name] for alias, name in ALIASES.items()}
    modules = {name: Namespace(name, names, doc) for name, (names, doc) in rows.items()}
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    return modules


MODULES = _modules()
tvm = MODULES["tvm"]


class _MissingModules(importlib.abc.MetaPathFinder):
    """Turns `import tvm.something` that we lack into an error with a hint."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: types.ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith("tvm.") and isinstance(sys.modules.get("tvm"), Namespace):
            # no `name`: with one, `from tvm import missing` would replace this error by a bare ImportError
            raise ModuleNotFoundError(_missing(fullname))
        return None


def install() -> None:
    """Make `import tvm` and `import topi` mean this namespace, in this process."""
    sys.modules.update(MODULES)
    sys.modules |= {name.removeprefix("tvm."): MODULES[name] for name in MODULES if name.startswith("tvm.topi")}
    sys.modules |= {"tvm.script.tir": script_tir, "tvm.script.ir": script_ir,
                    "tvm.script.parser.tir": script_tir, "tvm.script.parser.ir": script_ir}
    if not any(isinstance(f, _MissingModules) for f in sys.meta_path):
        sys.meta_path.insert(0, _MissingModules())
