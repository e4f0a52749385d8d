"""Kinds of targets, the attributes that their strings may give, and the names of machines that stand for strings."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attribute:
    """What `-name=value` of a target string says. Without a default the attribute is not there unless it is given."""
    name: str
    type: type[str] | type[int]
    doc: str
    default: str | int | None = None
    least: int = 0
    greatest: int = (1 << 31) - 1


@dataclass(frozen=True)
class Kind:
    """A kind of targets: the word by which schedule rules know it, and its attributes by name.

    strict: strings with any other attribute are refused. The other kinds take any, and nothing is made of it.
    """
    word: str
    attributes: dict[str, Attribute]
    strict: bool


_COMMON = (
    Attribute("opt-level", int, "0 to 3", 3, greatest=3),
    Attribute("keys", str, "words for schedule rules"),
    Attribute("libs", str, "libraries"),
    Attribute("device", str, "device words"),
    Attribute("model", str, "device model"),
    Attribute("host", str, "host target"),
    Attribute("tag", str, "name of the machine"),
)
_CPU = (
    Attribute("mcpu", str, "CPU name"),                          # without it and -mtriple: this host
    Attribute("mattr", str, "features, +a,-b"),
    Attribute("mtriple", str, "target triple"),
    Attribute("target", str, "target triple, as in 2018"),
    Attribute("num-cores", int, "cores", least=1, greatest=1 << 16),        # without it: those that the process may use
)


def _gpu(threads: int | None = None, warp: int | None = None) -> tuple[Attribute, ...]:
    """The attributes of a GPU, with what it has unless its string says otherwise."""
    return (
        Attribute("arch", str, "GPU architecture"),
        Attribute("max_num_threads", int, "threads of a block", threads),
        Attribute("max_threads_per_block", int, "threads of a block"),
        Attribute("max_shared_memory_per_block", int, "bytes"),
        Attribute("registers_per_block", int, "registers of 32 bits"),
        Attribute("l2_cache_size_bytes", int, "bytes"),
        Attribute("thread_warp_size", int, "threads of a warp", warp),
    )


def kind(word: str, *own: Attribute, strict: bool = False) -> Kind:
    """A kind with attributes of its own and those of all kinds."""
    return Kind(word, {a.name: a for a in (*own, *_COMMON)}, strict)


KINDS = {
    "llvm": kind("cpu", *_CPU, strict=True), "c": kind("cpu", *_CPU, strict=True),
    "hybrid": kind("cpu", *_CPU), "stackvm": kind("cpu", *_CPU),
    "hexagon": kind("hexagon"), "ext_dev": kind("ext_dev"), "composite": kind("composite"),
    "cuda": kind("cuda", *_gpu(1024, 32), strict=True), "nvptx": kind("cuda", *_gpu(1024, 32)),
    "rocm": kind("rocm", *_gpu(256, 64)), "opencl": kind("opencl", *_gpu(256, 1)),
    "metal": kind("metal", *_gpu(256, 16)), "vulkan": kind("vulkan", *_gpu(256, 1)),
    "webgpu": kind("webgpu", *_gpu(256)), "sdaccel": kind("sdaccel"), "aocl": kind("aocl"),
}
ATTRIBUTES = {name: attribute for k in KINDS.values() for name, attribute in k.attributes.items()}


def add_kind(name: str, added: Kind) -> None:
    """Let target strings start with a name."""
    KINDS[name] = added
    ATTRIBUTES.update({**added.attributes, **ATTRIBUTES})


_NVIDIA = {
    "sm_61": "geforce-gtx-1060 geforce-gtx-1070 geforce-gtx-1080 geforce-gtx-1080-ti nvidia-titan-x",
    "sm_70": "nvidia-v100 tesla-v100-pcie-32gb tesla-v100-sxm2-16gb nvidia-titan-v",
    "sm_75": "nvidia-t4 tesla-t4 geforce-rtx-2060 geforce-rtx-2070 geforce-rtx-2080 geforce-rtx-2080-ti",
    "sm_80": "nvidia-a100 nvidia-a30", "sm_86": "nvidia-a10 nvidia-a10g nvidia-a40 geforce-rtx-3060 geforce-rtx-3070 "
    "geforce-rtx-3070-ti geforce-rtx-3080 geforce-rtx-3080-ti geforce-rtx-3090 geforce-rtx-3090-ti nvidia-rtx-a6000",
    "sm_72": "jetson-agx-xavier nvidia-jetson-agx-xavier", "sm_89": "geforce-rtx-4090 nvidia-l4 nvidia-l40",
    "sm_90a": "nvidia-h100",
}
_CUDA = ("cuda -arch={} -max_shared_memory_per_block=49152 -max_threads_per_block=1024 -thread_warp_size=32 "
         "-registers_per_block=65536")
_PI = "llvm -mtriple={} -mcpu={} -mattr=+neon -num-cores=4"
# the names that TVM has for machines
TAGS: dict[str, str] = {
    **{f"nvidia/{name}": _CUDA.format(arch) for arch, names in _NVIDIA.items() for name in names.split()},
    "raspberry-pi/4b-aarch64": _PI.format("aarch64-linux-gnu", "cortex-a72"),
    "raspberry-pi/4b-64": _PI.format("aarch64-linux-gnu", "cortex-a72"),
    "raspberry-pi/5-aarch64": _PI.format("aarch64-linux-gnu", "cortex-a76"),
    **{f"aws/cpu/{name}": f"llvm -mcpu={cpu} -num-cores={cores}" for cpu, sizes in (
        ("skylake-avx512", "c5.large:1 c5.xlarge:2 c5.2xlarge:4 c5.4xlarge:8 c5.9xlarge:18"),
        ("cascadelake", "c5.12xlarge:24 c5.24xlarge:48")) for name, _, cores in (
            size.partition(":") for size in sizes.split())},
}
