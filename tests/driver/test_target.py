"""Target strings: what they mean, that they print and parse back, and what is wrong with the wrong ones."""
import copy
import pickle
import subprocess
import sys
import textwrap
import threading

import llvmlite.binding as llvm
import pytest

from tilewright.support.errors import TargetError
from tilewright.support.target import Target, cpus, target
from tilewright.support.target.cpus import host_cpu
from tilewright.support.target.kinds import KINDS


def test_the_default_is_this_host():
    cpu, features, triple = host_cpu()
    assert (target().mcpu, target().features, target().triple) == (cpu, features, triple)
    assert target().is_host and target("llvm -mcpu=native") == target() == Target() == Target("llvm")


@pytest.mark.parametrize("text", [
    "llvm", "llvm -mcpu=x86-64-v3", "llvm --mcpu x86-64-v3 -num-cores 3", "llvm -opt-level=1 -mattr=-avx512f",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", "llvm -keys=cpu,wide", "c", "cuda -arch=sm_90"])
def test_targets_print_and_parse_back(text):
    t = target(text)
    assert str(t) == text and target(str(t)) == t and hash(target(str(t))) == hash(t)
    assert pickle.loads(pickle.dumps(t)) == copy.deepcopy(t) == Target(t) == t


def test_flags_are_read_in_every_spelling():
    assert {target(f"llvm {flags}").num_cores for flags in (
        "-num-cores=3", "--num-cores=3", "-num-cores 3", "--num-cores 3", "-num-cores=3 -num-cores=3")} == {3}
    assert target("llvm -keys=cpu,wide").keys == ("cpu", "wide")
    assert target("llvm -opt-level=0").opt_level == 0


@pytest.mark.parametrize("cpu, width, features", [
    ("generic", 16, {"sse2"}), ("x86-64-v2", 16, {"sse4.2", "popcnt"}), ("sandybridge", 32, {"avx"}),
    ("haswell", 32, {"avx2", "fma", "f16c"}), ("znver3", 32, {"avx2", "fma"}), ("knl", 64, {"avx512f", "avx512cd"}),
    ("skylake-avx512", 64, {"avx512f", "avx512dq", "avx512vl", "fma"}), ("znver5", 64, {"avx512bw"})])
def test_what_x86_cpus_have(cpu, width, features):
    t = target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu}")
    assert t.vector_bytes == width and features <= t.feature_set and t.has_feature("sse2")
    assert not t.has_feature("avx512vl") or width == 64 and cpu != "knl"


@pytest.mark.parametrize("mattr, width, gone", [
    ("-avx512f", 32, {"avx512f", "avx512vl", "avx512bw"}), ("-avx2", 32, {"avx2", "avx512f"}),
    ("-avx", 16, {"avx", "avx2", "fma", "f16c", "avx512dq"}), ("-avx512vl", 64, {"avx512vl"}),
    ("-avx2,+avx512f", 64, set()), ("+avx512f,-fma", 32, {"fma", "avx512f"})])
def test_features_are_taken_away_with_all_that_needs_them(mattr, width, gone):
    t = target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr={mattr}")
    assert t.vector_bytes == width and not gone & t.feature_set


def test_features_bring_what_they_need():
    t = target("llvm -mtriple=x86_64-unknown-linux-gnu -mattr=+avx512vl")
    assert {"avx512f", "avx2", "fma", "f16c", "sse4.2"} <= t.feature_set


def test_other_architectures():
    arm, old, risc = (target(f"llvm -mtriple={arch}-linux-gnu") for arch in ("aarch64", "armv7l", "riscv64"))
    assert arm.has_feature("fma") and arm.has_feature("neon") and arm.vector_bytes == 16
    assert not old.has_feature("fma") and risc.has_feature("fma")
    assert not any(t.is_host for t in (arm, old, risc)) or host_cpu()[2].startswith("aarch64")


def test_parsing_imports_no_llvm():
    """Nor does the import of targets; LLVM is loaded where this host is asked about."""
    code = """
        import sys
        import tilewright.support.target
        from tilewright import Target
        made = [Target(text) for text in (
            "cuda -arch=sm_90", "c", "llvm", "llvm -mcpu=znver4", "llvm -mcpu=native -mattr=+avx2,-sse4a", "vulkan",
            "llvm -mcpu=znver4 -mattr=+avx2 -mtriple=aarch64-linux-gnu", "nvidia/nvidia-h100", "raspberry-pi/4b-64",
            "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx512f")]
        assert made[0] == Target("cuda --arch sm_90") != Target("cuda"), made[0].attrs
        assert [t.num_cores > 0 and t.keys and t.opt_level for t in made] == [3] * len(made)
        print("llvmlite" in sys.modules)
        print(made[2].mcpu == made[1].mcpu != "", "llvmlite" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


def test_the_host_by_the_name_of_its_cpu():
    cpu, features, triple = host_cpu()
    named = Target(f"llvm -mcpu={cpu}")
    assert named == Target("llvm") and hash(named) == hash(Target("llvm")) and named.features == features
    assert Target(f"llvm -mcpu={cpu} -mtriple=sparc-linux-gnu").features == ""
    assert Target("llvm -num-cores=3") != Target("llvm -num-cores=5") != Target("c -num-cores=5")


def test_the_record_of_the_code():
    """The kind first, then all that code depends on: not the cores, the host or the tag."""
    kind, keys, *said = Target("llvm -mcpu=znver4 -mtriple=x86_64-linux-gnu -opt-level=1 -num-cores=3").code_record
    assert (kind, keys) == ("llvm", ("cpu",))
    assert dict(said)["mcpu"] == "znver4" and dict(said)["opt-level"] == 1 and "num-cores" not in dict(said)
    assert Target("nvidia/nvidia-h100").code_record[0] == "cuda" and "tag" in Target("nvidia/nvidia-h100").attrs
    texts = ("llvm", "c", "llvm -opt-level=1", "llvm -mattr=-avx2", "llvm -keys=wide", "llvm -libs=cblas", "cuda",
             "cuda -arch=sm_90", "cuda -thread_warp_size=64", "vulkan -supports_float16=True", "vulkan")
    assert len({target(text).code_record for text in texts}) == len(texts)
    assert Target("cuda -max_num_threads=1024 -host=llvm").code_record == Target("cuda").code_record


def test_every_kind_has_a_table_of_attributes():
    for name, kind in KINDS.items():
        t = Target(name)
        for a in kind.attributes.values():
            assert a.doc and (a.default is None or type(a.default) is a.type and t.attrs[a.name] == a.default)
            assert getattr(t, a.name.replace("-", "_")) is not None or a.type is int or a.name == "host"


def test_triples_begin_as_llvm_knows_them():
    names = """toaster x86 x86_64 x86_64h amd64 i286 i386 i686 aarch64 aarch64_be arm64 arm64e arm armv6 armv7l
    armebv7 thumb thumbv7em riscv riscv32 riscv64 wasm wasm32 wasm64 nvptx64 amdgcn amdgpu spirv64 powerpc64le ppc
    s390 s390x mips mips64el mipsisa64r6 sparc sparcv9 loongarch64 bpf hexagon avr msp430 xcore csky m68k""".split()
    llvm.initialize_all_targets()
    for name in names:
        try:
            known = bool(llvm.Target.from_triple(f"{name}-unknown-linux-gnu"))
        except RuntimeError:
            known = False
        assert known == cpus.is_architecture(name), name


def test_another_system_is_not_the_host():
    arch = host_cpu()[2].split("-")[0]
    systems = {s: target(f"llvm -mtriple={arch}-{s}").is_host for s in
               ("unknown-linux-gnu", "pc-linux-gnu", "apple-darwin", "pc-windows-msvc")}
    assert sum(systems.values()) in (1, 2) and systems["unknown-linux-gnu"] == systems["pc-linux-gnu"]


def test_every_x86_cpu_of_the_table_is_one_of_llvm(capfd):
    """LLVM says on stderr when it does not know a CPU or a feature."""
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    for cpu in cpus.X86_CPUS:
        features = ",".join(f"+{f}" for f in sorted(cpus.resolve("x86_64", cpu, ())))
        machine.create_target_machine(cpu=cpu, features=features)
    for feature in cpus.X86_FEATURES:
        machine.create_target_machine(cpu="generic", features=f"+{feature}")
    assert capfd.readouterr().err == ""


GATHER = """declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, <8 x i1>, <8 x float>)
define <8 x float> @f(<8 x ptr> %at, <8 x i1> %on) {
  %r = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4 %at, <8 x i1> %on, <8 x float> zeroinitializer)
  ret <8 x float> %r
}"""


def test_cpus_with_a_fast_gather_are_those_of_which_llvm_uses_it():
    """LLVM uses it on all CPUs with AVX-512, also where loads take less time."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    for cpu in cpus.X86_CPUS:
        code = machine.create_target_machine(cpu=cpu).emit_assembly(llvm.parse_assembly(GATHER))
        fast = cpus.gathers(cpus.resolve("x86_64", cpu, ()), 32)
        assert fast == ("vgather" in code and not cpu.startswith("znver")), cpu


