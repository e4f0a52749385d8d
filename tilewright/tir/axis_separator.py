"""The mark in an index map before which a new physical dimension starts."""
from __future__ import annotations

#: among the new indices of an index map: `lambda i, j: (i, AXIS_SEPARATOR, j)` keeps i and j apart in memory
AXIS_SEPARATOR = "axis_separator"
