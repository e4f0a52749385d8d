"""The demo's picture: loss and accuracy over the epochs, and where a training step spends its time."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from tilewright.cli.training import Epoch

SUFFIXES = (".png", ".svg", ".pdf")


def check_place(path: Path) -> None:
    """Make the folder of the plot. Raises ClickException where it cannot be written, before any work is done."""
    if path.suffix not in SUFFIXES:
        raise click.ClickException(f"the plot {path} does not end in {', '.join(SUFFIXES)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"the plot {path} cannot be written: {error.strerror}") from None
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.ClickException(f"the plot {path} cannot be written: permission denied")


def write_plot(path: Path, title: str, history: Sequence[Epoch], times: Sequence[tuple[str, float]],
               default_seconds: float | None) -> bool:
    """Write the plot to path (PNG, SVG or PDF by its suffix); False when matplotlib is not installed."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ModuleNotFoundError:
        return False
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.5))
    epochs = [e.number for e in history]
    left.plot(epochs, [e.loss for e in history], "o-", color="tab:blue")
    left.set(xlabel="epoch", ylabel="loss (mean over the last batch)", title=f"{title}: training")
    accuracy = left.twinx()
    accuracy.plot(epochs, [e.accuracy for e in history], "s--", color="tab:orange")
    accuracy.set_ylabel("validation accuracy")
    names = [f"{k + 1} {name}" for k, (name, _) in enumerate(times)]
    right.barh(names, [1e6 * t for _, t in times], color="tab:green")
    right.invert_yaxis()
    right.tick_params(axis="y", labelsize=7)
    best = min(e.seconds for e in history)
    default = f", {default_seconds:.3f} s with default kernels" if default_seconds else ""
    note = f"an epoch takes {best:.3f} s{default}"
    right.set(xlabel=f"microseconds in each kernel of a training step\n{note}", title="scheduled kernels")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
