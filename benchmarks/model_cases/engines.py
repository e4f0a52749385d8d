"""The engines that run models, as `worker.py` has them: each is checked against the result of PyTorch."""
from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Prepared = tuple[Callable[[], object], dict[str, Any]]


def _facts(start: float, call: Callable[[], Any], expected: np.ndarray) -> dict[str, Any]:
    """What preparing a model took, up to its first result, which is checked."""
    got = np.asarray(call())
    seconds = time.perf_counter() - start
    error = float(np.abs(got - expected).max() / max(1.0, np.abs(expected).max()))
    if not error < 2e-3:
        raise ValueError(f"the result differs from PyTorch's by {error}")
    return {"first_seconds": seconds, "error": error, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            / 1024}


def _answer(facts: dict[str, Any]) -> dict[str, Any]:
    return {"difference": facts.pop("error"), **facts}


def prepare_tilewright(threads: int, folder: str, name: str, cached: bool = False) -> Prepared:
    os.environ["TILEWRIGHT_CACHE"] = "1" if cached else "0"
    import tilewright as tw
    tw.set_num_threads(threads)
    data = np.load(Path(folder, "data.npz"))
    start = time.perf_counter()
    run = tw.compile(str(Path(folder, "model.onnx")), target=f"llvm -num-cores={threads}")
    x = tw.nd.array(data["x"])
    return lambda: run(x), _answer(_facts(start, lambda: run(x), data["y"]))


def prepare_tilewright_cached(threads: int, folder: str, name: str) -> Prepared:
    return prepare_tilewright(threads, folder, name, cached=True)


def prepare_tilewright_file(threads: int, folder: str, name: str) -> Prepared:
    """The library is written before, by another process; what is measured is the program that loads it."""
    library = Path(folder, "model.so")
    write = (f"import sys, tilewright as tw; tw.compile(sys.argv[1], target='llvm -num-cores={threads}')"
             ".export(sys.argv[2])")
    subprocess.run([sys.executable, "-c", write, str(Path(folder, "model.onnx")), str(library)], check=True)
    os.environ["TILEWRIGHT_NUM_THREADS"] = str(threads)            # set_num_threads would load LLVM
    data = np.load(Path(folder, "data.npz"))
    start = time.perf_counter()
    import tilewright as tw
    run = tw.load(library)
    x = tw.nd.array(data["x"])
    return lambda: run(x), _answer(_facts(start, lambda: run(x), data["y"]))


def prepare_onnxruntime(threads: int, folder: str, name: str) -> Prepared:
    import onnxruntime as ort
    data = np.load(Path(folder, "data.npz"))
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    start = time.perf_counter()
    session = ort.InferenceSession(str(Path(folder, "model.onnx")), options, providers=["CPUExecutionProvider"])
    feeds = {"x": data["x"]}
    return lambda: session.run(None, feeds), _answer(_facts(start, lambda: session.run(None, feeds)[0], data["y"]))


def prepare_openvino(threads: int, folder: str, name: str) -> Prepared:
    import openvino as ov
    data = np.load(Path(folder, "data.npz"))
    start = time.perf_counter()
    core = ov.Core()
    model = core.compile_model(str(Path(folder, "model.onnx")), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = model.create_infer_request()
    return lambda: request.infer([data["x"]]), _answer(_facts(start, lambda: request.infer([data["x"]])[0], data["y"]))


def _torch(threads: int, folder: str, name: str, compiled: bool) -> Prepared:
    import torch
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from model_cases.networks import network
    torch.set_num_threads(threads)
    data = np.load(Path(folder, "data.npz"))
    model, x = network(name), torch.from_numpy(data["x"])
    start = time.perf_counter()
    if compiled:
        import torch._inductor.config as config
        config.freezing = True
        model = torch.compile(model)

    def call() -> Any:
        with torch.inference_mode():
            return model(x)
    return call, _answer(_facts(start, lambda: call().numpy(), data["y"]))


def prepare_torch(threads: int, folder: str, name: str) -> Prepared:
    return _torch(threads, folder, name, False)


def prepare_torch_compiled(threads: int, folder: str, name: str) -> Prepared:
    return _torch(threads, folder, name, True)
