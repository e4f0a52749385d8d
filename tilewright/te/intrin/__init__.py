"""Tensor intrinsics of tensor expressions: `declaration` says one, `call` is its call in a compute."""
