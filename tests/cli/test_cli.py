"""The command: help, the demonstration in a pipe and on a terminal, wrong data, missing extras."""
import os
import re
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner

import tilewright
from tilewright.cli.data import Dataset, digits, mnist, one_hot
from tilewright.cli.demo import write_plot
from tilewright.cli.main import main
from tilewright.cli.training import Epoch, Trainer, logistic_regression, mlp

COMMAND = [sys.executable, "-m", "tilewright.cli.main"]


def invoke(*args):
    return CliRunner().invoke(main, list(args))


# ---- help

@pytest.mark.parametrize("args, words", [
    (["--help"], ["demo", "tvm"]), (["-h"], ["demo", "tvm"]), (["demo", "--help"], ["--data", "--model", "--epochs"]),
    (["tvm", "--help"], ["SCRIPT", "import tvm"])])
def test_help(args, words):
    done = invoke(*args)
    assert done.exit_code == 0 and all(w in done.output for w in words)


def test_version():
    assert tilewright.__version__ in invoke("--version").output


@pytest.mark.parametrize("args", [
    ["dmeo"], ["demo", "--epochs", "0"], ["demo", "--model", "cnn"], ["demo", "--seed", "-1"],
    ["demo", "--data", "none.npz"], ["tvm"], ["tvm", "none.py"]])
def test_wrong_arguments(args):
    done = invoke(*args)
    assert done.exit_code == 2 and "Usage" in done.output


# ---- the demonstration

def without_times(text):
    return re.sub(r"\d+\.\d+", "#", text)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    return {**os.environ, "TILEWRIGHT_CACHE_DIR": cache, "COLUMNS": "100", "TERM": "xterm"}


