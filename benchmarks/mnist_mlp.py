"""An epoch of the MNIST perceptron 784-256-100-10: Tilewright beside NumPy, PyTorch and JAX, in one run.

    python benchmarks/mnist_mlp.py --data mnist.npz --peers /tmp/peers/bin/python [--batches 1000 100]

Every engine trains on the first 50,000 images in order with SGD (rate 1e-3 on the summed softmax cross-entropy,
batch 1000; 1e-3 as well at batch 100) in float32. Prints seconds per epoch (medians of interleaved rounds), the
ratios, and the fraction of the FMA peak measured in the same run. Without --data random images are used.
"""
from __future__ import annotations

import argparse
from typing import Any

import harness
import numpy as np

SIZES = (784, 256, 100, 10)
RATE = 1e-3
ENGINES = ["tilewright", "numpy", "torch", "torch_compile", "jax", "jax_scan"]


def load(data: str | None) -> tuple[np.ndarray, np.ndarray]:
    """(f32[50000, 784] images, f32[50000, 10] one-hot labels)."""
    if data:
        with np.load(data) as file:
            images, labels = file["x_train"][:50_000], file["y_train"][:50_000]
        x = images.reshape(len(images), -1).astype("float32") / np.float32(255)
    else:
        random = np.random.RandomState(1)
        x, labels = random.rand(50_000, SIZES[0]).astype("float32"), random.randint(0, 10, 50_000)
    return np.ascontiguousarray(x), np.eye(10, dtype="float32")[labels]


