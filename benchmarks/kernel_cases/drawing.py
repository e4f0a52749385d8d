"""Random extents and choices for rows that are drawn."""
from __future__ import annotations

import math
import random


class Draw(random.Random):
    """Numbers as shapes have them: small as often as large, round as often as odd."""

    def extent(self, low: int, high: int) -> int:
        """A number from low to high, evenly distributed by its logarithm; half of them are round."""
        n = round(math.exp(self.uniform(math.log(low), math.log(high))))
        unit = 1 << max(0, n.bit_length() - 3)
        return min(high, max(low, n // unit * unit if self.flag() else n))

    def flag(self, chance: float = 0.5) -> bool:
        return self.random() < chance