def test_the_demo_in_a_pipe(tmp_path, environment):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    done = subprocess.run([*COMMAND, "demo", "--epochs", "2"], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "\x1b" not in done.stdout and "\r" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "digits: 1500 images train, 297 validate, 64 pixels; batches of 100"
    assert "for i in range(100):" in done.stdout and "T.vectorized" in done.stdout and "C_local" in done.stdout
    epochs = [line for line in lines if line.startswith("epoch  ")]
    assert [without_times(e) for e in epochs] == [
        f"epoch   {k}   loss #   validation accuracy #   # s" for k in (1, 2)]
    losses = [float(e.split()[3]) for e in epochs]
    assert losses[1] < losses[0] < 2.4 and float(epochs[1].split()[6]) > 0.7
    assert re.search(r"a training step: \d+ kernels", done.stdout)
    planned, unshared, least = map(float, re.findall(r"(\d+) kB", done.stdout))
    assert least <= planned < unshared
    assert re.search(r"default kernels \d\.\d+ s, .* \d\.\d+ s: \d+\.\d times faster", done.stdout)
    assert lines[-1] == "plot: out/demo.png" and (tmp_path / "out/demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_the_demo_on_a_terminal(tmp_path, environment):
    pytest.importorskip("sklearn")
    master, slave = os.openpty()
    arguments = ["--epochs", "2", "--model", "logreg", "--no-compare", "--plot", "p.svg"]
    process = subprocess.Popen([*COMMAND, "demo", *arguments], cwd=tmp_path, env=environment,
                               stdout=slave, stderr=slave, stdin=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:                                # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert process.wait(60) == 0, shown.decode()
    text = shown.decode()
    assert "\x1b[" in text and "training" in text and "0/2" in text
    assert len(re.findall(r"epoch +\d +loss", text)) == 2 and "with scheduled kernels" in text


def test_the_demo_without_its_extras(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    done = invoke("demo")
    assert done.exit_code == 1 and "pip install 'tilewright[demo]'" in done.output and "--data FILE.npz" in done.output
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    history = [Epoch(1, 0.5, 0.9, 0.1)]
    assert not write_plot(tmp_path / "x.png", "digits", history, [("matmul", 1e-6)], None)
    assert not (tmp_path / "x.png").exists()


# ---- data

def save(path, images, labels, **names):
    np.savez(path, **{names.get("x", "x_train"): images, names.get("y", "y_train"): labels})
    return str(path)


def pictures(n=2400, side=4):
    """Images whose label is their brightest column."""
    random = np.random.RandomState(0)
    labels = random.randint(0, side, n)
    images = random.randint(0, 100, (n, side, side)).astype("uint8")
    images[np.arange(n), :, labels] += 150
    return images, labels.astype("uint8")


@pytest.mark.parametrize("names", [{}, {"x": "train_images", "y": "train_labels"}])
def test_images_are_read(tmp_path, names):
    images, labels = pictures()
    data = mnist(save(tmp_path / "a.npz", images, labels, **names))
    assert (data.name, data.pixels, len(data.train_images), len(data.valid_images)) == ("MNIST", 16, 2000, 400)
    flat = images[:2000].reshape(2000, 16).astype("float32")
    np.testing.assert_array_equal(data.train_images, flat / np.float32(255))
    np.testing.assert_array_equal(data.valid_labels, labels[2000:])


def test_the_split_of_mnist(tmp_path):
    images, labels = np.zeros((60_000, 2, 2), "uint8"), np.arange(60_000) % 10
    data = mnist(save(tmp_path / "a.npz", images, labels))
    assert (len(data.train_images), len(data.valid_images)) == (50_000, 10_000)
    np.testing.assert_array_equal(data.valid_labels, labels[50_000:])


def wrong_files(tmp_path):
    images, labels = pictures()
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "names.npz", images=images, labels=labels)
    np.savez(tmp_path / "objects.npz", x_train=np.array([None] * 3, dtype=object), y_train=labels)
    np.save(tmp_path / "single.npy", images)
    good = save(tmp_path / "good.npz", images, labels)
    (tmp_path / "cut.npz").write_bytes(open(good, "rb").read()[:-3000])
    save(tmp_path / "few.npz", images[:100], labels[:100])
    save(tmp_path / "lengths.npz", images, labels[:-1])
    save(tmp_path / "flat.npz", np.zeros(2400), labels)
    save(tmp_path / "letters.npz", images, np.array(["a"] * 2400))
    save(tmp_path / "classes.npz", images, labels + 10)
    save(tmp_path / "negative.npz", images, labels.astype("int64") - 1)


@pytest.mark.parametrize("name, words", [
    ("text", "is not an .npz file"), ("empty", "is not an .npz file"), ("cut", "is not an .npz file"),
    ("names", "has images, labels; expected"), ("objects", "is not an .npz file"), ("few", "at least"),
    ("lengths", "at least"), ("flat", "at least"), ("letters", "labels are <U1"), ("classes", "expected 0 to 9"),
    ("negative", "expected 0 to 9")])
def test_wrong_data(tmp_path, name, words):
    wrong_files(tmp_path)
    with pytest.raises(click.ClickException) as caught:
        mnist(str(tmp_path / f"{name}.npz"))
    assert words in caught.value.message and name in caught.value.message


def test_wrong_data_ends_the_command_without_a_traceback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong_files(tmp_path)
    for name in ("text.npz", "single.npy"):
        done = invoke("demo", "--data", name)
        assert done.exit_code == 1 and done.output.startswith(f"Error: {name}")
        assert isinstance(done.exception, SystemExit)


def test_a_plot_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for place in ("file/demo.png", "demo.docx"):
        done = invoke("demo", "--plot", place)
        assert done.exit_code == 1 and place in done.output and "epoch" not in done.output


def test_one_hot():
    np.testing.assert_array_equal(one_hot(np.array([2, 0]), 3), [[0, 0, 1], [1, 0, 0]])


def test_digits_are_the_same_every_time():
    pytest.importorskip("sklearn")
    a, b = digits(), digits()
    np.testing.assert_array_equal(a.train_images, b.train_images)
    assert a.pixels == 64 and a.train_images.max() == 1.0 and a.train_images.dtype == "float32"


# ---- training

def brightest():
    images, labels = pictures()
    flat = images.reshape(len(images), -1).astype("float32") / np.float32(255)
    return Dataset("digits", flat[:2000], labels[:2000], flat[2000:], labels[2000:])


@pytest.mark.parametrize("schedule", ["rules", "default"])
def test_logistic_regression_learns(schedule):
    trainer = Trainer(logistic_regression(16), brightest(), 100, 1e-2, schedule=schedule)
    history = list(trainer.epochs(3))
    assert [e.number for e in history] == [1, 2, 3] and history[-1].loss < history[0].loss
    assert history[-1].accuracy > 0.95


def test_a_seed_decides_the_weights_and_the_run():
    runs = [list(Trainer(mlp(16, seed, hidden=(8, 8)), brightest(), 100, 1e-3).epochs(1))[0] for seed in (0, 0, 1)]
    assert runs[0].loss == runs[1].loss != runs[2].loss
    drawn = np.random.RandomState(3).normal(0, 0.1, (16, 8)).astype("float32")
    np.testing.assert_array_equal(mlp(16, 3, hidden=(8, 8)).parameters[0].data.numpy(), drawn)


def test_a_batch_larger_than_the_data_is_all_of_it():
    trainer = Trainer(logistic_regression(16), brightest(), 10_000, 1e-3)
    assert trainer.batch == 2000 and trainer.train_epoch()[0] > 0
