"""Tensors of PyTorch as arrays and back, by shared memory."""
from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.frontend.torch.dtypes import dtype_name
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ImportModelError


def shared(tensor: Any) -> Any:
    """A compact tensor of the host without a gradient: the tensor itself where it is one, else a copy.

    Raises ImportModelError for sparse and quantized tensors, and for those of other devices.
    """
    if tensor.device.type != "cpu":
        raise ImportModelError(f"a tensor is on {tensor.device}", "Tilewright runs on the CPU: move the model and its "
                               'inputs there, model.to("cpu")')
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        raise ImportModelError(f"tensors of the layout {tensor.layout} are not supported", "use dense tensors")
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def array_of(tensor: Any) -> np.ndarray:
    """The elements of a tensor, in its memory where it is compact."""
    tensor = shared(tensor)
    if tensor.numel() == 0:
        return empty_array(tensor)
    return as_numpy(runtime.from_dlpack(tensor))


def empty_array(tensor: Any) -> np.ndarray:
    """An array for a tensor without elements, which PyTorch may give no address."""
    return np.empty(tuple(tensor.shape), numpy_dtype(dtype_name(tensor.dtype)))


def memory_of(tensor: Any) -> Any:
    """All elements of the memory that a tensor is a part of, one after the other."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return shared(tensor.detach().as_strided((count,), (1,), 0))


def tensor_of(result: runtime.Tensor) -> Any:
    """A result as a tensor of PyTorch in the same memory."""
    import torch
    return torch.from_dlpack(result)
