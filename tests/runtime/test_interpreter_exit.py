"""A daemon thread in a kernel that calls Python does not disturb the end of the interpreter."""
import shutil
import subprocess
import sys
import textwrap

import pytest

import tilewright as tw
from tilewright.script import from_source

KERNEL = """
@T.prim_func
def main(A: T.Buffer((100000,), "int32")):
    for i in {loop}(100000):
        T.evaluate(T.call_packed("tests.ending.callback", i))
"""
PROGRAM = textwrap.dedent("""
    import sys
    import threading
    import time
    import numpy as np
    import tilewright as tw
    from tilewright.script import from_source

    started = threading.Event()

    @tw.register_func("tests.ending.callback")
    def callback(i):
        started.set()
        {body}

    kernel = sys.argv[1]
    f = tw.load_module(kernel) if kernel.endswith(".so") else tw.build(from_source(kernel))

    def forever():
        while True:
            f(np.zeros(100000, "int32"))

    threading.Thread(target=forever, daemon=True).start()
    assert started.wait(60)
    time.sleep(0.05)
    print("the end")
""")


def run(kernel, body="pass"):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(body=body), kernel], capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")


@pytest.mark.parametrize("loop, body", [("T.serial", "pass"), ("T.serial", "time.sleep(0.01)"), ("T.parallel", "pass")])
def test_the_interpreter_ends_while_a_daemon_thread_runs_a_kernel(loop, body):
    run(KERNEL.format(loop=loop), body)


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a system linker")
def test_and_while_it_runs_one_of_a_library(tmp_path):
    tw.build(from_source(KERNEL.format(loop="T.serial"))).export_library(tmp_path / "kernel.so")
    run(str(tmp_path / "kernel.so"))
