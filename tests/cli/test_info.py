"""`tilewright info`, `tilewright bench` and `tilewright passes`."""
import re
import subprocess
import sys
from importlib import metadata

import pytest
from click.testing import CliRunner

import tilewright
from tilewright.cli import info
from tilewright.cli.main import main
from tilewright.driver import target
from tilewright.driver.peaks import Peaks
from tilewright.lowering import list_of

FOUND = Peaks("cpu", 2, 4096, {"float32": [1e11, 2e11]}, {"copy": [1e10, 2e10]})


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_CACHE", raising=False)
    return tmp_path


def invoke(*args):
    return CliRunner().invoke(main, list(args))


def lines(output):
    return {line[:10].strip(): line[11:] for line in output.splitlines()}


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "tilewright", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tilewright, version {tilewright.__version__}\n"


def test_what_info_says(own_cache):
    done = invoke("info")
    assert done.exit_code == 0, done.output
    said = lines(done.output)
    t = target()
    assert said["vectors"] == f"{t.vector_bytes} bytes: {t.vector_bytes // 4} float32"
    assert t.mcpu in said["target"] and t.triple in said["target"]
    assert all(t.has_feature(f) for f in said["features"].split())
    assert str(own_cache) in said["cache"] and "512 MiB" in said["cache"]
    assert f"TILEWRIGHT_CACHE_DIR={own_cache}" in said["settings"]
    assert said["peaks"] == "not measured yet: tilewright bench"
    assert all(len(line) <= 116 for line in done.output.splitlines())


def test_bench_is_kept_for_info(own_cache, monkeypatch):
    monkeypatch.setattr(info, "measure", lambda: FOUND)
    done = invoke("bench")
    assert done.exit_code == 0 and "multiply-adds of float32  100.0 GFLOP/s  200.0 GFLOP/s" in done.output
    assert lines(invoke("info").output)["peaks"] == "200 GFLOP/s of float32, 20.0 GB/s, on 2 threads"


def test_a_slower_bench_replaces_nothing_unless_it_is_fresh(own_cache, monkeypatch):
    slower = Peaks("cpu", 2, 4096, {"float32": [5e10, 1e11]}, {"copy": [3e10, 4e10]})
    for found, options, kept, line in [
            (FOUND, [], False, "200 GFLOP/s of float32, 20.0 GB/s, on 2 threads"),
            (slower, [], True, "200 GFLOP/s of float32, 40.0 GB/s, on 2 threads"),
            (slower, ["--fresh"], False, "100 GFLOP/s of float32, 40.0 GB/s, on 2 threads")]:
        monkeypatch.setattr(info, "measure", lambda found=found: found)
        done = invoke("bench", *options)
        assert done.exit_code == 0 and ("of an earlier run" in done.output) == kept
        assert lines(invoke("info").output)["peaks"] == line


def test_a_cache_that_is_off_and_wrong_settings(own_cache, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    assert "not used: TILEWRIGHT_CACHE is off" in " ".join(invoke("info").output.split())
    monkeypatch.setenv("TILEWRIGHT_CACHE", "perhaps")
    done = invoke("info")
    assert done.exit_code == 1 and "TILEWRIGHT_CACHE='perhaps' is neither yes nor no" in done.output


def test_extras(monkeypatch):
    monkeypatch.setattr(metadata, "requires", lambda name: [
        "numpy>=1.26", 'click>=8; extra == "one"', "no-such-package-here>=1; extra == 'two'",
        "numpy ; python_version > '3' and extra == 'two'"])
    assert info._extras() == "one: yes; two: no no-such-package-here"

    def absent(name):
        raise metadata.PackageNotFoundError(name)
    monkeypatch.setattr(metadata, "requires", absent)
    assert "without being installed" in info._extras()


def test_no_linker(own_cache, monkeypatch):
    monkeypatch.setattr(info, "has_linker", lambda triple: False)
    assert "tilewright[export]" in lines(invoke("info").output)["linker"]


def test_the_passes_are_listed():
    done = invoke("passes", "cuda")
    assert done.exit_code == 0 and invoke("passes", "opencl").output == done.output
    rows = done.output.splitlines()
    for_cpus = invoke("passes").output.splitlines()
    assert {row.split()[1] for row in {*rows} ^ {*for_cpus}} == {"split_kernels", "hoist_allocations"}
    assert [row.split()[1] for row in rows] == [p.name for p in list_of("cuda")]
    assert any(re.match(r"flat   remove_no_ops +simple too, off +\w+", row) for row in rows)
    assert "unknown kind 'zuse'" in invoke("passes", "zuse").output
