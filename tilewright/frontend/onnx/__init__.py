"""Models in the ONNX format as functions of the graph."""
from tilewright.frontend.onnx.model import from_onnx

__all__ = ["from_onnx"]
