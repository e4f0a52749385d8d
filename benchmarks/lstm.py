"""An LSTM over many steps, forward: te.scan with a schedule of public primitives, beside PyTorch.

    python benchmarks/lstm.py --peers /tmp/peers/bin/python [--threads 2] [--rounds 9]

Prints milliseconds (medians of interleaved rounds), the fraction of the FMA peak measured in the same run, and the
ratios to PyTorch's `nn.LSTM` under no_grad and with gradients enabled.
"""
from __future__ import annotations

import argparse
from typing import Any

import harness
import numpy as np

STEPS, BATCH, WIDTH = 128, 32, 256
ENGINES = ["tilewright", "torch", "torch_grad"]
CHUNK = 8                       # steps whose input projection is computed together
LANES = 16
ROWS = 4                        # of the batch in one register tile: 4 rows x 4 gates x 16 lanes


def weights(steps: int, batch: int, width: int) -> list[np.ndarray]:
    """x, W, U, bias, h0, c0 in PyTorch's layout (one bias: the sum of its two)."""
    random = np.random.RandomState(0)
    shapes = [(steps, batch, width), (4 * width, width), (4 * width, width), (4 * width,), (batch, width),
              (batch, width)]
    return [random.uniform(-0.1, 0.1, s).astype("float32") for s in shapes]


