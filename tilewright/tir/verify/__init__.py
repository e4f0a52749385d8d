"""The verifier. `function` checks what every function must obey at a stage, by the rules for `expressions` and `types`;
`gpu` checks the limits of a GPU, where somebody asks for it.
"""
from tilewright.tir.verify.function import verify

__all__ = ["verify"]
