"""TILEWRIGHT_PERF: the map of names that Linux perf reads."""
import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.runtime import loader
from tilewright.support.errors import ArgumentError


@pytest.fixture
def map_file(tmp_path, monkeypatch):
    path = tmp_path / "perf.map"
    monkeypatch.setattr(loader, "map_file", lambda: path)
    monkeypatch.setenv("TILEWRIGHT_PERF", "1")
    return path


def scaled(name):
    a = te.placeholder((64, 64), name="A")
    b = te.compute((64, 64), lambda i, j: a[i, j] * 2.0, name="B")
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    return tw.build(s, [a, b], name=name)


def parsed(path):
    """name -> (start, size)"""
    return {name: (int(start, 16), int(size, 16)) for start, size, name in
            (line.split(" ") for line in path.read_text().splitlines())}


def test_kernels_and_parallel_bodies_have_names(map_file):
    f = scaled("perf_scale")
    x, y = np.ones((64, 64), "float32"), np.zeros((64, 64), "float32")
    f(x, y)
    names = parsed(map_file)
    mine = {n for n in names if "perf_scale" in n}
    assert mine == {"__tvm_ffi_perf_scale", "perf_scale__kernel", "perf_scale__run", "perf_scale__par0",
                    "perf_scale__par0_body"}
    spans = sorted(names[n] for n in mine)
    assert all(size > 0 for _, size in spans)
    assert all(a + size <= b for (a, size), (b, _) in zip(spans, spans[1:]))


def test_addresses_are_those_of_the_code(map_file):
    f = scaled("perf_twice")
    f(np.ones((64, 64), "float32"), np.zeros((64, 64), "float32"))
    start, size = parsed(map_file)["perf_twice__kernel"]
    with open("/proc/self/maps") as maps:
        ranges = [[int(x, 16) for x in line.split(" ")[0].split("-")] for line in maps if "x" in line.split(" ")[1]]
    assert any(low <= start and start + size <= high for low, high in ranges)
    assert any(ctypes.string_at(start, size))


def test_nothing_is_written_unless_asked(tmp_path):
    program = ("import os, numpy as np, tilewright as tw\nfrom tilewright import te\n"
               "a = te.placeholder((4,), name='A')\nb = te.compute((4,), lambda i: a[i] + 1.0)\n"
               "tw.build(te.create_schedule(b.op), [a, b])(np.ones(4, 'float32'), np.ones(4, 'float32'))\n"
               "path = f'/tmp/perf-{os.getpid()}.map'\nprint(os.path.exists(path))\n"
               "if os.path.exists(path):\n"
               "    print('default_function__kernel' in open(path).read())\n    os.remove(path)\n")
    for setting, expected in (("0", ["False"]), ("1", ["True", "True"])):
        out = subprocess.run([sys.executable, "-c", program], env={**os.environ, "TILEWRIGHT_PERF": setting},
                             capture_output=True, text=True, timeout=60)
        assert out.stdout.split() == expected, out.stderr


@pytest.mark.parametrize("plant", [lambda path: path.symlink_to(path.with_name("precious")), os.mkfifo],
                         ids=["link", "pipe"])
def test_what_others_left_in_the_place_of_the_file_is_not_written_to(map_file, tmp_path, plant):
    (tmp_path / "precious").write_text("kept")
    plant(map_file)
    with pytest.raises(ArgumentError, match=r"TILEWRIGHT_PERF=1: .*perf\.map cannot be written"):
        scaled("perf_planted")["perf_planted"]
    assert (tmp_path / "precious").read_text() == "kept"
