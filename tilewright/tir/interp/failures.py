"""What the interpreter says when something fails at run time."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tilewright.support.errors import InterpreterError
from tilewright.tir.interp.expressions import ExprCompiler
from tilewright.tir.node import Node
from tilewright.tir.printer import show


class FailureCompiler(ExprCompiler):
    """The failures that compiled statements call. `root` is shown, with the guilty statement marked."""

    def __init__(self, name: str, root: Node) -> None:
        super().__init__()
        self.title, self.root = name, root
        self.sites: list[Node] = []
        self.here = root
        self.globals |= {f.__name__: f for f in (
            self.outside, self.outgrown, self.undeclared, self.unwritten, self.race, self.two_lanes, self.off_axis,
            self.assumption, self.assertion, self.not_inside)}

    def site(self) -> int:
        """The number of the statement being compiled."""
        if not self.sites or self.sites[-1] is not self.here:
            self.sites.append(self.here)
        return len(self.sites) - 1

    def fail(self, site: int, message: str) -> NoReturn:
        raise InterpreterError(f"{self.title}: {message}\n\n{show(self.root, (self.sites[site],))}")

    def outside(self, site: int, name: str, index: Sequence[Any], shape: Sequence[int]) -> NoReturn:
        at, extents = (", ".join(str(list(x) if isinstance(x, range) else x) for x in xs) for xs in (index, shape))
        self.fail(site, f"{name}[{at}] is out of bounds: the shape is ({extents}{',' if len(shape) == 1 else ''})")

    def outgrown(self, site: int, name: str, at: Sequence[int], label: str, size: int) -> NoReturn:
        least, most = min(at), max(at)
        elements = f"element {most} is" if least == most else f"elements {least} to {most} are"
        self.fail(site, f"{name} has the memory of {label}, which has {size} elements, and {elements} touched")

    def undeclared(self, site: int, block: str, name: str, index: Sequence[Any]) -> NoReturn:
        self.fail(site, f"block {block} touches {name}[{', '.join(map(str, index))}], which its regions leave out")

    def unwritten(self, site: int, name: str, at: int) -> NoReturn:
        self.fail(site, f"{name} is read at element {at}, which nothing has written")

    def two_lanes(self, site: int, name: str, at: int) -> NoReturn:
        self.fail(site, f"two lanes of one store write element {at} of {name}")

    def off_axis(self, site: int, name: str, value: int, low: int, high: int) -> NoReturn:
        self.fail(site, f"block axis {name} is {value}, outside its domain {low} to {high - 1}")

    def assumption(self, site: int) -> NoReturn:
        self.fail(site, "an assumption does not hold")

    def assertion(self, site: int, message: str) -> NoReturn:
        self.fail(site, message)

    def not_inside(self, site: int, form: str, index: Sequence[int], extent: int, lanes: Sequence[bool]) -> None:
        at = next(i for i, on in zip(index, lanes) if on and not 0 <= i < extent)
        self.fail(site, form.replace("%1$lld", str(at)).replace("%2$lld", str(extent)).replace("%%", "%"))

    def race(self, site: int, loop: str, kind: str, name: str, sets: Sequence[set[int]]) -> NoReturn:
        written, read, earlier_written, earlier_read = sets
        for mine, theirs, what in ((written, earlier_written, "both write"),
                                   (read, earlier_written, "one reads, one writes"),
                                   (written, earlier_read, "one reads, one writes")):
            if mine & theirs:
                self.fail(site, f"two iterations of the {kind} loop {loop} touch element {min(mine & theirs)} of "
                                f"{name} ({what})")
        raise AssertionError("no race after all")
