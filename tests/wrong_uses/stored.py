"""Wrong files, settings and command lines."""
from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import tilewright as tw
from tilewright.records.objects import object_cache

from .programs import matmul_kernel, staged, zeros
from .wrong_use import Section

FILES = Section("Files")
SETTINGS = Section("Settings")


@contextmanager
def folder():
    """A temporary folder, which is the current one inside, so that messages have no machine's paths."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(".")
        finally:
            os.chdir(before)


@contextmanager
def environment(**variables):
    """The process's environment with these variables inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@FILES.wrong("`load_module` of a file that is not there",
             r"load_module: there is no file nowhere\.so")
def missing_file():
    tw.load_module("nowhere.so")


@FILES.wrong("`load` of a file that is not there",
             r"load: there is no file nowhere\.so(.|\n)*export of a model, write such files")
def missing_model():
    tw.load("nowhere.so")


@FILES.wrong("`load` of a file of another kind",
             r"load: m\.onnx was not written by Tilewright(.|\n)*export of a model, write such files")
def foreign_model():
    with folder() as f:
        (f / "m.onnx").write_bytes(b"\x08\x07")
        tw.load("m.onnx")


@FILES.wrong("`load_module` of a folder",
             r"load_module: there is no file m\.so")
def folder_as_module():
    with folder() as f:
        (f / "m.so").mkdir()
        tw.load_module("m.so")


@FILES.wrong("`load_module` of an empty .so",
             r"load_module: m\.so was not written by Tilewright")
def empty_library():
    with folder() as f:
        (f / "m.so").write_bytes(b"")
        tw.load_module("m.so")


@FILES.wrong("`load_module` of text named .so",
             r"load_module: m\.so was not written by Tilewright")
def text_library():
    with folder() as f:
        (f / "m.so").write_text("hello")
        tw.load_module("m.so")


@FILES.wrong("`load_module` of text named .o",
             r"load_module: m\.o was not written by Tilewright")
def text_object():
    with folder() as f:
        (f / "m.o").write_text("hello")
        tw.load_module("m.o")


@FILES.wrong("`load_module` of half an object",
             r"load_module: m\.o is damaged, or was changed: it has no checksum at its end")
def half_object():
    with folder() as f:
        matmul_kernel().save("m.o")
        data = (f / "m.o").read_bytes()
        at = data.find(b":END-TILEWRIGHT") + 15
        (f / "m.o").write_bytes(data[:at])
        tw.load_module("m.o")(*(zeros(16, 16) for _ in range(3)))


@FILES.wrong("`load_module` of an object of which one byte is another one",
             r"load_module: m\.o is damaged: its checksum is another one")
