"""A defect in the running compiler: live functions get the code that they have in the changed source."""
from __future__ import annotations

import gc
import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType

import tilewright

from .compiler_mutations import Mutation

Change = tuple[FunctionType, CodeType]
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Functions:
    """The live functions of the package by file, as they are when this is made: all modules are imported."""

    def __init__(self) -> None:
        for module in pkgutil.walk_packages(tilewright.__path__, "tilewright.", onerror=lambda name: None):
            if not module.name.endswith("__main__"):
                try:
                    importlib.import_module(module.name)
                except ImportError:                    # of an extra that is not installed
                    pass
        self.of_file: dict[str, list[FunctionType]] = defaultdict(list)
        folder = str(Path(tilewright.__file__).parent)
        gc.unfreeze()                                      # what is frozen is not among the objects
        for f in gc.get_objects():
            if type(f) is FunctionType and f.__code__.co_filename.startswith(folder):
                self.of_file[f.__code__.co_filename].append(f)

    def changes(self, m: Mutation, root: Path) -> list[Change]:
        """What plants a mutation; [] where importing the changed module would do something else."""
        file = root / m.path
        source = file.read_text()
        old, new = (compile(text, str(file), "exec", dont_inherit=True) for text in (source, m.apply(source)))
        try:
            pairs = dict(_pairs(old, new, True))
        except ValueError:
            return []
        return [(f, pairs[f.__code__]) for f in self.of_file.get(str(file), ()) if f.__code__ in pairs]


def plant(changes: list[Change]) -> None:
    """For the rest of this process."""
    for function, code in changes:
        function.__code__ = code


def _pairs(old: CodeType, new: CodeType, imported: bool) -> Iterator[tuple[CodeType, CodeType]]:
    """(code, changed code) of functions. Raises ValueError where code differs that runs when the module is imported,
    or a function's variables do not fit those of the live one."""
    before, after = _nested(old), _nested(new)
    if imported and (_own(old) != _own(new) or len(before) != len(after)):
        raise ValueError("differs on import")
    if not imported and old != new:
        if len(old.co_freevars) != len(new.co_freevars):
            raise ValueError("closes over other variables")
        yield old, new
    if len(before) == len(after):
        for a, b in zip(before, after):
            yield from _pairs(a, b, imported and (not a.co_flags & CO_OPTIMIZED or a.co_name in _COMPREHENSIONS))


def _nested(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    return (code.co_code, code.co_names, code.co_varnames,
            repr([c for c in code.co_consts if not isinstance(c, CodeType)]))