def reference(x: Any, w: Any, u: Any, bias: Any, h: Any, c: Any) -> tuple[np.ndarray, np.ndarray]:
    """(all h, last c) in float64."""
    x, w, u, bias, h, c = (a.astype("float64") for a in (x, w, u, bias, h, c))
    out = []
    for step in x:
        i, f, g, o = np.split(step @ w.T + h @ u.T + bias, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out.append(h)
    return np.array(out), c


def cell(steps: int, batch: int, width: int) -> list[Any]:
    """[x, W, U, bias, h0, c0, h, c] as tensor expressions; h[0] and c[0] are the given ones."""
    from tilewright import te
    x = te.placeholder((steps, batch, width), name="X")
    w, u = te.placeholder((4 * width, width), name="W"), te.placeholder((4 * width, width), name="U")
    bias = te.placeholder((4 * width,), name="bias")
    h0, c0 = te.placeholder((batch, width), name="h0"), te.placeholder((batch, width), name="c0")
    shape = (steps + 1, batch, width)
    sh, sc = te.placeholder(shape, name="SH"), te.placeholder(shape, name="SC")
    k, r = te.reduce_axis((0, width), name="k"), te.reduce_axis((0, width), name="r")
    xp = te.compute((steps, batch, 4, width), lambda t, b, g, j: te.sum(x[t, b, k] * w[g * width + j, k], axis=k),
                    name="xp")
    hp = te.compute((steps + 1, batch, 4, width),
                    lambda t, b, g, j: te.sum(sh[t - 1, b, r] * u[g * width + j, r], axis=r), name="hp")

    def update(t: Any, b: Any, j: Any) -> tuple[Any, Any]:
        i, f, g, o = (xp[t - 1, b, n, j] + hp[t, b, n, j] + bias[n * width + j] for n in range(4))
        c = te.sigmoid(f) * sc[t - 1, b, j] + te.sigmoid(i) * te.tanh(g)
        return te.sigmoid(o) * te.tanh(c), c
    h, c = te.compute(shape, update, name="hc")
    first = [te.compute((1, batch, width), lambda t, b, j, s=s: s[b, j], name=s.name + "_first") for s in (h0, c0)]
    return [x, w, u, bias, h0, c0, *te.scan(first, [h, c], [sh, sc], inputs=[x], name="lstm")]


def schedule(sch: Any, width: int, threads: int) -> None:
    """Each thread keeps to its own hidden units, with the weights of their four gates in its cache, packed."""
    packs = []
    for product, weight in (("xp", "W"), ("hp", "U")):
        pack = sch.cache_read(sch.get_block(product), weight, "global")
        sch.transform_layout(pack, ("write", 0), lambda j, k: (j % width // LANES, k, j // width, j % LANES))
        packs.append(pack)
    scan, b, j = sch.get_loops(sch.get_block("hc"))
    chunk, step = sch.split(scan, [None, CHUNK])
    owner, panel, lane = sch.split(j, [threads, None, LANES])
    rows, row = sch.split(b, [None, ROWS])
    sch.reorder(owner, panel, rows, row, lane)
    tile(sch, "hp", rows)
    sch.unroll(row)
    sch.vectorize(lane)
    sch.parallel(owner)
    project(sch, chunk, threads)
    for pack in packs:
        copy(sch, pack, threads)


def tile(sch: Any, name: str, at: Any) -> None:
    """Compute ROWS x 4 x LANES sums in registers at a loop."""
    block = sch.get_block(name)
    if name == "hp":
        sch.set_scope(block, 0, "local")
    sch.compute_at(block, at, preserve_unit_loops=True)
    *_, t, row, gate, lane, k = sch.get_loops(block)
    sch.reorder(k, t, row, gate, lane)
    sch.unroll(row)
    sch.unroll(gate)
    sch.vectorize(lane)
    sch.decompose_reduction(block, k)


def project(sch: Any, chunk: Any, threads: int) -> None:
    """The input projection of a chunk of steps before these steps, tile by tile."""
    result = sch.cache_write(sch.get_block("xp"), 0, "local")
    sch.compute_at(result, chunk, preserve_unit_loops=True)
    t, b, gate, j = sch.get_loops(result)[-4:]
    owner, panel, lane = sch.split(j, [threads, None, LANES])
    rows, row = sch.split(b, [None, ROWS])
    sch.reorder(owner, panel, t, rows, row, gate, lane)
    tile(sch, "xp", rows)
    sch.unroll(row)
    sch.unroll(gate)
    sch.vectorize(lane)
    sch.parallel(owner)


def copy(sch: Any, pack: Any, threads: int) -> None:
    """Pack weights on all threads, gate by gate of a panel: LANES rows, a cache line of each at a time."""
    unit, depth = sch.get_loops(pack)
    gate, owner, panel, lane = sch.split(unit, [4, threads, None, LANES])
    depth, line = sch.split(depth, [None, LANES])
    sch.reorder(owner, panel, gate, depth, lane, line)
    sch.unroll(lane)
    sch.vectorize(line)
    sch.parallel(owner)


def prepare_tilewright(threads: int, steps: int, batch: int, width: int) -> Any:
    import tilewright as tw
    from tilewright import te

    tw.set_num_threads(threads)
    sch = tw.Schedule(te.create_prim_func(cell(steps, batch, width), name="lstm"))
    schedule(sch, width, threads)
    f = tw.build(sch, target="llvm")["lstm"]
    inputs = weights(steps, batch, width)
    args = [tw.nd.array(a) for a in inputs]
    h, c = (tw.nd.empty((steps + 1, batch, width)) for _ in range(2))
    f(*args, h, c)
    want_h, want_c = reference(*inputs)
    np.testing.assert_allclose(h.numpy()[1:], want_h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c.numpy()[-1], want_c, rtol=1e-4, atol=1e-5)
    return lambda: f(*args, h, c), {}


def prepare_tilewright_peak(threads: int) -> Any:
    from peak import prepare
    return prepare("float32", threads)


def prepare_torch(threads: int, steps: int, batch: int, width: int, grad: bool = False) -> Any:
    import torch
    torch.set_num_threads(threads)
    x, w, u, bias, h0, c0 = map(torch.from_numpy, weights(steps, batch, width))
    net = torch.nn.LSTM(width, width)
    with torch.no_grad():
        net.weight_ih_l0.copy_(w)
        net.weight_hh_l0.copy_(u)
        net.bias_ih_l0.copy_(bias)
        net.bias_hh_l0.zero_()
    state = (h0[None], c0[None])

    def call() -> Any:
        with torch.set_grad_enabled(grad):
            return net(x, state)
    h, (_, c) = call()
    want_h, want_c = reference(*weights(steps, batch, width))
    np.testing.assert_allclose(h.detach().numpy(), want_h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c.detach().numpy()[0], want_c, rtol=1e-4, atol=1e-5)
    return call, {}


def prepare_torch_grad(threads: int, steps: int, batch: int, width: int) -> Any:
    return prepare_torch(threads, steps, batch, width, grad=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="Python that has PyTorch")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--width", type=int, default=WIDTH)
    options = parser.parse_args()
    for threads in options.threads:
        measure(options, threads)


def measure(options: Any, threads: int) -> None:
    """Print one line: milliseconds of every engine, the share of the peak and the ratios to PyTorch."""
    workers = harness.start("lstm", ENGINES, threads, options.peers)
    peak_worker = harness.Worker(harness.sys.executable, "lstm", "tilewright_peak", threads)
    flops = peak_worker.ask(setup={})["operations"]
    before = min(peak_worker.ask(run=5)["seconds"])
    case = {"steps": options.steps, "batch": options.batch, "width": options.width}
    seconds = harness.interleave(workers, case, options.rounds, 0.3)
    peak = flops / min(before, min(peak_worker.ask(run=5)["seconds"]))
    harness.close([*workers, peak_worker])
    work = 2.0 * options.steps * options.batch * 4 * options.width * 2 * options.width
    ours = seconds["tilewright"]
    times = ", ".join(f"{name} {s * 1e3:.2f} ms" for name, s in seconds.items())
    ratios = ", ".join(f"{ours / seconds[e]:.2f} of {e}" for e in ENGINES[1:] if e in seconds)
    print(f"{threads} thread(s): {times}; products at {work / ours / 1e9:.0f} GFLOP/s, {work / ours / peak:.2f} of the "
          f"peak {peak / 1e9:.0f}; {ratios}", flush=True)


if __name__ == "__main__":
    main()
