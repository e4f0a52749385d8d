"""Wrong scripts: each refusal of tests/script/test_refusals.py, and what is no script at all."""
from __future__ import annotations

import re
from collections.abc import Callable

from tests.script.test_refusals import HEAD, ROWS
from tilewright.script import from_source, ir_module
from tilewright.script import tir as T

from .wrong_use import Section

SECTION = Section("Scripts (`@T.prim_func`)")
wrong = SECTION.wrong


def parsed(body: str) -> None:
    """The function f(A: float32[8, 8], n: int32) with this body."""
    from_source(HEAD + "".join(f"    {line}\n" for line in body.split("\n")))


def parse_of(body: str, name: str, read: Callable[[str], object] = parsed) -> Callable[[], None]:
    def parse() -> None:
        read(body)
    parse.__name__ = name
    return parse


def shown(body: str) -> str:
    """A body in one line, as code; `⏎` starts another line."""
    body = body.encode(errors="backslashreplace").decode()                   # lone surrogates
    lines = " ⏎ ".join(line.replace("    ", "  ") for line in body.split("\n"))
    return f"``{lines}``" if "`" in lines else f"`{lines}`"


# More bodies, with a part of what they say; the rows of test_refusals.py tell the place as well.
BODIES = [
    ("V = T.Buffer((65,), data=A.data)\nV[n] = 1.0", "is not inside of the memory of A (8 x 8, float32)"),
    ("with T.block(3):\n    A[0, 0] = 1.0", "the name of a block is a string"),
    ("with T.block('b'):\n    v = T.axis.spatial(8, A[0, 0])", "the value of an axis is float32, not an integer"),
    ("with T.block('b'):\n    T.reads(n[0])\n    A[0, 0] = 1.0", "a region is part of a buffer"),
    ("with T.block('b'):\n    T.reads(A[0:8:2, 0])\n    A[0, 0] = 1.0", "a region has no stride"),
    ("with T.block('b'):\n    T.where(n)\n    A[0, 0] = 1.0", "the condition is int32, not a bool"),
    ("A[0, 0] = (n, n)", "what is stored to A is no expression"),
    ("x = T.exp((n, n)) + A", "is not an expression"),
    ("A[0, 0] = (3)(n)", "3 cannot be called in a script"),
    ("A[0, 0] = n[0]", "has no elements"),
    ("A[0, 0] = A[0, 0:]", "a vector needs both ends"),
    ("if n in (1, 2):\n    A[0, 0] = 1.0", "`in` and `is` ask for values that are known only when the kernel runs"),
    ("A[0, 0] = len(n)", "len() of a value that is known only when the kernel runs"),
    ("T.evaluate(A.access_ptr('x'))", 'the access is "r", "w" or "rw"'),
    ("T.evaluate(A.access_ptr('r', offset=0.5))", "offset T.float32(0.5) is float32, not an integer"),
    ("T.evaluate(A.access_ptr('r', content_lanes=0))", "content_lanes is 0, not a number of lanes"),
    ("T.evaluate(A.access_ptr('r', 'int8'))", 'the type of a pointer is "handle", not'),
    ("A[0, 0] = T.shift_left(n, 1, dtype='int64')", "T.shift_left gives int32 here, not int64"),
    ("A[0, 0] = T.if_then_else(n > 0, n, n, dtype='float32')", "T.if_then_else gives int32 here, not float32"),
    ("T.func_attr({'target': T.target('nonsense')})", "unknown kind 'nonsense'"),
    ("for i, j in T.grid(8, 8, thread='x'):\n    A[i, j] = 1.0", "T.grid takes extents only"),
    ("with T.launch_thread(3, 8) as t:\n    A[t, 0] = 1.0", "a thread axis is named by a string"),
    ("while n > 0:\n    A[0, 0] = 1.0\nelse:\n    A[0, 0] = 2.0", "`else` of a loop is not part of the script"),
    ("A[0, 0] = T.reinterpret(n)", "T.reinterpret"),
    ("A[0, 0] = T.call_extern(n)", "starts with the dtype of its result"),
    ("A[0, 0] = T.call_llvm_pure_intrin('int32')", "takes the dtype of its result and a name"),
    ("A[0, 0:2] = T.Broadcast(1.0, n)", "the number of lanes is"),
    ("T.evaluate(T.address_of(n))", "T.address_of takes an element"),
    ("n[0] = 1", "only elements of buffers are assigned to"),
    ("A[0, 0] **= 2.0", "this operator is not part of the script language"),
    ("with T.block('b'):\n    T.where(*n)\n    A[0, 0] = 1.0", "`*` stands for the arguments of a function here"),
    ("B = T.alloc_buffer((8,), buffer_type='auto_broadcast')", "buffer_type='auto_broadcast' is not supported"),
    ("x: 3 = n", "the annotation of a variable is its type"),
    ("B, C = T.alloc_buffer((8,))", "a definition gives one name"),
    ("B = T.alloc_buffer((8,), annotations={'x': 1})", "T.alloc_buffer takes no annotations"),
    ("B = T.allocate((8,), 'int32', 'global', n > 0)", "T.allocate under a condition is not supported"),
    ("B = T.match_buffer()", "T.match_buffer starts with a parameter or a region"),
    ("with T.block('b'):\n    T.where('x')\n    A[0, 0] = 1.0", "is not an expression"),
]

