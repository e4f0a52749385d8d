"""Wrong command lines: each ends with a message and a status that is not 0, without a traceback."""
from __future__ import annotations

from pathlib import Path

import numpy as np
from click.testing import CliRunner

from tilewright.cli.main import main

from .stored import folder
from .wrong_use import Exit, Section

SECTION = Section("The command `tilewright`")
wrong = SECTION.wrong


def tilewright(*args):
    """Run the command; a refusal is raised as Exit, anything else as it comes."""
    result = CliRunner().invoke(main, args)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code != 0:
        raise Exit(result.exit_code, result.output)


@wrong("an unknown command",
       r"train")
def unknown_command():
    tilewright("train")


@wrong("an unknown option",
       r"--epoch")
def unknown_option():
    tilewright("demo", "--epoch", "3")


@wrong("`--epochs 0`",
       r"--epochs")
def no_epochs():
    tilewright("demo", "--epochs", "0")


@wrong("`--epochs many`",
       r"--epochs")
def epochs_text():
    tilewright("demo", "--epochs", "many")


@wrong("`--seed -1`",
       r"--seed")
def negative_seed():
    tilewright("demo", "--seed", "-1")


@wrong("an unknown model",
       r"--model")
def unknown_model():
    tilewright("demo", "--model", "gpt")


@wrong("`--data` of a file that is not there",
       r"nowhere")
def data_missing():
    tilewright("demo", "--data", "nowhere.npz")


@wrong("`--data` of a file that is no .npz",
       r"Error: data\.npz is not an \.npz file of arrays, or damaged")
def data_text():
    with folder() as f:
        (f / "data.npz").write_text("hello")
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` of an empty file",
       r"Error: data\.npz is not an \.npz file of arrays, or damaged")
def data_empty():
    with folder() as f:
        (f / "data.npz").write_bytes(b"")
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` of a single array (.npy)",
       r"Error: data\.npz is not an \.npz file of arrays, or damaged")
def data_npy():
    with folder() as f:
        np.save(f / "data.npy", np.zeros((3000, 4)))
        Path("data.npy").rename("data.npz")
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` without the arrays",
       r"Error: data\.npz has images; expected train_images and train_labels, or x_train and y_train")
def data_names():
    with folder() as f:
        np.savez(f / "data.npz", images=np.zeros((3000, 4)))
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` with fewer labels than images",
       r"Error: data\.npz: images of shape \(3000, 4\) and labels of shape \(2999,\); at least 2000 images and a")
def data_counts():
    with folder() as f:
        np.savez(f / "data.npz", x_train=np.zeros((3000, 4)), y_train=np.zeros(2999))
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` with a label that is no digit",
       r"Error: data\.npz: the labels run from 12 to 12, expected 0 to 9")
def data_label():
    with folder() as f:
        np.savez(f / "data.npz", x_train=np.zeros((3000, 4)), y_train=np.full(3000, 12))
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` with labels that are no integers",
       r"Error: data\.npz: the labels are <U1, not numbers that fit")
def data_label_text():
    with folder() as f:
        np.savez(f / "data.npz", x_train=np.zeros((3000, 4)), y_train=np.full(3000, "a"))
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` with images of text",
       r"Error: data\.npz: the images are <U1, not numbers that fit")
def data_image_text():
    with folder() as f:
        np.savez(f / "data.npz", x_train=np.full((3000, 4), "a"), y_train=np.zeros(3000, int))
        tilewright("demo", "--data", "data.npz")


@wrong("`--data` whose labels are one number",
       r"Error: data\.npz: images of shape \(3000, 4\) and labels of shape \(\); at least 2000 images and a")
def data_scalar():
    with folder() as f:
        np.savez(f / "data.npz", x_train=np.zeros((3000, 4)), y_train=np.array(3))
        tilewright("demo", "--data", "data.npz")


@wrong("`--plot` to a folder that cannot be made",
       r"Error: the plot out/demo\.png cannot be written: File exists")
def plot_nowhere():
    with folder() as f:
        (f / "out").write_text("a file")
        tilewright("demo", "--epochs", "1", "--no-compare", "--model", "logreg", "--plot", "out/demo.png")


@wrong("`tilewright tvm` of a script that is not there",
       r"nowhere")
def script_missing():
    tilewright("tvm", "nowhere.py")


@wrong("`tilewright tvm` without a script",
       r"SCRIPT")
def no_script():
    tilewright("tvm")
