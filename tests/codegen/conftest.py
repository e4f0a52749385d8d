"""The kernel suite: what kernels compute, on every back end."""
import sys

import kernels
import pytest

from tilewright.driver import build

SUITE = ("test_kernels", "test_arithmetic", "test_casts", "test_integers", "test_math", "test_checked",
         "test_assertions", "test_packed", "test_print")
BACK_ENDS = ("llvm", "c")


def pytest_configure(config):
    config.addinivalue_line("markers", "llvm: what LLVM is told, or makes of it; no other back end runs it")


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__ in SUITE:
        of_llvm = any(m.name == "llvm" for m in metafunc.definition.iter_markers())
        metafunc.parametrize("back_end", BACK_ENDS[:1] if of_llvm else BACK_ENDS, indirect=True)


@pytest.fixture(autouse=True)
def back_end(request, monkeypatch):
    """The back end of a test of the suite: code of every target "llvm ...", the default one too, is made by it."""
    name = getattr(request, "param", "llvm")
    if name != "llvm":
        driver = sys.modules[build.__module__]
        check = driver.check_target
        monkeypatch.setattr(kernels, "BACK_END", name)
        monkeypatch.setattr(driver, "check_target", lambda spec: check(of_back_end(name, spec)))
    return name


def of_back_end(name, spec):
    """A target's text with another back end; for the default target with the optimisations that compile fast."""
    if spec is None:
        return f"{name} -opt-level=1"
    return spec.replace("llvm", name, 1) if isinstance(spec, str) else spec
