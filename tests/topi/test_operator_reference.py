"""docs/topi.md is what its generator writes, and every operator is documented."""
from __future__ import annotations

import inspect

from tests.topi.operator_reference import PAGE, page
from tilewright import topi


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run python -m tests.topi.operator_reference"


def test_every_operator_has_a_docstring_of_its_own():
    for name in topi.__all__:
        text = inspect.getdoc(getattr(topi, name)) or ""
        assert len(text) > 20, name


def test_attributes_are_keywords():
    """Tensors may be positional, and what says which result is wanted: a shape, a size, bounds."""
    positional = {"x", "a", "b", "c", "weight", "bias", "mean", "var", "offset", "mask", "condition", "query", "key",
                  "value", "indices", "updates", "in_weight", "in_bias", "out_weight", "out_bias", "tensors",
                  "target", "pos_weight", "grid", "boxes", "anchor", "scale", "zero_point", "positive", "negative",
                  "kernel", "size", "equation", "shape", "axes", "min", "max", "dtype", "start", "stop", "step",
                  "num", "rows", "columns", "sections", "cos", "sin", "positions", "lengths", "key_cache",
                  "value_cache", "pages", "table", "scores", "recurrent", "recurrent_bias", "start_cell", "peepholes",
                  "a_scale", "a_zero", "b_scale", "b_zero", "x_scale", "x_zero", "weight_scale", "weight_zero",
                  "y_scale", "y_zero", "source", "weights", "offsets", "shift", "pad_width", "repetitions", "repeats",
                  "data", "indptr", "window", "target_lengths", "theta", "ends", "delta", "decay", "skip"}
    for name in topi.__all__:
        for p in inspect.signature(getattr(topi, name)).parameters.values():
            if p.kind is p.POSITIONAL_OR_KEYWORD:
                assert p.name in positional, f"{name}({p.name})"
