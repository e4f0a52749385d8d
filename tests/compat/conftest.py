"""`import tvm` means Tilewright's names in a test that asks for `tvm`."""
import sys

import pytest

from tilewright.compat import namespace


@pytest.fixture
def tvm():
    before, path = dict(sys.modules), list(sys.meta_path)
    namespace.install()
    import tvm
    yield tvm
    for name in [n for n in sys.modules if n.split(".")[0] in ("tvm", "topi", "nnvm")]:
        del sys.modules[name]
    sys.modules.update({n: m for n, m in before.items() if n.split(".")[0] in ("tvm", "topi", "nnvm")})
    sys.meta_path[:] = path
