"""What a row of the table of kernels is: an operator, its operands, and how a result is checked."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

Shape = tuple[int, ...]
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "int8": 1, "uint8": 1, "int32": 4, "int64": 8}


class WrongResult(Exception):
    """A result is not what NumPy computes in float64."""


@dataclass(frozen=True)
class Operand:
    """An array: floats of a standard normal distribution, all integers of the type; or numbers low <= x < high."""
    shape: Shape
    dtype: str = "float32"
    low: float | None = None
    high: float | None = None

    def array(self, seed: int) -> np.ndarray:
        """The numbers; those of bfloat16 as float32."""
        random = np.random.default_rng(seed)
        if self.dtype not in ("float32", "bfloat16"):
            limits = np.iinfo(self.dtype)
            low, high = (limits.min, limits.max + 1) if self.low is None else (self.low, self.high)
            return random.integers(low, high, self.shape, self.dtype)
        x = random.standard_normal(self.shape, "float32") if self.low is None else \
            random.uniform(self.low, self.high, self.shape).astype("float32")
        return x if self.dtype == "float32" else (x.view("uint32") & np.uint32(0xFFFF0000)).view("float32")

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


def f32(*shape: int) -> Operand:
    return Operand(shape)


def joined(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


class Operator:
    """What is computed, and how each engine does that; the fields of a subclass are its attributes.

    The engines' methods get the engine's module (`topi`, `torch`, `jax`; of ONNX a function that adds a node) and the
    operands, and give a result or several; None: the engine has no way. `numpy` is the reference, in float64, too.
    """
    BY_NAME: ClassVar[dict[str, type[Operator]]] = {}
    numpy_is_peer = True
    tolerance = 2e-5                   # of a result, relative to the largest of them

    def __init_subclass__(cls) -> None:
        Operator.BY_NAME[cls.__name__] = cls

    def te(self, topi: Any, *operands: Any) -> Any:
        raise NotImplementedError

    def numpy(self, *operands: Any) -> Any:
        raise NotImplementedError

    def torch(self, torch: Any, *operands: Any) -> Any:
        return None

    def jax(self, jax: Any, *operands: Any) -> Any:
        return None

    def onnx(self, node: Any, *operands: Any) -> Any:
        return None

    def shapes(self, *shapes: Shape) -> list[Shape]:
        """The shapes of the results, of those of the operands."""
        return [shapes[0]]

    def operations(self, *shapes: Shape) -> float:
        """Additions, multiplications, comparisons, calls of functions: each counts as one."""
        raise NotImplementedError

    def read(self, operands: Sequence[Operand]) -> int:
        """Bytes of the operands that are read."""
        return sum(x.nbytes for x in operands)

    def leading(self, *shapes: Shape) -> Sequence[tuple[int, int]]:
        """(operand, axis) of the extents that --symbolic makes one variable; none: the operator takes none."""
        return ((0, 0),)

    def magnitude(self, want: np.ndarray, *operands: np.ndarray) -> float:
        """What errors of a result are compared with."""
        return float(np.abs(want).max(initial=0.0))

    def text(self, *shapes: Shape) -> str:
        """The operator, its operands but for vectors, and its attributes, for people."""
        said = [f"{f.name}={value}" for f in fields(self)                                  # type: ignore[arg-type]
                if (value := getattr(self, f.name)) != f.default]
        shown = [s for s in shapes if len(s) > 1] or shapes
        return " ".join([type(self).__name__.lower(), *map(joined, shown), *said])


@dataclass(frozen=True)
class Row:
    """An operator and its operands. tag: what they are of; extra: measured only when it is asked for."""
    operator: Operator
    operands: tuple[Operand, ...]
    tag: str = ""
    extra: bool = False

    @property
    def shapes(self) -> list[Shape]:
        return [x.shape for x in self.operands]

    @property
    def name(self) -> str:
        return f"{self.tag}{': ' if self.tag else ''}{self.operator.text(*self.shapes)}"

    @property
    def kind(self) -> str:
        """The operands by which the machine's peak is chosen."""
        dtype = self.operands[0].dtype
        return "int8" if dtype == "uint8" else dtype if dtype in ("int8", "bfloat16") else "float32"

    @property
    def results(self) -> list[Shape]:
        return self.operator.shapes(*self.shapes)

    @property
    def operations(self) -> float:
        return float(self.operator.operations(*self.shapes))

    def nbytes(self, dtypes: Sequence[str]) -> int:
        """Bytes that are read, and those of results of these types."""
        written = sum(math.prod(s) * ITEM_BYTES[t] for s, t in zip(self.results, dtypes, strict=True))
        return self.operator.read(self.operands) + written

    def arrays(self) -> list[np.ndarray]:
        return [x.array(seed) for seed, x in enumerate(self.operands)]

    def data(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {"operator": type(self.operator).__name__, "attrs": asdict(self.operator),  # type: ignore[call-overload]
                "operands": [asdict(x) for x in self.operands]}

    @staticmethod
    def of(operator: str, attrs: dict[str, Any], operands: list[dict[str, Any]]) -> Row:
        """The row of its `data`."""
        attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
        return Row(Operator.BY_NAME[operator](**attrs), tuple(Operand(**{**x, "shape": tuple(x["shape"])})
                                                              for x in operands))

    def check(self, found: Sequence[np.ndarray]) -> None:
        """Raise WrongResult unless these are the results, as NumPy computes them in float64 or int64."""
        wide = [x.astype("float64" if x.dtype.kind == "f" else "int64") for x in self.arrays()]
        wanted = several(self.operator.numpy(*wide))
        if len(found) != len(wanted):
            raise WrongResult(f"{len(found)} results, not {len(wanted)}")
        for got, want in zip(found, wanted):
            if got.shape != np.shape(want):
                raise WrongResult(f"the shape is {got.shape}, not {np.shape(want)}")
            if np.asarray(want).dtype.kind != "f":
                wrong = int((got.astype("int64") != want).sum())
                if wrong:
                    raise WrongResult(f"{wrong} of {got.size} integers are wrong")
                continue
            error = np.abs(got.astype("float64") - want).max(initial=0.0)
            most = self.operator.tolerance * self.operator.magnitude(want, *wide)
            if not error <= most:                                        # NaN too
                raise WrongResult(f"an error of {error:.3g}, at most {most:.3g} is right")


def several(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]
