"""The names of TVM's `nd`: arrays on devices."""
from tilewright.runtime.device import Device, cpu, cuda, device
from tilewright.runtime.tensor import Tensor, array, empty, from_dlpack

NDArray = Tensor

__all__ = ["Device", "NDArray", "Tensor", "array", "cpu", "cuda", "device", "empty", "from_dlpack"]