def weights() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Initial weights and biases, N(0, 0.1**2) from RandomState(0), drawn W1 W2 W3 b1 b2 b3."""
    random = np.random.RandomState(0)
    w = [random.normal(0, 0.1, s).astype("float32") for s in zip(SIZES, SIZES[1:])]
    return w, [random.normal(0, 0.1, s).astype("float32") for s in SIZES[1:]]


def flops_per_epoch(images: int) -> float:
    """Multiply-adds of the products of forward and backward pass, twice; no gradient of the images."""
    layers = [a * b for a, b in zip(SIZES, SIZES[1:])]
    return 2.0 * images * (3 * sum(layers) - layers[0])


def prepare_tilewright(threads: int, batch: int, data: str | None) -> Any:
    import tilewright as tw
    from tilewright.cli.data import Dataset
    from tilewright.cli.training import Trainer, mlp

    tw.set_num_threads(threads)
    x, y = load(data)
    trainer = Trainer(mlp(SIZES[0]), Dataset("MNIST", x, y.argmax(1), x[:1000], y[:1000].argmax(1)), batch, RATE)
    compiled = trainer.compile()
    return trainer.train_epoch, {"compile_seconds": compiled}


def prepare_numpy(threads: int, batch: int, data: str | None) -> Any:
    x, y = load(data)
    w, b = weights()

    def epoch() -> None:
        for k in range(0, len(x), batch):
            xs, ys = x[k:k + batch], y[k:k + batch]
            h1 = np.maximum(xs @ w[0] + b[0], 0)
            h2 = np.maximum(h1 @ w[1] + b[1], 0)
            z = h2 @ w[2] + b[2]
            e = np.exp(z - z.max(1, keepdims=True))
            d3 = e / e.sum(1, keepdims=True) - ys
            d2 = (d3 @ w[2].T) * (h2 > 0)
            d1 = (d2 @ w[1].T) * (h1 > 0)
            for layer, (h, d) in enumerate(((xs, d1), (h1, d2), (h2, d3))):
                w[layer] -= np.float32(RATE) * (h.T @ d)
                b[layer] -= np.float32(RATE) * d.sum(0)
    return epoch, {}


def torch_step(threads: int) -> Any:
    import torch
    torch.set_num_threads(threads)
    w, b = weights()
    parameters = [torch.from_numpy(a).requires_grad_() for a in (*w, *b)]
    optimizer = torch.optim.SGD(parameters, lr=RATE)

    def forward(xs: Any, ys: Any) -> Any:
        h = torch.relu(torch.addmm(parameters[3], xs, parameters[0]))
        h = torch.relu(torch.addmm(parameters[4], h, parameters[1]))
        z = torch.addmm(parameters[5], h, parameters[2])
        return torch.nn.functional.cross_entropy(z, ys, reduction="sum")
    return torch, forward, optimizer


def torch_epoch(torch: Any, forward: Any, optimizer: Any, batch: int, data: str | None) -> Any:
    x, y = load(data)
    xt, yt = torch.from_numpy(x), torch.from_numpy(y.argmax(1))

    def epoch() -> None:
        for k in range(0, len(x), batch):
            optimizer.zero_grad(set_to_none=True)
            forward(xt[k:k + batch], yt[k:k + batch]).backward()
            optimizer.step()
    return epoch


def prepare_torch(threads: int, batch: int, data: str | None) -> Any:
    torch, forward, optimizer = torch_step(threads)
    return torch_epoch(torch, forward, optimizer, batch, data), {}


def prepare_torch_compile(threads: int, batch: int, data: str | None) -> Any:
    torch, forward, optimizer = torch_step(threads)
    return torch_epoch(torch, torch.compile(forward), optimizer, batch, data), {}


def jax_parts(batch: int, data: str | None) -> Any:
    import jax
    jnp = jax.numpy
    x, y = load(data)
    w, b = weights()
    parameters = [jnp.asarray(a) for a in (*w, *b)]

    def loss(p: Any, xs: Any, ys: Any) -> Any:
        h = jax.nn.relu(xs @ p[0] + p[3])
        h = jax.nn.relu(h @ p[1] + p[4])
        z = h @ p[2] + p[5]
        return -jnp.sum(ys * jax.nn.log_softmax(z))

    def step(p: Any, xs: Any, ys: Any) -> Any:
        value, g = jax.value_and_grad(loss)(p, xs, ys)
        return [a - RATE * d for a, d in zip(p, g)], value
    return jax, step, parameters, x, y


def prepare_jax(threads: int, batch: int, data: str | None) -> Any:
    """One jit per step, the parameters donated."""
    jax, step, parameters, x, y = jax_parts(batch, data)
    compiled = jax.jit(step, donate_argnums=0)
    batches = [(jax.numpy.asarray(x[k:k + batch]), jax.numpy.asarray(y[k:k + batch])) for k in range(0, len(x), batch)]
    state = {"p": parameters}

    def epoch() -> None:
        value = None
        for xs, ys in batches:
            state["p"], value = compiled(state["p"], xs, ys)
        value.block_until_ready()
    return epoch, {}


def prepare_jax_scan(threads: int, batch: int, data: str | None) -> Any:
    """The whole epoch as one scan: no dispatch between steps."""
    jax, step, parameters, x, y = jax_parts(batch, data)
    xs = jax.numpy.asarray(x.reshape(-1, batch, x.shape[1]))
    ys = jax.numpy.asarray(y.reshape(-1, batch, y.shape[1]))
    compiled = jax.jit(lambda p, xs, ys: jax.lax.scan(lambda p, b: step(p, *b), p, (xs, ys)), donate_argnums=0)
    state = {"p": parameters}

    def epoch() -> None:
        state["p"], values = compiled(state["p"], xs, ys)
        values.block_until_ready()
    return epoch, {}


def prepare_tilewright_peak(threads: int) -> Any:
    from peak import prepare
    return prepare("float32", threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="MNIST as .npz with x_train and y_train")
    parser.add_argument("--peers", help="Python of an environment with benchmarks/peers.txt")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[1000, 100])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    options = parser.parse_args()
    peak_worker = harness.Worker(harness.sys.executable, "mnist_mlp", "tilewright_peak", options.threads)
    peak_flops = peak_worker.ask(setup={})["operations"]
    for batch in options.batches:
        workers = harness.start("mnist_mlp", options.engines, options.threads, options.peers)
        before = min(peak_worker.ask(run=5)["seconds"])
        seconds = harness.interleave(workers, {"batch": batch, "data": options.data}, options.rounds)
        peak = peak_flops / min(before, min(peak_worker.ask(run=5)["seconds"]))
        print(f"\nbatch {batch}, {options.threads} thread(s); FMA peak {peak / 1e9:.0f} GFLOP/s")
        ours = seconds.get("tilewright")
        for engine, s in seconds.items():
            ratio = f"   tilewright / {engine}: {ours / s:.2f}" if ours and engine != "tilewright" else ""
            fraction = flops_per_epoch(50_000) / s / peak
            print(f"  {engine:14s} {s:7.3f} s per epoch   {fraction:5.2f} of peak{ratio}", flush=True)
        harness.close(workers)
    harness.close([peak_worker])


if __name__ == "__main__":
    main()
