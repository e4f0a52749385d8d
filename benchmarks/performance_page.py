"""The figures of docs/performance.md: `python benchmarks/performance_page.py` measures its schedules and writes them.

The programs of the page are run as they stand there; each schedule is built for 1024 x 1024, or for 64 channels of
56 x 56, and profiled, on one thread but for the last ones. --print writes the tables to standard output alone. On a
machine that does something else at the same time the figures are worth little.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.driver.peaks import machine_peaks
from tilewright.support.views import counted

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
PRODUCT = {"naive": "0: nothing said", "ordered": "1: order of loops, vectors", "tiled": "2: a tile in registers",
           "packed": "3: B in panels", "threaded": "4: all threads"}
CONVOLUTION = {"plain": "0: nothing said", "vectors": "1: vectors", "tile": "2: a tile in registers",
               "weights": "3: weights in order", "rows": "4: the image in order", "shared": "5: all threads"}
THREADED = ("threaded", "shared")
Case = tuple[str, bool, Callable[[], Any], list[np.ndarray]]     # title, whether on all threads, build, arguments


def programs(page: str) -> dict[str, Any]:
    """What the programs of the page define."""
    names: dict[str, Any] = {"__name__": "page"}
    with contextlib.redirect_stdout(io.StringIO()):
        for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(program, names)
    return names


def figures(names: dict[str, Any], n: int, channels: int, image: int,
            profile: Callable[..., Any] = tw.profile) -> str:
    """Two tables: the product of n x n, the convolution of `channels` of image x image."""
    def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
        return [np.random.default_rng(0).random(shape, "float32") for shape in shapes]
    matrices = arrays((n, n), (n, n), (n, n))
    x, w, y = images = arrays((channels, image, image), (channels, channels, 3, 3), (channels, image, image))
    product = [(title, name in THREADED, lambda name=name: tw.build(*names[name](n)), matrices)
               for name, title in PRODUCT.items()]
    product += by_rules(lambda: tw.compile(list(names["product"](n))), matrices)
    convolution = [(title, name in THREADED, lambda name=name: tw.build(names[name](channels, image).mod), images)
                   for name, title in CONVOLUTION.items()]
    convolution += by_rules(lambda: tw.compile(list(names["batch"](channels, image))), [x[None], w, y[None]])
    peaks = machine_peaks()
    return "\n".join([
        f"Measured on {peaks.cpu}, {n} x {n} in float32; the peak is {peaks.operations['float32'][0] / 1e9:.0f} "
        f"GFLOP/s on one thread, {peaks.operations['float32'][1] / 1e9:.0f} on {peaks.threads}.", "",
        *table(product, profile), "", f"The convolution, {channels} channels of {image} x {image}:", "",
        *table(convolution, profile)])


def by_rules(build: Callable[[], Any], args: list[np.ndarray]) -> list[Case]:
    """The built-in rules, on one thread and on all."""
    return [("`tw.compile`", threaded, build, args) for threaded in (False, True)]


def table(cases: list[Case], profile: Callable[..., Any]) -> list[str]:
    """A row for each case."""
    everyone = tw.get_num_threads()
    rows = ["| schedule | threads | time | GFLOP/s | of the peak |", "| --- | --- | --- | --- | --- |"]
    for title, threaded, make, args in cases:
        threads = everyone if threaded else 1
        tw.set_num_threads(threads)
        p = profile(make(), *args)
        share = "" if p.of_peak is None else f"{100 * p.of_peak:.1f} %"
        cells = (title, str(threads), f"{1e3 * p.seconds:.4g} ms", f"{p.operations_per_second / 1e9:.4g}", share)
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], f"({counted(threads, 'thread')}, spread {p.spread:.0%})", flush=True)
    tw.set_num_threads(everyone)
    return rows


def with_table(page: str, text: str) -> str:
    """The page with text between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="leave the page as it is")
    options = parser.parse_args()
    page = PAGE.read_text()
    text = figures(programs(page), 1024, 64, 56)
    if not options.print:
        PAGE.write_text(with_table(page, text))


if __name__ == "__main__":
    main()
