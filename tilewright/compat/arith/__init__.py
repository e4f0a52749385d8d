"""`tvm.arith`: simplification, bounds, sets of integers, iterator maps and equations under TVM's names."""
from typing import Any

from tilewright.arith.modular import ModularSet
from tilewright.compat.arith import int_set
from tilewright.compat.arith.analyzer import Analyzer, ConstIntBound, ConstraintScope, ProofStrength
from tilewright.compat.arith.int_set import IntervalSet, IntSet, domain_touched, estimate_region_upper_bound
from tilewright.compat.arith.iter_map import (
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
    subspace_divide,
)
from tilewright.compat.arith.pattern import deduce_bound, detect_clip_bound, detect_linear_equation
from tilewright.compat.arith.solver import IntConstraints, IntConstraintsTransform, solve_linear_equations


def _named(*objects: Any) -> dict[str, Any]:
    return {x.__name__: x for x in objects}


# by the file of TVM's package in which each stands
FILES: dict[str, dict[str, Any]] = {
    "analyzer": _named(Analyzer, ConstIntBound, ConstraintScope, ModularSet, ProofStrength),
    "int_set": {**_named(IntSet, IntervalSet, estimate_region_upper_bound),
                "pos_inf": int_set.pos_inf, "neg_inf": int_set.neg_inf},
    "iter_affine_map": {**_named(
        IterMapLevel, IterMapResult, IterMark, IterSplitExpr, IterSumExpr, detect_iter_map, inverse_affine_iter_map,
        iter_map_simplify, normalize_iter_map_to_expr, normalize_to_iter_sum, subspace_divide)},
    "pattern": _named(detect_linear_equation, detect_clip_bound),
    "int_solver": _named(IntConstraints, IntConstraintsTransform, solve_linear_equations),
    "bound": _named(deduce_bound, domain_touched),
}
NAMES: dict[str, Any] = {name: x for names in FILES.values() for name, x in names.items()
                         if name not in ("pos_inf", "neg_inf")}
