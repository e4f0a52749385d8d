"""What a back end is: it takes flat functions of some forms and makes images that can be loaded."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.support.target import Target
from tilewright.tir.stmt import PrimFunc

Text = Callable[[Sequence[PrimFunc], Target], str]


@dataclass(frozen=True)
class BackEnd:
    """A way from flat functions to code.

    - version: of the libraries that decide what code it makes; compiled objects are kept for one version.
    - threads: whether it takes loops that are bound to the threads of a device.
    - finished: `(flat, given) -> flat`, with what it takes over from the function before the lowering.
    - image: the functions as one image, the bytes of an object file.
    - image_of_text: the image of text in its own language.
    - standalone: `(functions, target, names of others)`: an image that needs nothing of this process.
    - files: `(functions, the same with loops in the place of vectors, target)`: {name: text} of source files that need
      nothing of Tilewright; None where there are none.
    - sources: for each format, as in `get_source("s")`, the functions as text.
    """
    name: str
    version: str
    threads: bool
    finished: Callable[[PrimFunc, PrimFunc], PrimFunc]
    image: Callable[[Sequence[PrimFunc], Target], bytes]
    image_of_text: Callable[[str, Target], bytes]
    standalone: Callable[[Sequence[PrimFunc], Target, Sequence[str]], bytes]
    sources: Mapping[str, Text]
    files: Callable[[Sequence[PrimFunc], Sequence[PrimFunc], Target], Mapping[str, str]] | None = None
