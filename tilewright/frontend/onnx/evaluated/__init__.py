"""What the importer computes itself: operators on small tensors whose elements are numbers or expressions of sizes.

Numbers are computed as NumPy does, in the type of the tensor. Expressions stand for integers; what would need their
values raises Unknown, and the operator becomes a call of the graph where the table has a row for that.
"""
from tilewright.frontend.onnx.evaluated import arithmetic, creation, places

__all__ = ["arithmetic", "creation", "places"]