# Whole texts.
TEXTS = [
    ("x = =", "this is not Python"),
    ("x = '\ud800'", "the text is not Unicode"),
    ("print(3)", "a text defines constants and one function or module, nothing else"),
    ("import os", "a text imports nothing but T and I, not os"),
    ("def f(): pass", "f is not under @T.prim_func"),
    ("@T.prim_func(name='g')\ndef f(): pass", "the decorator does not take these arguments"),
    ("@I.ir_module\nclass M:\n    @T.prim_func\n    def f():\n        T.evaluate(0)\n"
     "    @T.prim_func\n    def f():\n        T.evaluate(0)", "the module has a function f already"),
    ("@I.ir_module\nclass M:\n    x = 3", "a module holds functions under @T.prim_func, nothing else"),
    ("@T.prim_func\ndef f(n: T.int32, n: T.int32): pass", "there are two parameters n"),
    ("@T.prim_func\ndef f(A): pass", "the parameter A has no type"),
    ("@T.prim_func\ndef f(A: int): pass", "the parameter A is annotated with no type of T"),
    ("@T.prim_func\ndef f(n: T.int32 = 3): pass", "a kernel takes positional parameters without defaults"),
    ("@T.prim_func\ndef f(n: 'T.int32('): pass", "'T.int32(' is no type"),
]

for number, (body, part) in enumerate([*((body, part) for body, _, part, _ in ROWS), *BODIES]):
    wrong(shown(body), re.escape(part))(parse_of(body, f"script_{number}"))

for number, (text, part) in enumerate(TEXTS):
    wrong(f"the text {shown(text)}", re.escape(part))(parse_of(text, f"text_{number}", from_source))


@wrong("an expression of 8000 operations inside one another", r"this is nested too deeply for Python's own stack")
def deep_expression():
    parsed(f"A[0, 0] = {' + '.join(['n'] * 8000)}")


@wrong("the same in the type of a parameter", r"this is nested too deeply for Python's own stack")
def deep_type():
    from_source(f"@T.prim_func\ndef f(A: T.Buffer(({' + '.join(['1'] * 8000)},))): pass")


@wrong("so deep that Python does not read it", r"this is nested too deeply for Python's own stack")
def deep_text():
    from_source("x = " + "-" * 100_000 + "3")


@wrong("`T.prim_func(lambda a: a)`", r"no function definition stands here")
def function_lambda():
    T.prim_func(lambda a: a)


@wrong("`T.prim_func(3)`", r"@T\.prim_func stands on a function, not on 3")
def function_number():
    T.prim_func(3)


@wrong("`ir_module(3)`", r"@I\.ir_module stands on a class, not on 3")
def module_number():
    ir_module(3)


@wrong("a function in a module that is not under `@T.prim_func`", r"class Module: f is .*, not a PrimFunc")
def module_of_function():
    class Module:
        def f(self):
            pass
    ir_module(Module)


@wrong("a function without source", r"the source of f is not to be found")
def without_source():
    scope = {}
    exec("def f(): pass", scope)
    T.prim_func(scope["f"])


@wrong("`from_source(3)`", r"from_source takes a text, not 3")
def text_number():
    from_source(3)


@wrong("a text of two functions", r"the text defines 2 functions and modules, not one")
def text_of_two():
    from_source("\n".join(f"@T.prim_func\ndef {name}(a: T.handle):\n    A = T.match_buffer(a, (4,))\n    A[0] = 1.0"
                          for name in "fg"))


@wrong("`T.grid(3)` outside a script", r"T\.grid was called outside a script")
def outside():
    T.grid(3)
