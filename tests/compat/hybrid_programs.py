"""Functions of the hybrid language."""
# The words of the language have no definition in Python.
# ruff: noqa: F821
from tilewright.te import hybrid


@hybrid.script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@hybrid.script
def steps(a, weights):
    out = output_tensor((a.shape[0] - 2,), "float32")
    places = output_tensor((4,), "int32")
    buffer = allocate((3,), "float32", "local")
    for i in range(a.shape[0] - 2):
        total = 0.0
        for k in const_range(len(weights)):
            buffer[k] = a[i + k] * weights[k]
            total += buffer[k] if k != 1 else buffer[k] + a[i]
        if total > 1.0 and i % 2 == 0:
            total = total - 1.0
        else:
            total = sqrt(abs(total))
        out[i] = max(total, float32(0))
    for q in unroll(4):
        places[q] = q * 2
    return out, places
