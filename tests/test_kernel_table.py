"""The table of kernels of benchmarks/kernels.py: its rows are what they say, and its machinery finds wrong results."""
import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.tir import Var

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def table():
    """The folder of the benchmarks is where their modules look for each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("kernel_cases")


@pytest.fixture(scope="module")
def engines(table):
    return importlib.import_module("kernel_cases.engines")


def shape_of(tensor):
    return tuple(int(extent) for extent in tensor.shape)


def small(table, family, count, most):
    """The first drawn rows of a family whose operands are small."""
    drawn = (row for _, row in table.drawn([family], 400, 0) if sum(math.prod(s) for s in row.shapes) < most)
    return [row for row, _ in zip(drawn, range(count))]


def test_rows_have_names_of_their_own(table):
    names = [row.name for _, row in table.rows(list(table.FAMILIES), extra=True)]
    assert sorted({n for n in names if names.count(n) > 1}) == []
    usual = table.rows(list(table.FAMILIES), extra=False)
    assert 100 <= len(usual) < len(names)


def test_every_definition_has_the_declared_shapes(table, engines):
    for _, row in table.rows(list(table.FAMILIES), extra=True) + table.drawn(list(table.FAMILIES), 100, 0):
        inputs, results = engines.definition(row)
        assert [shape_of(t) for t in inputs] == row.shapes, row.name
        assert [shape_of(t) for t in results] == row.results, row.name
        assert row.operations >= 0 and row.nbytes([t.dtype for t in results]) > 0, row.name


def test_a_row_survives_its_way_through_json(table):
    for _, row in table.rows(list(table.FAMILIES), extra=True):
        again = type(row).of(**json.loads(json.dumps(row.data())))
        assert (again.operator, again.operands) == (row.operator, row.operands)


def test_symbolic_definitions_have_one_variable(table, engines):
    for _, row in table.rows(list(table.FAMILIES), extra=True):
        if not row.operator.leading(*row.shapes):
            with pytest.raises(engines.NoWay):
                engines.definition(row, symbolic=True)
            continue
        inputs, _ = engines.definition(row, symbolic=True)
        assert len({e for t in inputs for e in t.shape if isinstance(e, Var)}) == 1, row.name


def test_small_rows_are_what_numpy_computes(table, engines, monkeypatch):
    monkeypatch.setattr(engines, "start_compiler", lambda: None)
    before = tw.get_num_threads()
    try:
        for family in table.FAMILIES:
            rows = small(table, family, 2, 20_000)
            assert len(rows) == 2, family
            for row in rows:
                call, facts = engines.prepare_tilewright(1, **row.data())      # checks the result
                call()
                assert facts["compile_seconds"] > 0 and facts["object_bytes"] > 0
    finally:
        tw.set_num_threads(before)


def test_numpy_in_float32_passes_the_check(table, engines):
    for family in table.FAMILIES:
        for row in small(table, family, 3, 200_000):
            if row.operator.numpy_is_peer:
                engines.prepare_numpy(1, **row.data())


def test_a_wrong_result_is_found(table):
    row = small(table, "norms", 1, 20_000)[0]
    found = [np.asarray(row.operator.numpy(*row.arrays()))]
    row.check(found)
    wrong = importlib.import_module("kernel_cases.rows").WrongResult
    for spoil in (lambda y: y + 1e-3, lambda y: np.where(np.arange(y.size).reshape(y.shape) == 3, np.nan, y),
                  lambda y: y[:-1]):
        with pytest.raises(wrong):
            row.check([spoil(found[0])])


def test_the_summary_counts_slow_rows_and_errors(table, capsys):
    report = importlib.import_module("kernel_cases.report")
    measured = [report.Measured("norms", f"row {n}", 1, {"tilewright": 2.0, "torch": s, "jax": 8.0}, {}, 1.0, 0.1, 10)
                for n, s in enumerate((1.0, 4.0))]
    failed = report.Measured("norms", "row 2", 1, {"torch": 1.0}, {"tilewright": "WrongResult: an error"}, None, None,
                             None)
    assert [m.ratio for m in measured] == [0.5, 2.0] and measured[0].of_roof == 0.5
    assert report.Measured(**json.loads(measured[0].line())) == measured[0]
    for m in [*measured, failed]:
        report.print_row(m, ["tilewright", "torch", "jax"])
    report.print_summary([*measured, failed])
    said = capsys.readouterr().out
    assert "3 rows, 1 errors" in said and "geometric mean 1.000, 1 of 2 under 0.9" in said
    assert "ERROR: WrongResult: an error" in said
