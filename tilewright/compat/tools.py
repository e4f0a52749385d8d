"""What stands beside the compiler: `tvm.target.codegen`, `tvm.tir.analysis`, `tvm.testing`, `EnvFunc`."""
from __future__ import annotations

import functools
import importlib
import sys
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import driver, runtime, tir
from tilewright.arith.operations import operations
from tilewright.runtime import llvm
from tilewright.support.errors import ArgumentError, StructuralError, described
from tilewright.support.target import Target, target
from tilewright.tir import IRModule, PrimFunc
from tilewright.tir.verify import verify
from tilewright.tir.verify.gpu import limits_from, verify_gpu


def llvm_version_major(allow_none: bool = False) -> int:
    """The first number of LLVM's version."""
    return llvm.version()[0]


def cuda_target(model: str = "unknown", arch: str | None = None, options: Sequence[str] | None = None) -> Target:
    """A description of a GPU: `tvm.target.cuda`."""
    return Target(" ".join(["cuda", f"-model={model}", *([f"-arch={arch}"] if arch else []), *(options or ())]))


def arm_cpu(model: str = "unknown", options: Sequence[str] | None = None) -> Target:
    """A 64-bit ARM CPU with NEON: `tvm.target.arm_cpu`."""
    return Target(" ".join(["llvm -keys=arm_cpu,cpu -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon",
                            f"-model={model}", *(options or ())]))


def hybrid_build(sch: Any, inputs: Sequence[Any], outputs: Sequence[Any], name: str = "hybrid_func") -> runtime.Module:
    """Machine code of a schedule; inputs and outputs are its arguments, in this order."""
    return driver.build(sch, [*inputs, *outputs], name=name)


# ---------------------------------------------------------------------------------------------- questions


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, int]) -> bool:
    """True when no kernel of func asks for more than the constraints grant."""
    try:
        verify_gpu(func, limits_from(dict(constraints)))
    except StructuralError:
        return False
    return True


def estimate_tir_flops(stmt_or_mod: PrimFunc | IRModule) -> float:
    """The operations on numbers that the functions do. Raises ArgumentError where sizes are not constant."""
    functions = list(stmt_or_mod.functions.values()) if isinstance(stmt_or_mod, IRModule) else [stmt_or_mod]
    counts = [operations(func, {}) for func in functions]
    if any(count is None for count in counts):
        raise ArgumentError("estimate_tir_flops: loops whose number of steps is not constant cannot be counted")
    return float(sum(count or 0 for count in counts))


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """True when functions are well formed; with assert_mode the first that is not raises StructuralError."""
    for func in obj.functions.values() if isinstance(obj, IRModule) else [obj]:
        try:
            verify(func, "block" if isinstance(func.body, tir.BlockRealize) else "loop")
        except StructuralError:
            if assert_mode:
                raise
            return False
    return True


def verify_ssa(func: PrimFunc) -> bool:
    """True when func is well formed, and so defines each name once."""
    return verify_well_formed(func, False)


# ---------------------------------------------------------------------------------------------- functions by name


class EnvFunc:
    """A registered function, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._function: Any = runtime.get_global_func(name)

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function of that name. Raises ArgumentError where none is registered."""
        return EnvFunc(name)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


# ---------------------------------------------------------------------------------------------- tests


def _not_here(what: str) -> Callable[..., Any]:
    def requires(test: Any = None) -> Any:
        """Decorator of tests that need what is not here: they are skipped."""
        if test is None:
            return requires

        @functools.wraps(test)
        def skipped(*_: object, **__: object) -> None:
            raise unittest.SkipTest(f"needs {what}, for which there is no code generation")
        return skipped
    return requires


def main() -> None:
    """Run the tests of the script that calls this, by pytest, and exit."""
    try:
        pytest = importlib.import_module("pytest")
    except ImportError:
        raise ArgumentError("testing.main needs pytest", "pip install pytest") from None
    sys.exit(pytest.main([sys.argv[0], *sys.argv[1:]]))


def device_enabled(spec: Any) -> bool:
    """True when code for the target runs here. Raises ArgumentError for what is no target."""
    if not isinstance(spec, (str, Target, Mapping)):
        raise ArgumentError(f"device_enabled: {described(spec)} is no target")
    return target(spec).is_host


TESTING: dict[str, Any] = {"main": main, "device_enabled": device_enabled, **{
    f"requires_{name}": _not_here(name) for name in ("gpu", "cuda", "rocm", "opencl", "metal", "vulkan", "hexagon")}}
ANALYSIS: dict[str, Any] = {"expr_deep_equal": tir.structural_equal, "verify_gpu_code": verify_gpu_code,
                            "verify_well_formed": verify_well_formed, "verify_ssa": verify_ssa,
                            "estimate_tir_flops": estimate_tir_flops}
CODEGEN: dict[str, Any] = {"llvm_version_major": llvm_version_major,
                           "llvm_lookup_intrinsic_id": tir.llvm_lookup_intrinsic_id}
