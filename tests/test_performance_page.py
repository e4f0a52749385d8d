"""The script that writes the figures of docs/performance.md, on small matrices."""
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver import profiles
from tilewright.driver.peaks import Peaks

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "performance_page.py"
PEAKS = Peaks("a processor", 2, 4096, {"float32": [1e12, 2e12]}, {"read": [1e11, 2e11]})


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("performance_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_have_a_row_for_each_schedule(script, monkeypatch):
    monkeypatch.setattr(script, "machine_peaks", lambda: PEAKS)
    monkeypatch.setattr(profiles, "machine_peaks", lambda: PEAKS)
    monkeypatch.setattr(profiles, "LEAST_MS", 0.1)
    names = script.programs(script.PAGE.read_text())
    titles = [*script.PRODUCT.values(), *2 * ["`tw.compile`"], *script.CONVOLUTION.values(), *2 * ["`tw.compile`"]]
    right = []

    def profile(f, a, b, c):
        found = tw.profile(f, a, b, c)
        right.append(a.ndim > 2 or np.allclose(c, a @ b, rtol=1e-4))     # convolutions are checked by the page
        return found
    before = tw.get_num_threads()
    text = script.figures(names, 64, 32, 14, profile)
    assert tw.get_num_threads() == before and right == [True] * len(titles)
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line and "GFLOP/s" not in line]
    assert [row.split(" | ")[0][2:] for row in rows] == titles
    assert all(re.search(r"\| \d+ \| [\d.]+ ms \| [\d.e+-]+ \| [\d.]+ % \|$", row) for row in rows)
    page = script.with_table("before\n" + script.BEGIN + "\nold\n" + script.END + "\nafter\n", text)
    assert page == f"before\n{script.BEGIN}\n{text}\n{script.END}\nafter\n"


def test_the_page_has_figures_of_these_schedules(script):
    page = script.PAGE.read_text()
    between = page[page.index(script.BEGIN):page.index(script.END)]
    assert all(f"| {title} |" in between for title in (*script.PRODUCT.values(), *script.CONVOLUTION.values()))
