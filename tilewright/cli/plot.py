"""The demo's picture: loss and accuracy over the epochs, and where a training step spends its time."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.training import Epoch


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
    note = f"an epoch takes {best:.3f} s" + (f", {default_seconds:.3f} s with default kernels" if default_seconds else "")
    right.set(xlabel=f"microseconds in each kernel of a training step\n{note}", title="scheduled kernels")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
