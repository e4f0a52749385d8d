"""Writes files of weights for tests, by the formats' documentation and not by what reads them."""
import json
import struct

import numpy as np

GGML = {"float32": 0, "float16": 1, "bfloat16": 30}
SAFE = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "bool": "BOOL", "uint8": "U8"}


def write_safetensors(path, tensors, metadata=None):
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, a in tensors.items():
        header[name] = {"dtype": SAFE[str(a.dtype)], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in tensors.values()))


def text(s): return struct.pack("<Q", len(s.encode())) + s.encode()


def value(v):
    """(type, bytes) of a number, a text, a truth or a list."""
    if isinstance(v, bool):
        return 7, struct.pack("<?", v)
    if isinstance(v, int):
        return 4, struct.pack("<I", v)
    if isinstance(v, float):
        return 6, struct.pack("<f", v)
    if isinstance(v, str):
        return 8, text(v)
    kinds = [value(x) for x in v]
    return 9, struct.pack("<IQ", kinds[0][0], len(v)) + b"".join(b for _, b in kinds)


def q8_0(w):
    """(bytes, the matrix that they hold)."""
    x = w.reshape(w.shape[0], -1, 32)
    d = (np.abs(x).max(2, keepdims=True) / 127).astype(np.float16)
    q = np.rint(x / np.maximum(d.astype(np.float32), 1e-9)).astype(np.int8)
    data = b"".join(d[r, b].tobytes() + q[r, b].tobytes() for r in range(x.shape[0]) for b in range(x.shape[1]))
    return 8, data, (q * d.astype(np.float32)).reshape(w.shape)


def q4_0(w):
    x = w.reshape(w.shape[0], -1, 32)
    d = (np.abs(x).max(2, keepdims=True) / 7).astype(np.float16)
    q = np.clip(np.rint(x / np.maximum(d.astype(np.float32), 1e-9)) + 8, 0, 15).astype(np.uint8)
    data = b""
    for r in range(x.shape[0]):
        for b in range(x.shape[1]):
            data += d[r, b].tobytes() + bytes(int(q[r, b, j]) | int(q[r, b, j + 16]) << 4 for j in range(16))
    return 2, data, ((q.astype(np.float32) - 8) * d.astype(np.float32)).reshape(w.shape)


def plain(w, dtype="float32"):
    a = w.astype(dtype) if dtype != "bfloat16" else w.astype(__import__("ml_dtypes").bfloat16)
    return GGML[dtype], a.tobytes(), a.astype(np.float32)


def write_gguf(path, metadata, tensors, alignment=32, version=3):
    """tensors: name -> (shape, (type, bytes, ...))."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for name, v in metadata.items():
        kind, data = value(v)
        out += text(name) + struct.pack("<I", kind) + data
    at, places = 0, []
    for _, made in tensors.values():
        places.append(at)
        at += -(-len(made[1]) // alignment) * alignment
    for (name, (shape, made)), place in zip(tensors.items(), places):
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        out += struct.pack("<IQ", made[0], place)
    out += b"\0" * (-len(out) % alignment)
    for _, made in tensors.values():
        out += made[1] + b"\0" * (-len(made[1]) % alignment)
    path.write_bytes(out)
