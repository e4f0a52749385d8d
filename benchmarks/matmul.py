"""Matrix products: a schedule written with the public primitives, beside the machine's peak and the peers.

    python benchmarks/matmul.py --peers /tmp/peers/bin/python [--threads 1 2] [--rounds 9] [--sizes square mlp]

Prints GFLOP/s (medians of interleaved rounds), the fraction of the FMA peak measured in the same run, and the
ratio to the best peer. `seed` is the schedule of the program the project started from (32 x 32 tiles).
"""
from __future__ import annotations

import argparse
from typing import Any

import harness
import numpy as np

SQUARE = [("sq256", 256, 256, 256, False, False), ("sq512", 512, 512, 512, False, False),
          ("sq1024", 1024, 1024, 1024, False, False), ("sq2048", 2048, 2048, 2048, False, False)]
MLP = [("fwd 1000x784x256", 1000, 784, 256, False, False), ("dW 784x1000x256", 784, 1000, 256, True, False),
       ("fwd 1000x256x100", 1000, 256, 100, False, False), ("dW 256x1000x100", 256, 1000, 100, True, False),
       ("dX 1000x100x256", 1000, 100, 256, False, True), ("fwd 1000x100x10", 1000, 100, 10, False, False),
       ("dW 100x1000x10", 100, 1000, 10, True, False), ("dX 1000x10x100", 1000, 10, 100, False, True)]
ENGINES = ["tilewright", "tilewright_rules", "tilewright_seed", "numpy", "torch", "jax", "onnxruntime"]


def operands(m: int, k: int, n: int, ta: bool, tb: bool) -> tuple[np.ndarray, np.ndarray]:
    """Random float32 operands as they lie in memory."""
    random = np.random.RandomState(0)
    a = random.rand(*((k, m) if ta else (m, k))).astype("float32")
    return a, random.rand(*((n, k) if tb else (k, n))).astype("float32")


def check(c: np.ndarray, a: np.ndarray, b: np.ndarray, ta: bool, tb: bool) -> None:
    """Raise unless some rows of c are the product, computed in float64."""
    x, y = (a.T if ta else a).astype("float64"), (b.T if tb else b).astype("float64")
    rows = np.linspace(0, len(x) - 1, 8).astype(int)
    np.testing.assert_allclose(c[rows], x[rows] @ y, rtol=1e-4)


# ---- Tilewright


