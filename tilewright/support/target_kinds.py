"""Kinds of targets, the flags of their strings, and the names of machines that stand for whole strings."""
from __future__ import annotations

# kind -> the word by which schedule rules know it; there is code generation for "llvm" alone
KINDS = {
    "llvm": "cpu", "c": "cpu", "hybrid": "cpu", "stackvm": "cpu", "hexagon": "hexagon", "ext_dev": "ext_dev",
    "composite": "composite", "cuda": "cuda", "nvptx": "cuda", "rocm": "rocm", "opencl": "opencl", "metal": "metal",
    "vulkan": "vulkan", "webgpu": "webgpu", "sdaccel": "sdaccel", "aocl": "aocl",
}
# flags of "llvm", "c" and "cuda"; the strings of the other kinds take any: nothing is made of them
FLAGS = {
    "mcpu": "CPU name", "mattr": "features, +a,-b", "mtriple": "target triple", "num-cores": "cores",
    "opt-level": "0 to 3", "keys": "words for schedule rules", "libs": "libraries", "device": "device words",
    "model": "device model", "arch": "GPU architecture", "max_threads_per_block": "GPU limit",
    "max_shared_memory_per_block": "GPU limit", "registers_per_block": "GPU limit", "l2_cache_size_bytes": "GPU limit",
    "max_num_threads": "GPU limit", "thread_warp_size": "GPU limit", "host": "host target",
    "tag": "name of the machine", "target": "target triple, as in 2018",
}
STRICT = ("llvm", "c", "cuda")
# what a GPU has unless its string says otherwise
LIMITS = {
    "cuda": {"max_num_threads": "1024", "thread_warp_size": "32"},
    "nvptx": {"max_num_threads": "1024", "thread_warp_size": "32"},
    "rocm": {"max_num_threads": "256", "thread_warp_size": "64"},
    "opencl": {"max_num_threads": "256", "thread_warp_size": "1"},
    "metal": {"max_num_threads": "256", "thread_warp_size": "16"},
    "vulkan": {"max_num_threads": "256", "thread_warp_size": "1"},
    "webgpu": {"max_num_threads": "256"},
}
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
