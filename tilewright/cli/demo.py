"""`tilewright demo`: train a network on kernels compiled from tensor expressions, and show what happens."""
from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tilewright import te
from tilewright.cli.data import Dataset, digits, mnist
from tilewright.cli.training import Epoch, Model, Trainer, logistic_regression, mlp
from tilewright.driver import lower, target
from tilewright.rules import apply_rules
from tilewright.support.errors import TilewrightError
from tilewright.te import create_prim_func

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


BATCH, RATE = {"MNIST": 1000, "digits": 100}, {"MNIST": 1e-3, "digits": 2e-3}


@click.command()
@click.option("--data", type=click.Path(exists=True, dir_okay=False),
              help="MNIST as .npz; default: scikit-learn's digits")
@click.option("--model", type=click.Choice(["mlp", "logreg"]), default="mlp", show_default=True)
@click.option("--epochs", type=click.IntRange(1, 10_000), default=10, show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="of the initial weights")
@click.option("--plot", "plot_path", type=click.Path(dir_okay=False), default="out/demo.png", show_default=True,
              help="where the plot of loss and kernel times goes")
@click.option("--compare/--no-compare", default=True, show_default=True,
              help="also time one epoch with the default kernels")
def demo(data: str | None, model: str, epochs: int, seed: int, plot_path: str, compare: bool) -> None:
    """Train a network on handwritten digits with kernels compiled from tensor expressions."""
    console = Console(highlight=False, soft_wrap=True)
    check_place(Path(plot_path))
    try:
        run(console, mnist(data) if data else digits(), model, epochs, seed, Path(plot_path), compare)
    except TilewrightError as why:
        raise click.ClickException(str(why)) from None


def run(console: Console, data: Dataset, model: str, epochs: int, seed: int, plot_path: Path, compare: bool) -> None:
    """The whole demonstration, on the console."""
    batch = BATCH[data.name]
    console.print(f"{data.name}: {len(data.train_images)} images train, {len(data.valid_images)} validate, "
                  f"{data.pixels} pixels; batches of {batch}")
    show_schedule(console, batch, data.pixels, 256 if model == "mlp" else 10)

    def build() -> Model:
        return mlp(data.pixels, seed) if model == "mlp" else logistic_regression(data.pixels)

    default_seconds = None
    if compare:
        plain = Trainer(build(), data, batch, RATE[data.name], schedule="default")
        plain.compile()
        _, default_seconds = plain.train_epoch()
    trainer = Trainer(build(), data, batch, RATE[data.name])
    compiled = trainer.compile()
    show_plan(console, trainer, compiled)
    history = train(console, trainer, epochs)
    best = min(e.seconds for e in history)
    if default_seconds is not None:
        console.print(f"\nepoch with default kernels {default_seconds:.3f} s, with scheduled kernels {best:.3f} s: "
                      f"{default_seconds / best:.1f} times faster")
    else:
        console.print(f"\nepoch with scheduled kernels {best:.3f} s")
    times = kernel_times(trainer)
    if write_plot(plot_path, data.name, history, times, default_seconds):
        console.print(f"plot: {plot_path}", markup=False)
    else:
        console.print("no plot: matplotlib is not installed (pip install 'tilewright[demo]')")


def show_schedule(console: Console, m: int, k: int, n: int) -> None:
    """The loops of the first layer's matrix product, as written and as the built-in rule schedules them."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    func = create_prim_func([a, b, c], name="matmul")
    for title, f in (("as written", func), ("as scheduled", apply_rules(func, target()).func)):
        console.print(f"\n--- the loops of C[i, j] = sum_k A[i, k] * B[k, j], {title}", markup=False)
        console.print(str(lower(f, simple_mode=True)["matmul"]), markup=False)


def show_plan(console: Console, trainer: Trainer, seconds: float) -> None:
    """The memory plan of a training step."""
    step = trainer.step.step
    assert step is not None
    plan = step.memory
    console.print(f"\na training step: {len(step.kernels)} kernels, compiled in {seconds:.2f} s")
    console.print(f"memory for its values: {plan.planned / 1e3:.0f} kB planned, {plan.unshared / 1e3:.0f} kB without "
                  f"reuse, {plan.lower_bound / 1e3:.0f} kB is the least possible\n")


def train(console: Console, trainer: Trainer, epochs: int) -> list[Epoch]:
    """Run the epochs: a progress bar on a terminal, one line per epoch everywhere."""
    history: list[Epoch] = []
    progress = Progress(TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                        console=console, transient=True, disable=not console.is_terminal)
    with progress:
        task = progress.add_task("epochs", total=epochs)
        for e in trainer.epochs(epochs):
            history.append(e)
            progress.advance(task)
            console.print(f"epoch {e.number:3d}   loss {e.loss:.6f}   validation accuracy {e.accuracy:.4f}   "
                          f"{e.seconds:.3f} s")
    return history


def kernel_times(trainer: Trainer, repeats: int = 5) -> list[tuple[str, float]]:
    """(name, seconds) of every kernel of a training step, each timed by itself: the best of some runs."""
    step = trainer.step.step
    assert step is not None
    times = []
    for k, call in enumerate(step.calls()):
        call()
        best = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
        times.append((step.kernels[k].name.rpartition("_")[0], best))
    return times
