"""Simplification, bounds, affine maps, regions and dependences of index expressions."""
from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.arith.regions import covers, disjoint, interval_of, union

__all__ = ["Analyzer", "covers", "disjoint", "interval_of", "linear", "union"]
