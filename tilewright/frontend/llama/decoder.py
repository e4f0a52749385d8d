"""A model of Llama's shape that runs: weights and caches are held, a call takes words and scores the next one."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.driver import Target, target
from tilewright.frontend.llama.config import Config
from tilewright.frontend.llama.layers import model_function
from tilewright.frontend.llama.tensors import Weight, read_model
from tilewright.frontend.weights import Blocks
from tilewright.graph.compile import SIMPLIFY, lowered
from tilewright.graph.ir.types import TensorType, size
from tilewright.graph.plan.executable import Executable
from tilewright.runtime import Tensor
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, described
from tilewright.support.views import View, Viewed, readable_bytes


def load_llama(path: str | Path, *, weights: str | None = None, context: int | None = None,
               target: str | Target | None = None) -> Decoder:
    """The Decoder of a model in a file or a folder.

    path: a GGUF file, or a folder with config.json and safetensors as transformers writes it (Llama, Mistral, Qwen 2).
    weights: the form of matrices: "float32", "int8" or "int4" (a scale for 32 elements of a row); by default blocks of
    a GGUF file stay as they are, all else is float32. context: for how many words caches have room, by default those of
    the model, at most 2048. Raises ImportModelError for a file that does not fit.
    """
    config, tensors = read_model(path, weights)
    return Decoder(config, tensors, context=min(config.context, 2048) if context is None else context, target=target)


# kinds of calls: how many words are new, and how many were read before
CALLS: dict[str, tuple[Any, Any]] = {
    "start": (size("new"), 0), "next": (1, size("past")), "more": (size("new"), size("past"))}


class Decoder(Viewed):
    """A language model with the words that it has read: `decoder(words)` reads more, and gives scores of the next.

    Keys and values of the words are kept in caches, which each call updates in place. Code is made for three kinds of
    calls, each with its first use: words at the start, one word behind others, several words behind others; one build
    serves all numbers of words. One thread at a time.
    """

    def __init__(self, config: Config, weights: Mapping[str, Weight], *, context: int = 2048,
                 target: str | Target | None = None) -> None:
        if not isinstance(context, int) or isinstance(context, bool) or context < 1:
            raise ArgumentError(f"context is {described(context)}", "a number of words, at least 1")
        self.config, self.context, self._target = config, context, target
        self._caches = {f"{layer}.{part}": _zeros((config.groups, context, config.head))
                        for layer in range(config.layers) for part in ("keys", "values")}
        self._weights = {name: runtime.view(a) for name, a in _arrays(config, weights, context).items()}
        self._compiled: dict[str, Executable] = {}
        self._read = 0

    @property
    def length(self) -> int:
        """How many words it has read."""
        return self._read

    @property
    def nbytes(self) -> int:
        """Bytes of the weights: what is read for a word, but for the matrix of words."""
        return sum(as_numpy(t).nbytes for t in self._weights.values())

    def reset(self, length: int = 0) -> None:
        """Forget the words from number `length` on."""
        if not isinstance(length, int) or not 0 <= length <= self._read:
            raise ArgumentError(f"reset({described(length)}): {self._read} words have been read")
        self._read = length

    def __call__(self, words: Any) -> Tensor:
        """The scores of the word behind these, which follow those of the calls before: float32[words of the model].

        words: integers, one dimension. Raises ArgumentError for a number that is no word, and where the caches have no
        room; nothing is read then.
        """
        ids = self._checked(words)
        new, past = len(ids), self._read
        kind = "start" if past == 0 else "next" if new == 1 else "more"
        given = [ids, np.arange(past, past + new)] + ([np.ones(past, np.bool_)] if past else [])
        scores: Tensor = self.executable(kind)(*given)
        self._read += new
        return runtime.from_dlpack(as_numpy(scores).reshape(-1))

    def generate(self, words: Any, count: int, *, temperature: float = 0.0, seed: int = 0,
                 stop: Sequence[int] = ()) -> list[int]:
        """Up to `count` words behind these, the last of which may be one of `stop`.

        temperature: 0 takes the likeliest word; else words are drawn by the softmax of scores / temperature.
        """
        if not isinstance(count, int) or count < 0 or not isinstance(temperature, Real) or not temperature >= 0:
            raise ArgumentError(f"generate: count is {described(count)}, temperature {described(temperature)}",
                                "neither is negative")
        if not isinstance(seed, int) or seed < 0:
            raise ArgumentError(f"generate: seed is {described(seed)}", "a number, 0 at least")
        if not isinstance(stop, Collection):
            raise ArgumentError(f"generate: stop is {described(stop)}", "a list of words")
        random, made = np.random.default_rng(seed), []
        for _ in range(count):
            scores = as_numpy(self(words)).astype(np.float64)
            word = int(np.argmax(scores)) if temperature == 0 else int(np.argmax(
                scores / temperature + random.gumbel(size=scores.shape)))
            made.append(word)
            if word in stop:
                break
            words = [word]
        return made

    def executable(self, kind: str) -> Executable:
        """The code of a kind of calls: "start", "next" or "more". It reads and writes what the decoder holds."""
        if kind not in self._compiled:
            new, past = CALLS[kind]
            types = {name: TensorType(tuple(t.shape), t.dtype) for name, t in self._weights.items()}
            made = model_function(self.config, types, self.context, new, past)
            held = {made.weights[n]: t for n, t in self._weights.items()}
            held |= {made.caches[n]: t for n, t in self._caches.items()}
            function = made.function
            for step in SIMPLIFY:
                function = step(function)
            self._compiled[kind] = lowered(function, target(self._target), held)
        return self._compiled[kind]

    def _checked(self, words: Any) -> np.ndarray:
        try:
            ids = np.asarray(words)
        except ValueError:                                     # lists of several lengths
            raise ArgumentError(f"the words {described(words)} are not a list of integers") from None
        if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iu":
            raise ArgumentError(f"the words {described(words)} are not a list of integers")
        wrong = ids[(ids < 0) | (ids >= self.config.words)]
        if wrong.size:
            raise ArgumentError(f"{wrong[0]} is no word: the model has {self.config.words}")
        if self._read + ids.size > self.context:
            raise ArgumentError(f"{ids.size} words behind {self._read} are more than the {self.context} of the context",
                                "reset the decoder, or load it with a larger context")
        return ids.astype(np.int64)

    def view(self) -> View:
        c = self.config
        return View("tilewright.Decoder", [
            ("model", f"{c.layers} layers of {c.width}, {c.heads} heads in {c.groups} groups, {c.words} words"),
            ("weights", readable_bytes(self.nbytes)),
            ("caches", readable_bytes(sum(as_numpy(t).nbytes for t in self._caches.values()))),
            ("words", f"{self._read} read, room for {self.context}")])


def _zeros(shape: tuple[int, ...]) -> Tensor:
    made = runtime.empty(shape)
    made[...] = 0
    return made


def _arrays(config: Config, weights: Mapping[str, Weight], context: int) -> dict[str, np.ndarray]:
    """What a function of the model takes beside words and caches, by name."""
    made: dict[str, np.ndarray] = {}
    for name, w in weights.items():
        made |= {f"{name}.numbers": w.numbers, f"{name}.scale": w.scale} if isinstance(w, Blocks) else {name: w}
    made["cosines"], made["sines"] = config.rotations(context)
    return made
