"""Runs the cases that the onnx package brings for backends: `python -m tests.frontend.onnx_backend [--only TEXT]`.

Node cases and models that need no download, each as it is; prints how many pass, and what the others fail of.
"""
from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import re
import time
import warnings
from pathlib import Path

import numpy as np

from tilewright.support.errors import ImportModelError, TilewrightError

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
SECONDS = 120


def cases(kinds=KINDS):
    """(kind, case) of each case that needs no download."""
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(kind, case) for kind in kinds for case in load_model_tests(kind=kind)]
    return [(k, c) for k, c in found if c.model_dir or c.model or "data/light/" in (c.url or "")]


def _array(proto_or_array):
    import onnx
    from onnx import numpy_helper
    if isinstance(proto_or_array, onnx.TensorProto):
        return numpy_helper.to_array(proto_or_array)
    if isinstance(proto_or_array, list):
        return [_array(v) for v in proto_or_array]
    return proto_or_array


def _stored(path, info):
    """The value in a file of a case."""
    import onnx
    from onnx import numpy_helper
    kind = info.type.WhichOneof("value")
    data = Path(path).read_bytes()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def data_of(case):
    """(model, [(inputs, results)]) of a case."""
    import onnx
    if case.model is not None:
        return case.model, [([_array(v) for v in ins], [_array(v) for v in outs]) for ins, outs in case.data_sets]
    if case.model_dir is None:
        path = Path(onnx.__file__).parent.parent / case.url
        model = onnx.load(path)
        constant = {t.name for t in model.graph.initializer}
        from onnx.backend.test.runner import Runner
        inputs = [Runner.generate_dummy_data(i, seed=0, name=case.name) for i in model.graph.input
                  if i.name not in constant]
        outs = [_stored(f"{path.with_suffix('')}_output_{k}.pb", o) for k, o in enumerate(model.graph.output)]
        return model, [(inputs, outs)]
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    constant = {t.name for t in model.graph.initializer}
    infos = [i for i in model.graph.input if i.name not in constant] if \
        len(list(folder.glob("test_data_set_0/input_*"))) < len(model.graph.input) else list(model.graph.input)
    sets = []
    for place in sorted(folder.glob("test_data_set_*")):
        ins = [_stored(place / f"input_{k}.pb", i) for k, i in enumerate(infos)]
        sets.append((ins, [_stored(place / f"output_{k}.pb", o) for k, o in enumerate(model.graph.output)]))
    return model, sets


def run_case(case):
    """Run a case. Raises what it fails of."""
    from onnx.backend.test.runner import Runner

    from tilewright.frontend.onnx.backend import backend
    model, sets = data_of(case)
    prepared = backend().prepare(model, "CPU")
    for inputs, wanted in sets:
        found = prepared.run(inputs)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Runner.assert_similar_outputs(wanted, list(found), case.rtol, case.atol, case.name)


def cause_of(error):
    """A short text that is the same for failures of one cause."""
    if isinstance(error, AssertionError):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return "other numbers: " + " ".join(lines[1:3] if len(lines) > 2 else lines)[:90]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "" if isinstance(error, TilewrightError) else f"{type(error).__name__}: "
    text = lines[1] if isinstance(error, ImportModelError) and len(lines) > 1 else lines[0] if lines else ""
    text = re.sub(r"^[^ ]* \((\S+)\): ", r"\1: ", text)
    return (kind + re.sub(r": \d+ node\(s\).*", "", text))[:150]


_CASES: list = []


def _one(k):
    kind, case = _CASES[k]
    start = time.time()
    try:
        run_case(case)
        return k, "", time.time() - start
    except Exception as error:
        return k, cause_of(error) or type(error).__name__, time.time() - start


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", help="a regular expression that names of cases fit")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--list", action="store_true", help="name each case that fails")
    given = options.parse_args()
    _CASES.extend((k, c) for k, c in cases() if re.search(given.only, c.name))
    print(f"{len(_CASES)} cases, {given.processes} process(es)", flush=True)
    failed, slow = collections.defaultdict(list), []
    passed = collections.Counter()
    totals = collections.Counter(kind for kind, _ in _CASES)
    os.environ.setdefault("TILEWRIGHT_NUM_THREADS", "1")
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        for k, cause, seconds in pool.imap_unordered(_one, range(len(_CASES)), chunksize=8):
            kind, case = _CASES[k]
            if cause:
                failed[cause].append(case.name)
            else:
                passed[kind] += 1
            slow.append((seconds, case.name))
    for cause, names in sorted(failed.items(), key=lambda item: -len(item[1])):
        some = names if given.list else names[:3]
        print(f"{len(names):4}  {cause}\n        {', '.join(some)}{'' if len(some) == len(names) else ', ...'}")
    print("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for seconds, name in sorted(slow)[-5:]))
    for kind in totals:
        print(f"{kind}: {passed[kind]} of {totals[kind]}")
    total = sum(totals.values())
    print(f"passed {sum(passed.values())} of {total} ({100 * sum(passed.values()) / max(total, 1):.1f} %)")


if __name__ == "__main__":
    main()
