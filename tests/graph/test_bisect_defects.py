"""A few planted defects; `python -m tests.graph.bisect_defects` plants as many as one likes."""
from functools import partial

import pytest

from tests.fuzz.planting import Functions
from tests.graph.bisect_defects import ROOT, SECONDS, arrays_of, attempt, defect_at, in_child, named, operators_run


@pytest.mark.parametrize("defect", [
    ("tilewright/graph/passes/affine.py", "_taken_in", "negated condition", "_is(c.callee, topi.multiply)", "images"),
    ("tilewright/lowering/hoist_constants.py", "_prepare", "removed statement", "nests.append(nest)", "images"),
    ("tilewright/lowering/transpose_tiles.py", "_sequence", "removed statement", "out += stmts", "regions"),
    ("tilewright/topi/activations.py", "_above", "wrong word", '"max"', "images"),
], ids=lambda d: d[0].rsplit("/", 1)[-1])
def test_bisect_names_the_place_of_a_defect(defect):
    planted = defect_at(*defect)
    changes = Functions().changes(planted.mutation, ROOT)
    wanted = {planted.model: in_child(partial(arrays_of, planted.model), SECONDS)}
    found = in_child(partial(attempt, planted, changes, wanted), SECONDS)
    assert found["status"] == "wrong"
    assert named(planted, found, in_child(partial(operators_run, planted.model), SECONDS)), found["found"]
