"""What a back end is: the functions that it takes, the passes that make them, the images that it makes of them.

A back end for targets of kind K is the folder `codegen/K`. It is imported when a target of that kind is first asked
for, and its `__init__` registers it:

    register(BackEnd("K", kind("word"), passes=CPU, version=..., image=..., sources=...))

The word is that by which schedule rules know its targets, "cpu" for instance; attributes of their strings follow it.

From there on it has all that the others have: `tw.lower` and `tw.build` for `target="K"`, the cache, get_source, and
modules with its images beside those of others. What programs mean is decided by the passes; a back end writes it down.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.lowering.options import Pass
from tilewright.support.target import Target
from tilewright.support.target.kinds import Kind
from tilewright.tir.stmt import PrimFunc

Functions = Sequence[PrimFunc]
Text = Callable[[Functions, Target], str]


@dataclass(frozen=True)
class BackEnd:
    """A way from functions to code.

    What it is for:

    - kind, target: the kind of its targets, and what their strings may say.

    What it takes, flat functions and those of their regions (`lowering/outline.py`):

    - passes: the list of its passes, in order: one of `lowering/passes.py`, or one made of it, such as
      `without_vectors(CPU)`.
    - threads: whether it takes loops that are bound to the threads of a device.

    What it makes:

    - version: of all that decides what code it makes; compiled objects are kept for one version. What the package
      itself has needs no new one for a change of its source, which the cache looks at.
    - image: the functions as one image, and loader: which loader loads its images (`runtime/loader.py`): "object"
      takes object files for this process. Where none is registered for it, functions can be built, not called.
    - sources: for each format, as in `get_source("s")`, the functions as text; the first is that of `get_source()`.

    What it may have as well:

    - image_of_text: the image of text in its own language.
    - standalone: `(functions, target, texts of others)`: an object that needs nothing of this process.
    - files: `(functions, the same with serial loops for those that were vectorised, target, entry, constants)`: the
      names and contents of source files that need nothing of Tilewright. entry, where it is no empty text, is the
      one function that programs call: it calls the others, and reads constants.
    """
    kind: str
    target: Kind
    passes: tuple[Pass, ...]
    version: Callable[[], str]
    image: Callable[[Functions, Target], bytes]
    sources: Mapping[str, Text] = field(default_factory=dict)
    loader: str = ""
    threads: bool = False
    image_of_text: Callable[[str, Target], bytes] | None = None
    standalone: Callable[[Functions, Target, Sequence[str]], bytes] | None = None
    files: Callable[[Functions, Functions, Target, str, bytes], Mapping[str, str | bytes]] | None = None
