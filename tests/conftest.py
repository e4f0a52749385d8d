"""Every test runs with the verifier after every pass of the lowering, and compiles in its own process, since others run
beside it; what takes long begins first.
"""
import gc
import os

os.environ.setdefault("TILEWRIGHT_VERIFY", "1")
os.environ.setdefault("TILEWRIGHT_COMPILE_WORKERS", "0")
SLOW = ("test_kinds", "test_mutants", "test_programs", "test_legality", "test_compiler_mutants", "test_interleavings",
        "test_hostile", "test_proof", "test_extending")


def pytest_collection_modifyitems(items):
    """The slow modules before all others: the end of a run is for short tests, which spread over all processes."""
    items.sort(key=lambda item: SLOW.index(name) if (name := item.path.stem) in SLOW else len(SLOW))


def pytest_collection_finish():
    """The 14,000 tests outlive the run: the collector need not look at all of their parts again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
