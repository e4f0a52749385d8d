"""Devices: where a tensor lives and code runs."""
from __future__ import annotations

from dataclasses import dataclass

from tilewright.support.errors import TargetError, described

_TYPES = {"cpu": 1, "cuda": 2, "cuda_host": 3, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10,
          "webgpu": 15, "hexagon": 16}
_NAMES = {number: name for name, number in _TYPES.items()}
_SAME_AS_CPU = ("llvm", "c", "stackvm")
_SAME_AS_CUDA = ("gpu", "nvptx")


@dataclass(frozen=True)
class Device:
    """One device: `kind` is "cpu", "cuda", ...; `index` counts those of the kind."""
    kind: str
    index: int = 0

    @property
    def device_type(self) -> int:
        """DLPack's number of the kind."""
        return _TYPES[self.kind]

    @property
    def device_id(self) -> int:
        return self.index

    @property
    def exist(self) -> bool:
        """True when compiled code can run there."""
        return self.kind == "cpu"

    def sync(self) -> None:
        """Wait until everything that was started on the device is done."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, self.index

    def __repr__(self) -> str:
        return f"{self.kind}({self.index})"


def device(name: str | int | Device, index: int = 0) -> Device:
    """The device of a name ("cpu", "llvm", "cuda", "cuda:1") or DLPack number. Raises TargetError."""
    if isinstance(name, Device):
        return name
    if not isinstance(name, (int, str)) or isinstance(name, bool):
        raise TargetError(f"{name!r} is not a device", 'pass a name such as "cpu" or "cuda:1"')
    if isinstance(name, int):
        kind = _NAMES.get(name, str(name))
    else:
        words = name.split()
        kind, _, number = (words[0] if words else "").partition(":")
        index = int(number) if number.isascii() and number.isdigit() else index
    kind = "cpu" if kind in _SAME_AS_CPU else "cuda" if kind in _SAME_AS_CUDA else kind
    if kind not in _TYPES:
        raise TargetError(f"{name!r} is not a device", f"the devices are {', '.join(_TYPES)}, e.g. cpu(0)")
    return _numbered(kind, index)


def _numbered(kind: str, index: int) -> Device:
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise TargetError(f"{kind} device {index!r}: devices are counted 0, 1, 2, ...")
    return Device(kind, index)


def cpu(index: int = 0) -> Device:
    """The host's processors (the index makes no difference)."""
    return _numbered("cpu", index)


def cuda(index: int = 0) -> Device:
    """An NVIDIA GPU."""
    return _numbered("cuda", index)


def require_cpu(dev: Device, what: str) -> None:
    """Raises TargetError unless dev is a CPU: memory of other devices is not managed here."""
    if not isinstance(dev, Device):
        raise TargetError(f"{what}: {described(dev)} is not a device", "use tilewright.cpu(0)")
    if dev.kind != "cpu":
        raise TargetError(f"{what} on {dev!r}: this build of Tilewright runs on cpu only", "use tilewright.cpu(0)")
