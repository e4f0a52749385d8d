"""A script whose annotations Python evaluates at once, where the function stands."""
from tilewright.script import tir as T


def make(n):
    """A function whose parameter's type mentions a local name that its body does not."""
    @T.prim_func
    def f(A: T.Buffer((n,), "float32")):
        A[0] = 1
    return f