def product(m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    """(A, B, C) as tensor expressions."""
    from tilewright import te
    a, b = te.placeholder((k, m) if ta else (m, k), name="A"), te.placeholder((n, k) if tb else (k, n), name="B")
    r = te.reduce_axis((0, k), name="k")

    def dot(i: Any, j: Any) -> Any:
        return te.sum((a[r, i] if ta else a[i, r]) * (b[j, r] if tb else b[r, j]), axis=r)
    return a, b, te.compute((m, n), dot, name="C")


def run(module: Any, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    """A call of the module on Tilewright's own tensors, after a check of its result."""
    import tilewright as tw
    a, b = operands(m, k, n, ta, tb)
    x, y, z = tw.nd.array(a), tw.nd.array(b), tw.nd.empty((m, n))
    f = module["matmul"]
    f(x, y, z)
    check(z.numpy(), a, b, ta, tb)
    return lambda: f(x, y, z)


def prepare_tilewright(threads: int, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    from schedules import schedule_matmul

    import tilewright as tw
    from tilewright import te

    tw.set_num_threads(threads)
    sch = tw.Schedule(te.create_prim_func(product(m, k, n, ta, tb), name="matmul"))
    schedule_matmul(sch, m, k, n, ta, tb, threads)
    return run(tw.build(sch, target="llvm"), m, k, n, ta, tb), {}


def prepare_tilewright_rules(threads: int, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    import tilewright as tw
    from tilewright import te

    tw.set_num_threads(threads)
    func = te.create_prim_func(product(m, k, n, ta, tb), name="matmul")
    return run(tw.compile(func, target=f"llvm -num-cores={threads}"), m, k, n, ta, tb), {}


def prepare_tilewright_seed(threads: int, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    """The schedule of the seed: split 32, 32, 4, reorder, vectorize, parallel."""
    import tilewright as tw
    from tilewright import te

    tw.set_num_threads(threads)
    args = product(m, k, n, ta, tb)
    c = args[-1]
    s = te.create_schedule(c.op)
    x, y = s[c].op.axis
    r = s[c].op.reduce_axis[0]
    xo, xi = s[c].split(x, factor=32)
    yo, yi = s[c].split(y, factor=32)
    ko, ki = s[c].split(r, factor=4)
    s[c].reorder(xo, yo, ko, xi, yi, ki)
    s[c].vectorize(yi)
    s[c].parallel(xo)
    return run(tw.build(s, list(args), "llvm", name="matmul"), m, k, n, ta, tb), {}


def prepare_tilewright_peak(threads: int) -> Any:
    from peak import prepare
    return prepare("float32", threads)


# ---- peers


def prepare_numpy(threads: int, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    a, b = operands(m, k, n, ta, tb)
    x, y, out = a.T if ta else a, b.T if tb else b, np.empty((m, n), "float32")
    return lambda: np.matmul(x, y, out=out), {}


def prepare_torch(threads: int, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    import torch
    torch.set_num_threads(threads)
    a, b = map(torch.from_numpy, operands(m, k, n, ta, tb))
    x, y, out = a.T if ta else a, b.T if tb else b, torch.empty(m, n)
    return lambda: torch.mm(x, y, out=out), {}


def prepare_jax(threads: int, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    import jax
    a, b = map(jax.numpy.asarray, operands(m, k, n, ta, tb))
    f = jax.jit(lambda a, b: (a.T if ta else a) @ (b.T if tb else b))
    return lambda: f(a, b).block_until_ready(), {}


def prepare_onnxruntime(threads: int, m: int, k: int, n: int, ta: bool, tb: bool) -> Any:
    import onnxruntime as ort
    from onnx import TensorProto, helper
    a, b = operands(m, k, n, ta, tb)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in (("a", a), ("b", b))]
    out = helper.make_tensor_value_info("c", TensorProto.FLOAT, (m, n))
    node = helper.make_node("Gemm", ["a", "b"], ["c"], transA=int(ta), transB=int(tb))
    model = helper.make_model(helper.make_graph([node], "g", values, [out]),
                              opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.SerializeToString(), options)
    feeds = {"a": a, "b": b}
    return lambda: session.run(None, feeds), {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", help="Python of an environment with benchmarks/peers.txt")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", nargs="+", default=["square", "mlp"])
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    options = parser.parse_args()
    cases = [c for c in SQUARE + MLP if c[0] in options.sizes or ("square" if c in SQUARE else "mlp") in options.sizes]
    for threads in options.threads:
        workers = harness.start("matmul", options.engines, threads, options.peers)
        peak_worker = harness.Worker(harness.sys.executable, "matmul", "tilewright_peak", threads)
        flops = peak_worker.ask(setup={})["operations"]
        print(f"\n{threads} thread(s), GFLOP/s; peak measured beside each case")
        print(f"{'case':20s} {'peak':>6s} " + " ".join(f"{w.engine.replace('tilewright', 'tw'):>11s}" for w in workers)
              + "   of peak   of best peer")
        for name, m, k, n, ta, tb in cases:
            before = min(peak_worker.ask(run=5)["seconds"])
            seconds = harness.interleave(workers, {"m": m, "k": k, "n": n, "ta": ta, "tb": tb}, options.rounds)
            peak = flops / min(before, min(peak_worker.ask(run=5)["seconds"]))
            speed = {e: 2.0 * m * n * k / s for e, s in seconds.items()}
            peers = [v for e, v in speed.items() if not e.startswith("tilewright")]
            ours = speed.get("tilewright", 0.0)
            cells = " ".join(f"{speed[w.engine] / 1e9:11.1f}" if w.engine in speed else f"{'-':>11s}" for w in workers)
            best = f"{ours / max(peers):8.2f}" if peers else "-"
            print(f"{name:20s} {peak / 1e9:6.0f} {cells}   {ours / peak:7.2f}   {best}", flush=True)
        harness.close([*workers, peak_worker])



if __name__ == "__main__":
    main()
