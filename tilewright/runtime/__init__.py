"""Devices, tensors, modules, threads and timing: what a machine needs that only runs compiled code."""
from tilewright.runtime import nd
from tilewright.runtime.device import Device, cpu, cuda, device
from tilewright.runtime.errors import CallTypeError, CallValueError
from tilewright.runtime.function import Function
from tilewright.runtime.loader import Library, load_objects
from tilewright.runtime.module import Module, load_module
from tilewright.runtime.packed import get_global_func, register_func, remove_global_func
from tilewright.runtime.signature import Param, Signature
from tilewright.runtime.tensor import Tensor, array, empty, from_dlpack, view
from tilewright.runtime.threads import get_num_threads, set_num_threads
from tilewright.runtime.timing import BenchmarkResult

__all__ = [
    "BenchmarkResult", "CallTypeError", "CallValueError", "Device", "Function", "Library", "Module",
    "Param", "Signature", "Tensor", "array", "cpu", "cuda", "device", "empty", "from_dlpack",
    "get_global_func", "get_num_threads", "load_module", "load_objects", "nd", "register_func",
    "remove_global_func", "set_num_threads", "view",
]
