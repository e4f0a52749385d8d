"""The peaks of the machine: kernels that do what they say, figures that agree with each other, one store per host."""
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver import peaks
from tilewright.driver.peaks import Peaks
from tilewright.runtime.machine import available_cpus

SMALL = Peaks("cpu", 2, 4096, {"float32": [1e11, 2e11]}, {"copy": [1e10, 2e10], "read": [3e10, 1e10]})


@pytest.mark.parametrize("kind", peaks.instructions(tw.target()))
def test_a_kernel_is_made_of_its_instruction(kind):
    """STEPS rounds of independent instructions: as many as registers hold, and nothing else in the loop."""
    row = peaks.instructions(tw.target())[kind]
    text = peaks._kernel(row, 12, tw.target().vector_bytes)
    assert text.count(f"@{row.name}(") == 1 + 12
    call, made = peaks.operations(kind, 2)
    call()
    lanes = int(row.accumulator[1:].split()[0])
    assert made % (2 * peaks.STEPS * lanes * row.operations) == 0 and made > 0


def test_streams_compute_what_they_say():
    n = 4096
    kernels = peaks.stream_kernels(n)
    a, b, c = (np.random.RandomState(k).rand(n).astype("float32") for k in range(3))
    s, copied = np.zeros(1, "float32"), np.zeros(n, "float32")
    arrays = [a, b, c, s]
    assert {name: (places, crossing) for name, (_, places, crossing) in kernels.items()} == {
        "copy": ((0, 1), 2), "read": ((0, 3), 1), "triad": ((0, 1, 2), 3)}
    kernels["read"][0](*(arrays[p] for p in kernels["read"][1]))
    np.testing.assert_allclose(s[0], a.astype("float64").sum(), rtol=1e-6)
    kernels["triad"][0](*(arrays[p] for p in kernels["triad"][1]))
    np.testing.assert_allclose(c, a + 3 * b, rtol=1e-6)
    kernels["copy"][0](a, copied)
    np.testing.assert_array_equal(copied, a)


def test_a_measurement(monkeypatch):
    """On small arrays; threads are as before afterwards, and one thread does not do more than its share and noise."""
    monkeypatch.setattr(peaks, "REPEATS", 2)
    before = tw.get_num_threads()
    found = peaks.measure(size=1 << 20)
    assert tw.get_num_threads() == before and found.threads == available_cpus() and found.array_bytes == 1 << 20
    assert {"float32", "float64"} <= set(found.operations) and set(found.bandwidth) == {"copy", "read", "triad"}
    assert all(x > 1e8 for pair in (*found.operations.values(), *found.bandwidth.values()) for x in pair)
    assert found.of("float32", 1) < 8e12 and found.of("complex64", 1) is None
    assert "multiply-adds of float32" in repr(found) and "GB/s" in repr(found) and "<td>" in found._repr_html_()


def test_by_threads():
    assert (SMALL.of("float32", 1), SMALL.of("float32", 2), SMALL.of("float32", 9)) == (1e11, 2e11, 2e11)
    assert (SMALL.bytes_per_second(1), SMALL.bytes_per_second(2)) == (3e10, 2e10)
    eight = Peaks("cpu", 8, 4096, {"float32": [1e11, 7e11]}, SMALL.bandwidth)
    assert [eight.of("float32", n) for n in (1, 2, 6, 7, 8)] == [1e11, 2e11, 6e11, 7e11, 7e11]


def test_the_higher_figure_of_each_quantity_stays():
    noisy = Peaks("cpu", 2, 4096, {"float32": [5e10, 3e11], "int8": [1e12, 2e12]},
                  {"copy": [2e10, 1e10], "read": [0, 0]})
    best = noisy.best_of(SMALL)
    assert best.operations == {"float32": [1e11, 3e11], "int8": [1e12, 2e12]}
    assert best.bandwidth == {"copy": [2e10, 2e10], "read": [3e10, 1e10]}
    larger = Peaks("cpu", 2, 8192, {"float32": [1, 1]}, {"copy": [1e9, 1e9], "read": [1e9, 1e9]})
    assert SMALL.best_of(larger) == Peaks("cpu", 2, 8192, SMALL.operations, larger.bandwidth)
    assert larger.best_of(SMALL).bandwidth == larger.bandwidth


def test_peaks_are_kept_for_other_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_CACHE", raising=False)
    assert peaks.stored_peaks() is None
    peaks.store(SMALL)
    assert peaks.stored_peaks() == SMALL
    monkeypatch.setattr(peaks, "measure", lambda: pytest.fail("measured again"))
    peaks.machine_peaks.cache_clear()
    assert peaks.machine_peaks() == SMALL
    peaks.machine_peaks.cache_clear()
    code = "from tilewright.driver.peaks import stored_peaks; print(stored_peaks().operations)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout == "{'float32': [100000000000.0, 200000000000.0]}\n"
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    assert peaks.stored_peaks() is None
    peaks.store(SMALL)
