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


@FILES.wrong("`load_module` of a file that is not there", "")
def missing_file():
    tw.load_module("nowhere.so")


@FILES.wrong("`load_module` of a folder", "")
def folder_as_module():
    with folder() as f:
        (f / "m.so").mkdir()
        tw.load_module("m.so")


@FILES.wrong("`load_module` of an empty .so", "")
def empty_library():
    with folder() as f:
        (f / "m.so").write_bytes(b"")
        tw.load_module("m.so")


@FILES.wrong("`load_module` of text named .so", "")
def text_library():
    with folder() as f:
        (f / "m.so").write_text("hello")
        tw.load_module("m.so")


@FILES.wrong("`load_module` of text named .o", "")
def text_object():
    with folder() as f:
        (f / "m.o").write_text("hello")
        tw.load_module("m.o")


@FILES.wrong("`load_module` of half an object", "")
def half_object():
    with folder() as f:
        matmul_kernel().save("m.o")
        data = (f / "m.o").read_bytes()
        at = data.find(b":END-TILEWRIGHT") + 15
        (f / "m.o").write_bytes(data[:at])
        tw.load_module("m.o")(*(zeros(16, 16) for _ in range(3)))


@FILES.wrong("`load_module` of an object whose description is damaged", "")
def damaged_description():
    with folder() as f:
        matmul_kernel().save("m.o")
        data = (f / "m.o").read_bytes()
        (f / "m.o").write_bytes(data.replace(b'{"version"', b'{"versio\xff"'))
        tw.load_module("m.o")


@FILES.wrong("`load_module` of an object whose signature is damaged", "")
def damaged_signature():
    with folder() as f:
        matmul_kernel().save("m.o")
        data = (f / "m.o").read_bytes()
        at = data.find(b'"functions": {"matmul": "') + 25
        (f / "m.o").write_bytes(data[:at] + b"AAAA" * 8 + data[at + 32:])
        tw.load_module("m.o")


@FILES.wrong("`load_module(3)`", "")
def load_number():
    tw.load_module(3)


@FILES.wrong("`m.save(\"m.txt\")`", "")
def save_text():
    with folder():
        matmul_kernel().save("m.txt")


@FILES.wrong("`m.save` to a folder that is not there", "")
def save_nowhere():
    with folder():
        matmul_kernel().save("nowhere/m.o")


@FILES.wrong("`m.save` over a folder", "")
def save_over_folder():
    with folder() as f:
        (f / "m.o").mkdir()
        matmul_kernel().save("m.o")


@FILES.wrong("`m.export_library(\"m.so\", cc=\"no-such-linker\")`", "")
def no_linker():
    with folder():
        matmul_kernel().export_library("m.so", cc="no-such-linker")


@FILES.wrong("`m.export_library` with a linker that fails", "")
def failing_linker():
    with folder():
        matmul_kernel().export_library("m.so", cc="false")


@FILES.wrong("`m.export_library` with an empty linker", "")
def empty_linker():
    with folder():
        matmul_kernel().export_library("m.so", cc="")


def build():
    s, tensors = staged()
    return tw.build(s, list(tensors), "llvm", name="settings")


@SETTINGS.wrong("`TILEWRIGHT_NUM_THREADS=many`", "")
def threads_text():
    with environment(TILEWRIGHT_NUM_THREADS="many"):
        tw.get_num_threads()


@SETTINGS.wrong("`TILEWRIGHT_NUM_THREADS=-2`", "")
def threads_negative():
    with environment(TILEWRIGHT_NUM_THREADS="-2"):
        tw.get_num_threads()


@SETTINGS.wrong("`TILEWRIGHT_NUM_THREADS=99999999999`", "")
def threads_huge():
    with environment(TILEWRIGHT_NUM_THREADS="99999999999"):
        tw.get_num_threads()


@SETTINGS.wrong("`TILEWRIGHT_CACHE_SIZE_MB=big`", "")
def cache_size_text():
    with environment(TILEWRIGHT_CACHE_SIZE_MB="big"):
        object_cache()


@SETTINGS.wrong("`TILEWRIGHT_CACHE_SIZE_MB=-1`", "")
def cache_size_negative():
    with environment(TILEWRIGHT_CACHE_SIZE_MB="-1"):
        object_cache()


@SETTINGS.wrong("`TILEWRIGHT_CACHE=maybe`", "")
def cache_maybe():
    with environment(TILEWRIGHT_CACHE="maybe"):
        build()


@SETTINGS.wrong("`TILEWRIGHT_VERIFY=perhaps`", "")
def verify_perhaps():
    with environment(TILEWRIGHT_VERIFY="perhaps", TILEWRIGHT_CACHE="0"):
        build()


@SETTINGS.wrong("`TILEWRIGHT_DUMP` names a file", "")
def dump_is_file():
    with folder() as f, environment(TILEWRIGHT_DUMP="dump"):
        (f / "dump").write_text("mine")
        build()


@SETTINGS.wrong("an unknown setting: `TILEWRIGHT_NUM_THREAD=2`", "")
def unknown_setting():
    with environment(TILEWRIGHT_NUM_THREAD="2"):
        build()
