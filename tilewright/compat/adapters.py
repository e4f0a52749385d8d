"""The few TVM functions whose arguments differ from ours."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.runtime import Device, Tensor


def device(dev_type: Any = "cpu", dev_id: int = 0) -> Device:
    """The device of a kind or target string: device("llvm", 0) is cpu(0)."""
    return dev_type if isinstance(dev_type, Device) else runtime.device(str(dev_type).split()[0], dev_id)


def cuda(index: int = 0) -> Device:
    """CUDA device `index`; its `.exist` is False where there is none."""
    return runtime.device("cuda", index)


def enabled(name: str) -> bool:
    """True when code for the target kind can be built and run here."""
    return name.split()[0] in ("llvm", "cpu")


def array(source: Any, device: Device | None = None, mem_scope: str | None = None, *,
          ctx: Device | None = None) -> Tensor:
    """A new array with the contents of source (NumPy, DLPack, nested lists)."""
    return runtime.array(source, device or ctx or runtime.cpu(0))


def empty(shape: Sequence[int], dtype: str = "float32", device: Device | None = None,
          mem_scope: str | None = None, *, ctx: Device | None = None) -> Tensor:
    """A new array, not initialised."""
    return runtime.empty(shape, dtype, device or ctx or runtime.cpu(0))


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """np.testing.assert_allclose with TVM's default tolerances, shapes compared as well."""
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    np.testing.assert_equal(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets for which code can be built and run here, each with its device."""
    return [("llvm", runtime.cpu(0))]


def requires_llvm(test: Any = None) -> Any:
    """Decorator of tests that need code generation for the CPU, which is always there."""
    return test if test is not None else requires_llvm
