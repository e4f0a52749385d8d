"""`te.hybrid`: functions with loops over elements as operations. `function` reads the source; `statements`, on top of
`expressions`, turns it into loops.
"""
from tilewright.te.hybrid.function import HybridFunction, script

__all__ = ["HybridFunction", "script"]
