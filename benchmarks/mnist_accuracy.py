"""The MNIST runs beside the same runs in NumPy float64: loss of every epoch, final accuracy, five seeds.

    python benchmarks/mnist_accuracy.py --data mnist.npz [--seeds 5]

Training at this rate is chaotic: rounding the initial weights of the float64 run to float32 moves an epoch's loss by
up to several per cent, as storing weights in float32 does. So the kernels are compared in float64, and the float32
run stands beside NumPy's in float32 and beside the float64 run from rounded weights. Prints the losses of every
epoch, the final accuracies, the mean accuracy over the seeds and that of logistic regression, and exits 1 where a
bound is missed (float64 loss 1 %, final accuracy 0.003, mean 0.968, logistic regression 0.91).
"""
from __future__ import annotations

import argparse
import sys

import numpy as np

from tilewright.cli.data import Dataset, mnist, one_hot
from tilewright.cli.training import Epoch, Trainer, logistic_regression, mlp

BATCH, RATE, EPOCHS = 1000, 1e-3, 10


def reference(data: Dataset, seed: int, dtype: str = "float64", initial: str = "float64") -> tuple[list[float], float]:
    """(mean loss of the last batch of each epoch, final accuracy) of the perceptron in NumPy, computed in dtype,
    from weights rounded to `initial`."""
    random, sizes = np.random.RandomState(seed), (data.pixels, 256, 100, 10)
    w = [random.normal(0, 0.1, s).astype(initial).astype(dtype) for s in zip(sizes, sizes[1:])]
    b = [random.normal(0, 0.1, s).astype(initial).astype(dtype) for s in sizes[1:]]
    x, y = data.train_images.astype(dtype), one_hot(data.train_labels).astype(dtype)
    rate = np.dtype(dtype).type(RATE)
    losses = []
    for _ in range(EPOCHS):
        for k in range(0, len(x), BATCH):
            xs, ys = x[k:k + BATCH], y[k:k + BATCH]
            h1 = np.maximum(xs @ w[0] + b[0], 0)
            h2 = np.maximum(h1 @ w[1] + b[1], 0)
            z = h2 @ w[2] + b[2]
            z -= z.max(1, keepdims=True)
            s = np.exp(z)
            s /= s.sum(1, keepdims=True)
            d3 = s - ys
            d2 = (d3 @ w[2].T) * (h2 > 0)
            d1 = (d2 @ w[1].T) * (h1 > 0)
            for layer, (h, d) in enumerate(((xs, d1), (h1, d2), (h2, d3))):
                w[layer] -= rate * (h.T @ d)
                b[layer] -= rate * d.sum(0)
        losses.append(float(-(ys * np.log(s)).sum() / BATCH))
    h = data.valid_images.astype(dtype)
    for layer in range(3):
        h = h @ w[layer] + b[layer]
        if layer < 2:
            h = np.maximum(h, 0)
    return losses, float((h.argmax(1) == data.valid_labels).mean())


def compare(data: Dataset, float32: list[Epoch]) -> bool:
    """Print the runs of seed 0 side by side; True when the float64 losses and the final accuracies agree."""
    float64 = list(Trainer(mlp(data.pixels, 0, dtype="float64"), data, BATCH, RATE).epochs(EPOCHS))
    losses, accuracy = reference(data, 0)
    rounded, _ = reference(data, 0, initial="float32")
    single, single_accuracy = reference(data, 0, "float32", "float32")
    print("loss per epoch    float64: tilewright   numpy   difference |  float32: tilewright   numpy | "
          "numpy float64 from float32 weights")
    worst = 0.0
    for a, want, b, c, d in zip(float64, losses, float32, single, rounded):
        worst = max(worst, abs(a.loss - want) / want)
        print(f"  {a.number:2d}             {a.loss:18.6f} {want:10.6f}   {abs(a.loss - want) / want:.1e} "
              f"| {b.loss:18.6f} {c:10.6f} | {d:10.6f}")
    print(f"final accuracy: float64 {float64[-1].accuracy:.4f}, numpy {accuracy:.4f}; "
          f"float32 {float32[-1].accuracy:.4f}, numpy {single_accuracy:.4f}")
    gaps = [abs(float64[-1].accuracy - accuracy), abs(float32[-1].accuracy - accuracy)]
    return worst <= 0.01 and max(gaps) <= 0.003


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    data = mnist(options.data)
    ok, accuracies = True, []
    for seed in range(options.seeds):
        history = list(Trainer(mlp(data.pixels, seed), data, BATCH, RATE).epochs(EPOCHS))
        accuracies.append(history[-1].accuracy)
        if seed == 0:
            ok &= compare(data, history)
    print(f"accuracy over {options.seeds} seeds: {', '.join(f'{a:.4f}' for a in accuracies)}; "
          f"mean {np.mean(accuracies):.4f}")
    logistic = list(Trainer(logistic_regression(data.pixels), data, BATCH, RATE).epochs(EPOCHS))[-1].accuracy
    print(f"logistic regression from zeros: {logistic:.4f}")
    ok &= bool(np.mean(accuracies) >= 0.968) and logistic >= 0.91
    print("all bounds hold" if ok else "a bound is missed")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
