"""What `import` costs, and that it leaves torch alone."""
import os
import subprocess
import sys
import textwrap

import pytest

from tilewright import graph
from tilewright.runtime.export import has_linker
from tilewright.runtime.llvm import host_triple


def run(code, **env):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                          env={**os.environ, **env}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_torch_is_not_imported_though_installed(tmp_path):
    for name in ("torch", "cuda"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"print('imported {name}')\nTensor = int\n")
    out = run("""
        import sys
        import tilewright.runtime
        assert "torch" not in sys.modules and "cuda" not in sys.modules
        print("after")
        import torch
        from tilewright.runtime import array
        print(array([1]).numpy()[0])
    """, PYTHONPATH=str(tmp_path))
    assert out == "after\nimported torch\n1\n"


def test_importing_loads_no_compiler():
    """What takes long to import comes with its first use: of our own packages the runtime and its support are there."""
    code = """
        import sys, numpy
        before = set(sys.modules)
        import tilewright.runtime, tilewright
        new = set(sys.modules) - before
        print(*sorted({".".join(m.split(".")[:2]) for m in new if m.startswith("tilewright.")}))
        print(*{m.split(".")[0] for m in new if not m.startswith("_")} - sys.stdlib_module_names)
    """
    ours, others = run(code).splitlines()
    assert ours == "tilewright.runtime tilewright.support"
    expected = {"cython_runtime", "ml_dtypes", "tilewright", "tvm_ffi", "typing_extensions"}
    assert set(others.split()) <= expected


def test_a_program_that_runs_a_library_loads_no_llvm_and_no_operators(tmp_path):
    if not has_linker(host_triple()):
        pytest.skip("there is no linker")
    x = graph.placeholder("x")
    step = graph.Executor([graph.relu(x)]).compile({x: graph.TensorType((4,), "float32")})
    step.export(tmp_path / "relu.so")
    out = run(f"""
        import sys, numpy as np, tilewright as tw
        print(tw.load({str(tmp_path / "relu.so")!r})(np.array([-1, 2, -3, 4], "float32")).numpy())
        print(*sorted({{".".join(m.split(".")[:3]) for m in sys.modules if m.startswith(
            ("llvmlite", "tilewright.schedule", "tilewright.lowering", "tilewright.codegen", "tilewright.driver",
             "tilewright.graph.operators"))}}))
    """)
    assert out == "[0. 2. 0. 4.]\n\n"


def test_fork_waits_for_a_first_use_in_another_thread():
    run("""
        import os, signal, threading, time
        import tilewright as tw
        for pause in (0.02, 0.1):
            thread = threading.Thread(target=lambda: (tw.build, tw.graph, tw.compat))
            thread.start()
            time.sleep(pause)
            pid = os.fork()
            if not pid:
                signal.alarm(60)
                tw.build, tw.te, tw.graph, tw.compat
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            thread.join()
    """)