def test_targets_nest_and_belong_to_a_thread():
    seen = []
    with Target("llvm -num-cores=3") as outer:
        assert target() is outer
        with Target("llvm -num-cores=5"):
            assert target().num_cores == 5
        worker = threading.Thread(target=lambda: seen.append(target()))
        worker.start()
        worker.join()
        assert target().num_cores == 3
    assert Target.current() is None and seen == [target("llvm")]


WRONG = {
    "": "unknown kind ''",
    "opengl": "unknown kind 'opengl'",
    "nvidia/geforce": "unknown kind 'nvidia/geforce'",
    "vulkan 3": "'3' is not a flag",
    "llvm -cpu=znver4": "'-cpu=znver4' is not a flag",
    "llvm znver4": "'znver4' is not a flag",
    "llvm -mcpu": "-mcpu needs a value",
    "llvm -mcpu -num-cores=2": "-mcpu needs a value",
    "llvm -mcpu=haswell -mcpu=znver4": "-mcpu is given twice",
    "llvm -mtriple=x86_64-linux-gnu -mcpu=pentium9": "no x86-64 CPU 'pentium9'",
    "llvm -mtriple=toaster-linux-gnu": "-mtriple=toaster-linux-gnu",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=native": "-mcpu=native is this machine",
    "llvm -mattr=avx2": "-mattr item 'avx2'",
    "llvm -mattr=+": "-mattr item '\\+'",
    "llvm -mattr=,": "-mattr item ''",
    "llvm -num-cores=0": "-num-cores=0 is not an integer from 1",
    "llvm -num-cores=two": "-num-cores=two is not an integer",
    "llvm -num-cores=²": "-num-cores=² is not an integer",
    "llvm -opt-level=4": "-opt-level=4 is not an integer from 0 to 3",
    "llvm -mcpu='znver4": "No closing quotation",
    "cuda -mcpu=znver4": "the flags of cuda are -arch, -max_num_threads",
    "c -arch=sm_90": "the flags of c are -mcpu, -mattr",
    "cuda -max_num_threads=many": "-max_num_threads=many is not an integer from 0 to",
    "cuda -arch": "-arch needs a value \\(GPU architecture\\)",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_targets(text):
    with pytest.raises(TargetError, match=WRONG[text]):
        target(text)


@pytest.mark.skipif(not host_cpu()[2].startswith("x86_64"), reason="the names of features are the host's")
def test_features_that_there_are_not():
    with pytest.raises(TargetError, match="no feature 'warp'"):
        target("llvm -mattr=+warp")


def test_the_forms_of_tvm():
    assert Target(target="llvm -mcpu=znver4", host="llvm") == target("llvm -mcpu=znver4")
    fields = {"kind": "llvm", "mcpu": "znver4", "mattr": ["+avx2", "-sse4a"], "num-cores": 4}
    assert Target(fields) == target("llvm -mcpu=znver4 -mattr=+avx2,-sse4a -num-cores=4")
    with pytest.raises(TargetError, match="'-mcp=x' is not a flag"):
        target({"kind": "llvm", "mcp": "x"})


def test_targets_of_other_kinds_are_described():
    assert Target("llvm", host="llvm -mcpu=znver4").host == target("llvm -mcpu=znver4")
    assert Target("cuda -host=llvm").host == target("llvm") and Target("cuda").host is None
    gpu = Target("nvidia/geforce-rtx-3090").with_host("llvm")
    assert (gpu.kind.name, gpu.arch, gpu.max_threads_per_block, gpu.host) == ("cuda", "sm_86", 1024, target("llvm"))
    assert Target(gpu.export()) == Target(str(gpu)) and Target(gpu.export()).host == gpu.host
    screen = Target("vulkan -device_name='A name with spaces' -supports_float16=True -max_num_threads=64")
    assert screen.attrs["device_name"] == "A name with spaces" and screen.supports_float16 is True
    assert screen.max_num_threads == 64 and screen.attrs["thread_warp_size"] == 1
    pi = Target("raspberry-pi/4b-aarch64")
    assert pi.mcpu == "cortex-a72" and pi.num_cores == 4 and not pi.is_host and pi.model == "" and pi.libs == []
    assert Target("llvm -libs=cblas,mkl").libs == ["cblas", "mkl"] and {"llvm", "cuda"} <= set(Target.list_kinds())
    assert Target("cuda -arch=sm_80") != Target("cuda -arch=sm_86") == Target("cuda --arch sm_86")
    for name in ("flavour", "_private", "vector_width"):
        with pytest.raises(AttributeError):
            getattr(pi, name)


def test_targets_and_hosts_in_one_form():
    one, host = Target.canon_target_and_host("llvm", "llvm -num-cores=2")
    assert one == target("llvm") and one.host is host and host.num_cores == 2
    assert Target.canon_target_and_host(None) == (None, None) and Target.canon_target(None) is None
    with pytest.raises(TargetError, match="a host is given"):
        Target.canon_target_and_host(None, "llvm")
    assert [t.host for t in Target.canon_multi_target_and_host(["llvm", "cuda"], "llvm")] == [target("llvm")] * 2
    table, host = Target.canon_target_map_and_host({"cuda": 1, "llvm": 2}, "llvm")
    assert table == {target("cuda"): 1, target("llvm"): 2} and host == target("llvm")
    assert Target.from_device("cpu") == target("llvm")
    with pytest.raises(TargetError, match="no device of this machine"):
        Target.from_device("cuda:0")


@pytest.mark.parametrize("spec", [3, b"llvm", ["llvm"], object(), {}, {"mcpu": "znver4"}, {"kind": 3}])
def test_what_is_no_target(spec):
    with pytest.raises(TargetError, match="is not a target"):
        target(spec)