def damaged_object():
    with folder() as f:
        matmul_kernel().save("m.o")
        data = bytearray((f / "m.o").read_bytes())
        data[len(data) // 2] ^= 1
        (f / "m.o").write_bytes(data)
        tw.load_module("m.o")


@FILES.wrong("`load_module` of an object that a compiler wrote",
             r"load_module: m\.o was not written by Tilewright")
def foreign_object():
    with folder() as f:
        (f / "m.o").write_bytes(matmul_kernel().objects[0])
        tw.load_module("m.o")


@FILES.wrong("`load_module` of a library that was linked of saved objects, with a damaged description",
             r"load_module: m\.so is damaged: the description of its functions does not parse")
def damaged_description():
    with folder():
        matmul_kernel().export_library("m.so", cc=_damaged)
        tw.load_module("m.so")


def _damaged(path, objects):
    """As a linker would, but for the description."""
    data = Path(objects[0]).read_bytes()
    Path(path).write_bytes(b"text" + data[data.find(b"TILEWRIGHT-MODULE"):-40].replace(b'{"version"', b'{"versio\xff"'))


@FILES.wrong("`load_module(3)`",
             r"load_module: 3 is not a path")
def load_number():
    tw.load_module(3)


@FILES.wrong("`m.save(\"m.txt\")`",
             r"save\('m\.txt'\): unknown kind of file")
def save_text():
    with folder():
        matmul_kernel().save("m.txt")


@FILES.wrong("`m.save` to a folder that is not there",
             r"cannot write nowhere/m\.o: there is no folder nowhere")
def save_nowhere():
    with folder():
        matmul_kernel().save("nowhere/m.o")


@FILES.wrong("`m.save` over a folder",
             r"cannot write m\.o: Is a directory")
def save_over_folder():
    with folder() as f:
        (f / "m.o").mkdir()
        matmul_kernel().save("m.o")


@FILES.wrong("`m.export_library(\"m.so\", cc=\"no-such-linker\")`",
             r"the linker cannot be started: \[Errno 2\] No such file or directory: 'no-such-linker'")
def no_linker():
    with folder():
        matmul_kernel().export_library("m.so", cc="no-such-linker")


@FILES.wrong("`m.export_source` of a module that is not for C",
             r"the module has no source files")
def source_of_llvm():
    with folder() as f:
        matmul_kernel().export_source(f)


@FILES.wrong("`m.export_library` with a linker that fails",
             r"the linker failed \(1\): false -shared -o")
def failing_linker():
    with folder():
        matmul_kernel().export_library("m.so", cc="false")


@FILES.wrong("`m.export_library` with an empty linker",
             r"cc is '', not a command")
def empty_linker():
    with folder():
        matmul_kernel().export_library("m.so", cc="")


def build():
    s, tensors = staged()
    return tw.build(s, list(tensors), "llvm", name="settings")


@SETTINGS.wrong("`TILEWRIGHT_NUM_THREADS=many`",
                r"TILEWRIGHT_NUM_THREADS='many' is not an integer from 0 to 1024 \(threads of a parallel region; 0: as")
def threads_text():
    with environment(TILEWRIGHT_NUM_THREADS="many"):
        tw.get_num_threads()


@SETTINGS.wrong("`build` under `TILEWRIGHT_NUM_THREADS=abc`",
                r"TILEWRIGHT_NUM_THREADS='abc' is not an integer from 0 to 1024")
def threads_text_while_building():
    with environment(TILEWRIGHT_NUM_THREADS="abc"):
        build()


@SETTINGS.wrong("`TILEWRIGHT_NUM_THREADS=-2`",
                r"TILEWRIGHT_NUM_THREADS='-2' is not an integer from 0 to 1024")
def threads_negative():
    with environment(TILEWRIGHT_NUM_THREADS="-2"):
        tw.get_num_threads()


@SETTINGS.wrong("`TILEWRIGHT_NUM_THREADS=99999999999`",
                r"TILEWRIGHT_NUM_THREADS='99999999999' is not an integer from 0 to 1024")
def threads_huge():
    with environment(TILEWRIGHT_NUM_THREADS="99999999999"):
        tw.get_num_threads()


@SETTINGS.wrong("`TILEWRIGHT_CACHE_SIZE_MB=big`",
                r"TILEWRIGHT_CACHE_SIZE_MB='big' is not an integer from 0 to 1073741824 \(size at which the oldest")
def cache_size_text():
    with environment(TILEWRIGHT_CACHE_SIZE_MB="big"):
        object_cache()


@SETTINGS.wrong("`TILEWRIGHT_CACHE_SIZE_MB=-1`",
                r"TILEWRIGHT_CACHE_SIZE_MB='-1' is not an integer from 0 to 1073741824 \(size at which the oldest")
def cache_size_negative():
    with environment(TILEWRIGHT_CACHE_SIZE_MB="-1"):
        object_cache()


@SETTINGS.wrong("`TILEWRIGHT_CACHE=maybe`",
                r"TILEWRIGHT_CACHE='maybe' is neither yes nor no \(keep compiled objects on disk between processes\)")
def cache_maybe():
    with environment(TILEWRIGHT_CACHE="maybe"):
        build()


@SETTINGS.wrong("`TILEWRIGHT_VERIFY=perhaps`",
                r"TILEWRIGHT_VERIFY='perhaps' is neither yes nor no \(run the verifier after every pass\)")
def verify_perhaps():
    with environment(TILEWRIGHT_VERIFY="perhaps", TILEWRIGHT_CACHE="0"):
        build()


@SETTINGS.wrong("`TILEWRIGHT_DUMP` names a file",
                r"TILEWRIGHT_DUMP='dump': \d+_settings_\w+\.py cannot be written: File exists")
def dump_is_file():
    with folder() as f, environment(TILEWRIGHT_DUMP="dump"):
        (f / "dump").write_text("mine")
        build()


@SETTINGS.wrong("an unknown setting: `TILEWRIGHT_NUM_THREAD=2`",
                r"TILEWRIGHT_NUM_THREAD is no setting of Tilewright")
def unknown_setting():
    with environment(TILEWRIGHT_NUM_THREAD="2"):
        build()
