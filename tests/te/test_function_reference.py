"""The list of te's functions is complete and up to date, and the accuracy that it states holds."""
import re

import numpy as np
import pytest

import tilewright as tw
from tests.te import function_reference as reference
from tilewright import te
from tilewright.te.math import FUNCTIONS
from tilewright.tir.ops import INTRINSICS


def test_every_name_is_on_the_page():
    listed = {name for names in reference.FAMILIES.values() for name in names} | set(reference.OTHERS)
    assert {*listed, *FUNCTIONS, "abs", "fabs", "exp10", "power"} == set(te.__all__) - {"math"}
    assert not listed & set(FUNCTIONS) and all(INTRINSICS[name].meaning for name in FUNCTIONS)
    text = reference.page()
    assert all(f"`te.{name}" in text for name in te.__all__)
    rows = [line for line in text.splitlines() if line.startswith("| `te.")]
    assert all(re.search(r"\| \S.* \|", row.split("`", 2)[2]) for row in rows)


def test_every_function_of_floats_has_an_accuracy():
    for name in reference.of_floats():
        assert bool(reference.accuracy(name)) != INTRINSICS[name].predicate, name


@pytest.mark.skipif(np.finfo(np.longdouble).nmant != 63, reason="the reference needs 80-bit long double")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, exact", [
    ("rsqrt", lambda x: 1 / np.sqrt(x)), ("hypot", np.hypot), ("exp10", lambda x: np.longdouble(10) ** x),
    ("sqrt", np.sqrt), ("fma", lambda x, y, z: None)])
def test_accuracy_of_composed_functions(name, exact, dtype):
    """Over many sizes of arguments; of fma, the one result that a product rounded before would miss."""
    random, n = np.random.default_rng(0), 20000
    if name == "fma":
        x = np.full(n, 1 + np.finfo(dtype).eps, dtype)
        inputs, want = [x, x, -np.full(n, 1 + 2 * np.finfo(dtype).eps, dtype)], np.finfo(dtype).eps ** 2
    else:
        scale = random.uniform(-15, 15, (2, n))
        values = np.abs(random.normal(size=(2, n))) * 2.0 ** scale
        values = random.uniform(-30, 30, (2, n)) if name == "exp10" else values
        inputs = [v.astype(dtype) for v in values][:2 if name == "hypot" else 1]
        want = exact(*(v.astype(np.longdouble) for v in inputs))
    tensors = [te.placeholder((n,), dtype) for _ in inputs]
    out = te.compute((n,), lambda i: getattr(te, name)(*(t[i] for t in tensors)))
    s = te.create_schedule(out.op)
    s[out].vectorize(s[out].split(out.op.axis[0], factor=8)[1])
    got = np.zeros(n, dtype)
    tw.build(s, [*tensors, out])(*inputs, got)
    error = np.abs(got - want) / np.spacing(np.abs(np.asarray(want)).astype(dtype)).astype(np.longdouble)
    bound = INTRINSICS["pow" if name in reference.POWERS else name].ulp[dtype == "float64"]
    assert error.max() <= bound * 1.0001, float(error.max())


def test_the_page_is_up_to_date():
    assert reference.PAGE.read_text() == reference.page(), "run python -m tests.te.function_reference"
