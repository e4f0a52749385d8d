"""The demo's data: scikit-learn's handwritten digits, or a file of MNIST images."""
from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

_IMAGES, _LABELS = ("train_images", "x_train"), ("train_labels", "y_train")


@dataclass(frozen=True)
class Dataset:
    """images: f32[n, pixels] from 0 to 1; labels: int[n]; the first part trains, the second validates."""
    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    valid_images: np.ndarray
    valid_labels: np.ndarray

    def astype(self, dtype: str) -> Dataset:
        """The data with images of another dtype."""
        return replace(self, train_images=self.train_images.astype(dtype, copy=False),
                       valid_images=self.valid_images.astype(dtype, copy=False))

    @property
    def pixels(self) -> int:
        return self.train_images.shape[1]


def digits() -> Dataset:
    """scikit-learn's 1,797 digits of 8 x 8 pixels: 1,500 train, the rest validate (fixed shuffle)."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise click.ClickException("the demo's digits come with scikit-learn: pip install 'tilewright[demo]', "
                                   "or pass --data FILE.npz") from None
    bunch = load_digits()
    order = np.random.RandomState(0).permutation(len(bunch.target))
    images, labels = (bunch.data[order] / 16.0).astype("float32"), bunch.target[order]
    return Dataset("digits", images[:1500], labels[:1500], images[1500:], labels[1500:])


def _arrays(path: str) -> tuple[np.ndarray, np.ndarray]:
    """The images and labels for training in an .npz file."""
    try:
        with np.load(Path(path)) as file:
            chosen = [next((n for n in names if n in file), "") for names in (_IMAGES, _LABELS)]
            if not all(chosen):
                raise click.ClickException(f"{path} has {', '.join(file.files)}; expected train_images and "
                                           "train_labels, or x_train and y_train")
            return file[chosen[0]], file[chosen[1]]
    except (OSError, ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise click.ClickException(f"{path} is not an .npz file of arrays, or damaged") from None


def mnist(path: str) -> Dataset:
    """MNIST from an .npz: the first 50,000 images of train_images train, the next 10,000 validate.

    Accepts the names train_images/train_labels or x_train/y_train; pixels are divided by 255. Raises
    ClickException for a file that does not hold images and a digit for each.
    """
    images, labels = _arrays(path)
    if images.ndim < 2 or labels.ndim != 1 or len(images) != len(labels) or len(images) < 2000:
        raise click.ClickException(f"{path}: images of shape {images.shape} and labels of shape {labels.shape}; at "
                                   "least 2000 images and a label for each are needed")
    for name, array, kinds in (("images", images, "uif"), ("labels", labels, "ui")):
        if array.dtype.kind not in kinds:
            raise click.ClickException(f"{path}: the {name} are {array.dtype}, not numbers that fit")
    if labels.min() < 0 or labels.max() > 9:
        raise click.ClickException(f"{path}: the labels run from {labels.min()} to {labels.max()}, expected 0 to 9")
    flat = np.ascontiguousarray(images.reshape(len(images), -1).astype("float32") / np.float32(255))
    split = 50_000 if len(flat) >= 60_000 else len(flat) * 5 // 6
    end = min(len(flat), split + 10_000)
    return Dataset("MNIST", flat[:split], labels[:split], flat[split:end], labels[split:end])


def one_hot(labels: np.ndarray, classes: int = 10) -> np.ndarray:
    """f32[n, classes] with a 1 in the column of each label."""
    out = np.zeros((len(labels), classes), "float32")
    out[np.arange(len(labels)), labels.astype("int64")] = 1.0
    return out
