"""What is no script is refused with the line, a caret under the column, what is wrong and what to do."""
from __future__ import annotations

import sys
from textwrap import dedent

import pytest

from tilewright.script import from_source, ir_module
from tilewright.script import tir as T
from tilewright.support.errors import ScriptError, TilewrightError

HEAD = '@T.prim_func\ndef f(A: T.Buffer((8, 8), "float32"), n: T.int32):\n'


def message(body: str) -> str:
    with pytest.raises(ScriptError) as caught:
        from_source(HEAD + "".join(f"    {line}\n" for line in dedent(body).strip("\n").split("\n")))
    return str(caught.value)


def test_lines_are_those_of_python():
    text = HEAD + "    A[0, 0] = 1.0 # a\u2028b\x0c\x0bc\n    A[0, 0] = B[0]\n"
    for end in ("\n", "\r\n", "\r"):
        with pytest.raises(ScriptError, match=r"<script>:4: the name 'B'.*\n\n *A\[0, 0\] = B\[0\]\n *\^\n?$"):
            from_source(text.replace("\n", end))


def test_two_parameters_of_one_name():
    with pytest.raises(ScriptError, match="there are two parameters n"):
        from_source("@T.prim_func\ndef f(n: T.int32, n: T.int32):\n    pass")


def test_the_whole_message():
    assert message("for i in T.gird(8):\n    A[i, 0] = 1.0") == dedent("""
        <script>:3: T has no name 'gird'

                for i in T.gird(8):
                         ^^^^^^

        hint: did you mean T.grid?
    """).strip("\n")


# (body, the text that the caret is under, a part of the message, a part of the hint)
ROWS = [
    # Python that is no part of the language
    ("for i in range(8):\n    pass\nelse:\n    pass", "pass", "`else` of a loop", ""),
    ("x = lambda y: y", "lambda y: y", "a lambda is not part", "outside the function"),
    ("try:\n    pass\nfinally:\n    pass", "try:", "`try` is not part", ""),
    ("A[0, 0] = [x for x in y]", "[x for x in y]", "a comprehension is not part", ""),
    ("A[0, 0] = sum(x for x in y)", "(x for x in y)", "a comprehension is not part", ""),
    ("A[0, 0] = f'x'", "f'x'", "an f-string is not part", ""),
    ("import os", "import os", "`import` is not part", "outside"),
    ("return A", "return A", "`return` is not part", "buffers"),
    ("while n > 0:\n    break", "break", "`break` is not part", "`while`"),
    ("assert 3 > 4, 'never'", "assert 3 > 4, 'never'", "the assertion 3 > 4 does not hold: never", ""),
    ("T.Assert(n)", "n", "the condition is int32, not a bool", "compare: x != 0"),
    ("assert (n > 3, 'small')", "(n > 3, 'small')", "(n > 3, 'small') is no condition", "no parentheses around it"),
    ("assert n > 3, 'a\\0b'", "assert n > 3, 'a\\0b'", "has characters that no message can show", ""),
    ("assert n > 3, '\\ud800'", "assert n > 3, '\\ud800'", "has characters that no message can show", ""),
    ("if A:\n    pass", "A", "A is no condition", "A[i] > 0"),
    ("A[0, 0] = 1.0 if [n] else 2.0", "[n]", "[n] is no condition", ""),
    ("T.func_attr({'global_symbol': 3})", "{'global_symbol': 3}", "the name of a function is a text, not 3", ""),
    ("T.Assert(n > 3, 5)", "T.Assert(n > 3, 5)", "the message of an assertion is a text, not 5", ""),
    ("with T.Assert(n > 3) as x:\n    A[0, 0] = 1.0", "x", "T.Assert gives no value", ""),
    ("with T.attr(A, 'compute_scope', 1):\n    A[0, 0] = 1.0", "'compute_scope'",
     "the attribute 'compute_scope' has no meaning here", "thread_extent"),
    ("with T.attr(0, 'pragma_x', 1):\n    A[0, 0] = 1.0", "T.attr(0, 'pragma_x', 1)", "belongs to a loop",
     "with T.attr(...): for ...:"),
    ("T.buffer_store(n, 1.0, [0, 0])", "n", "T.buffer_store starts with a buffer", "T.buffer_store(B, value"),
    ("def g():\n    pass", "def g():", "a function inside a function", "outside"),
    ("with open('f') as g:\n    pass", "open('f')", "`with open('f')` is not part", "T.block"),
    ("x = A[0, 0] @ A[0, 0]", "A[0, 0] @ A[0, 0]", "`@` is not part", ""),
    ("x = y = n", "x = y = n", "one target", ""),
    ("(x := 3)", "x := 3", "not part of the script language", ""),
    ("A[0, 0] = ().__class__", "().__class__", "__class__ is not part", ""),
    ("A[0, 0] = __import__('os').system('ls')", "__import__", "not defined here", ""),
    ("n", "n", "is not used", "T.evaluate"),
    ("for i in [1, 2]:\n    pass", "[1, 2]", "a loop runs over", ""),
    # what Python would decide now, and by identity
    ("if A == 0:\n    pass", "A == 0", "A is compared", "A[i] == 0"),
    ("if 3 in [n]:\n    pass", "3 in [n]", "[n] is compared", ""),
    ("x = bool([n])", "bool([n])", "[n] is no condition", ""),
    ("x = {'a': 1}['b']", "{'a': 1}['b']", "there is no key 'b'", ""),
    # names
    ("A[0, 0] = m", "m", "the name 'm' is not defined", ""),
    ("A[0, 0] = Aa[0, 0]", "Aa", "the name 'Aa' is not defined", "did you mean A?"),
    ("A[0, 0] = T.exq(A[0, 0])", "T.exq", "T has no name 'exq'", "T.exp"),
    ("with T.block('b'):\n    v = T.axis.spatail(8, n)", "T.axis.spatail", "no name 'spatail'", "T.axis.spatial"),
    ("A[0, 0] = n.foo", "n.foo", "an expression has no attribute 'foo'", ""),
    ("A[0, 0] = A.vlod([0, 0])", "A.vlod", "a buffer has no attribute 'vlod'", "vload"),
    ("if n > 3:\n    z = 1\nA[0, 0] = z", "z", "the name 'z' is not defined", ""),
    ("x = n\nfor i in range(3):\n    x = x + 1", "x", "bound outside", "buffer of one element"),
    ("n += 1", "n += 1", "keeps its value", "A[i] +="),
    # forms in the wrong place, or with wrong arguments
    ("T.grid(3)", "T.grid(3)", "does not stand alone", "for i in T.grid"),
    ("x = T.grid(3)", "T.grid(3)", "no value to assign", "for i in"),
    ("A[0, 0] = 1 + T.grid(3)", "T.grid(3)", "a statement of its own", ""),
    ("with T.grid(3):\n    pass", "T.grid(3)", "`with T.grid` is not", "for i in T.grid"),
    ("T.block('a')", "T.block('a')", "does not stand alone", "with T.block"),
    ("T.alloc_buffer((3,))", "T.alloc_buffer((3,))", "does not stand alone", "name = T.alloc_buffer"),
    ("for i, j in T.grid(8):\n    pass", "i, j", "2 loop variable(s) for the 1 loop(s)", ""),
    ("for i, j in range(8):\n    pass", "i, j", "2 loop variables for the 1 loop", "T.grid"),
    ("for i in range(0, 8, 2):\n    pass", "range(0, 8, 2)", "one or two bounds, 3 given", "step"),
    ("for i in range(0.5):\n    pass", "range(0.5)", "the bound of a loop is float32", ""),
    ("for i in T.thread_binding(8):\n    pass", "T.thread_binding(8)", "thread=", "threadIdx.x"),
    ("for i in T.serial(8, thread='a'):\n    pass", "T.serial(8, thread='a')", "thread=", ""),
    ("for i in T.serial(8, step=2):\n    pass", "T.serial(8, step=2)", "no argument 'step'", ""),
    ("for i in T.serial(8, annotations=3):\n    pass", "3", "annotations are a dict", ""),
    ("for i in T.serial(8, start=2):\n    pass", "T.serial(8, start=2)", "the start of the loop is given twice", ""),
    ("for i in T.serial(1, 8, end=2):\n    pass", "T.serial(1, 8, end=2)", "the stop of the loop is given twice", ""),
    ("for i in range():\n    pass", "range()", "0 given", ""),
    ("with T.init():\n    pass", "T.init()", "outside every block", "T.block"),
    ("with T.block('b'):\n    if n > 3:\n        with T.init():\n            A[0, 0] = 0.0", "T.init()",
     "stands in a loop or branch of its block", "before the statements"),
    ("with T.block('b'):\n    while A[0, 0] > 0:\n        T.where(n > 3)", "T.where(n > 3)", "in a loop or branch", ""),
    ("with T.block('b'):\n    for i in range(8):\n        v = T.axis.spatial(8, n)", "T.axis.spatial(8, n)",
     "in a loop or branch", ""),
    ("with T.block('b'):\n    for i in T.grid(8):\n        T.reads(A[0, 0])", "T.reads(A[0, 0])", "in a loop or branch",
     ""),
    ("with T.block('b'):\n    T.reads(A[0, 0])\n    T.reads()", "T.reads()", "the block has T.reads already", ""),
    ("with T.block('b'):\n    T.writes(region=A[0, 0])", "T.writes(region=A[0, 0])", "takes regions only", ""),
    ("with T.block('b'):\n    T.reads(A[0, 0.5])", "0.5", "an index is an integer, not float32", ""),
    ("with T.decl_buffer((3,)):\n    pass", "T.decl_buffer((3,))", "has no name", "as x:"),
    ("with T.LetStmt(n):\n    pass", "T.LetStmt(n)", "has no name", "as x:"),
    ("B = T.alloc_buffer()", "T.alloc_buffer()", "T.alloc_buffer: missing a required argument: 'shape'", ""),
    ("B = T.alloc_buffer((3,), data=A.data)", "T.alloc_buffer((3,), data=A.data)", "memory of its own",
     "T.decl_buffer"),
    ("B = T.decl_buffer((3,), strides=(-1,))", "T.decl_buffer((3,), strides=(-1,))", "the stride -1 of B leads out",
     ""),
    ("B = T.alloc_buffer((3,), elem_offset=-2)", "T.alloc_buffer((3,), elem_offset=-2)", "the offset -2 of B leads out",
     ""),
    ("B = T.decl_buffer((3,), data=3)", "T.decl_buffer((3,), data=3)", "data=3 is not the memory", "data=A.data"),
    ("B = T.Buffer((3,), data=n)", "B", "data=n is not the memory", "data=A.data"),
    ("B = T.alloc_buffer((3,), align='a')", "T.alloc_buffer((3,), align='a')", "align='a' is not an integer", ""),
    ("B = T.alloc_buffer((3,), offset_factor=0.5)", "T.alloc_buffer((3,), offset_factor=0.5)", "is not an integer", ""),
    ("B = T.alloc_buffer((3,), axis_separators=['a'])", "T.alloc_buffer((3,), axis_separators=['a'])",
     "is not a list of integers", ""),
    ("A[0, 0] = T.infinity('int32')", "T.infinity('int32')", "int32 has no infinity", "T.max_value"),
    ("A[0, 0] = T.infinity('float8_e4m3fn')", "T.infinity('float8_e4m3fn')", "has no infinity", "T.max_value"),
    ("A[0, 0] = T.float32('+-inf')", "T.float32('+-inf')", "is no constant", ""),
    ("T.where(n > 3)", "T.where(n > 3)", "outside every block", ""),
    ("v = T.axis.spatial(8, n)", "T.axis.spatial(8, n)", "outside every block", ""),
    ("with T.block('b'):\n    v = T.axis.remap('X', [n])", "'X'", "no kind of axis", "T.axis.scan"),
    ("with T.block('b'):\n    v = T.axis.remap('S', [n])", "[n]", "n is no loop variable", "T.axis.spatial"),
    ("for i in range(8):\n    with T.block('b'):\n        v = T.axis.remap('SS', [i, i])", "v", "1 name(s) for the 2",
     ""),
    ("for i in range(8):\n    with T.block('b'):\n        v = T.axis.remap('SS', [i])", "T.axis.remap('SS', [i])",
     "one letter", ""),
    ("with T.block('b'):\n    v = T.axis.spatial(8)", "T.axis.spatial(8)", "binding is missing", ""),
    ("with T.block('b'):\n    v = T.axis.spatial((0, 4, 8), n)", "(0, 4, 8)", "a pair", ""),
    ("with T.block('b'):\n    with T.init():\n        pass\n    with T.init():\n        pass", "T.init()",
     "an init already", ""),
    ("for i in range(16):\n    with T.block('b'):\n        v = T.axis.spatial(8, i)\n        A[v, 0] = 1.0",
     "T.axis.spatial(8, i)", "axis v of block b reaches 15, outside its domain 0 to 7", "T.where(i < 8)"),
    ("for i in range(n):\n    with T.block('b'):\n        v = T.axis.spatial((1, n), i)\n        A[v, 0] = 1.0",
     "T.axis.spatial((1, n), i)", "axis v of block b reaches 0, outside its domain 1 to n - 1", "T.where(i >= 1)"),
    ("with T.block('b') as b:\n    pass", "b", "gives no value", ""),
    ("T.evaluate()", "T.evaluate()", "value is missing", "T.evaluate(value)"),
    ("T.reads(A[0])", "A[0]", "its region 1", ""),
    ("T.reads(n)", "n", "part of a buffer", ""),
    ("B = T.match_buffer(n, (3,))", "n", "takes a parameter of type T.handle", ""),
    ("B = T.Buffer((3,))", "B", "where the memory of B is", "T.alloc_buffer"),
    ("A[0, 0] = T.Let(n, n)", "T.Let(n, n)", "one name with its value", "where="),
    ("A.vstore([0, 0])", "A.vstore([0, 0])", "value is missing", ""),
    ("x, y = 1, 2, 3", "x, y = 1, 2, 3", "2 names on the left, 3", ""),
    # what the constructors of the IR refuse
    ("A[0] = 1.0", "A[0]", "2 dimension(s), 1 index", ""),
    ("A[n, 0.5] = 1.0", "A[n, 0.5] = 1.0", "is float32, not an integer", ""),
    ("A[0, 0] = 'x'", "A[0, 0]", "no expression", ""),
    ("A[0, 0] = A", "A[0, 0]", "no expression", ""),
    ("A[0, 0] = T.float64(1)", "A[0, 0]", "a value of type float64", "T.Cast"),
    ("A[0, 0] = T.exp(n)", "T.exp(n)", "exp of int32", "cast first"),
    ("A[0, 0] = A[0, 0] and 1", "A[0, 0] and 1", "needs bool operands", "compare first"),
    ("if n:\n    pass", "n", "the condition is int32", "compare"),
    ("while True:\n    pass", "True", "the condition is always True", ""),
    ("A[0, 0] = n // 0", "n // 0", "by the constant 0", ""),
    ("A[0, 0] = 1 // 0", "1 // 0", "by zero", ""),
    ("A[0, 0] = 3 + 'x'", "3 + 'x'", "unsupported operand", ""),
    ("A[0, 0] = T.float32('abc')", "T.float32('abc')", "no constant", '"nan"'),
    ("A[0, 0] = T.int8(300)", "T.int8(300)", "does not fit int8", ""),
    ("x: T.float32 = n", "n", "the variable is float32, its value is int32", "T.Cast"),
    ("B = T.alloc_buffer((3, 0.5))", "T.alloc_buffer((3, 0.5))", "not an integer", ""),
    ("B = T.alloc_buffer((3,), 'float31')", "T.alloc_buffer((3,), 'float31')", "is not a dtype", ""),
    ("B = T.alloc_buffer((3,), scope='register')", "T.alloc_buffer((3,), scope='register')",
     "buffer B: 'register' is not a storage scope", "a scope is one of global, local, shared, warp,"),
    ("B = T.decl_buffer((3,), scope='wmma.matrix')", "T.decl_buffer((3,), scope='wmma.matrix')",
     "'wmma.matrix' is not a storage scope", "a scope is one of"),
    ("B = T.allocate([3], 'int8', 'regs')", "T.allocate([3], 'int8', 'regs')", "'regs' is not a storage scope",
     "a scope is one of"),
    ("A.vstore([0, T.Ramp(0, 1, 8)], T.Broadcast(T.float32(1), 4))",
     "A.vstore([0, T.Ramp(0, 1, 8)], T.Broadcast(T.float32(1), 4))", "a vector of 4 lanes is to start at", ""),
    ("A[0, 0:8] = A.vload([0, T.Ramp(0, 1, 8)], 'float32x4')", "A.vload([0, T.Ramp(0, 1, 8)], 'float32x4')",
     "a vector of 4 lanes is to start at", ""),
    ("A[0, 0:n] = 1.0", "0:n", "constant number of lanes", ""),
    ("A[0, 0:5:2] = 1.0", "0:5:2", "not a multiple", ""),
    ("T.call_extern('foo', n)", "T.call_extern('foo', n)", "'foo' is not a dtype", ""),
    ("A[0, 0] = A.access_ptr('x')", "A.access_ptr('x')", "the access is", ""),
    # what the verifier finds
    ("for i in range(8):\n    with T.block('b'):\n        v = T.axis.spatial((i, 8), i)\n        A[v, 0] = 1.0",
     "with T.block('b'):",
     "i is used, but nothing defines it here (a block's body uses the block's axes", ""),
    ("with T.block('b'):\n    T.reads()\n    T.writes()\n    A[0, 0] = 1.0", "A[0, 0] = 1.0",
     "write regions leave out", ""),
    # constants, annotations and axes that no kernel has
    ("A[9**9**9, 0] = 1.0", "9**9**9", "larger than any kernel needs", "at most 16384 bits"),
    ("x = 1 << 10**9", "1 << 10**9", "larger than any kernel needs", ""),
    ("x = [0] * 10**12", "[0] * 10**12", "larger than any kernel needs", ""),
    ("x = '%999999999d' % 1", "'%999999999d' % 1", "formatting a text", ""),
    ("for i in T.serial(*A):\n    A[i, 0] = 1.0", "*A", "A is not a sequence", "read an element"),
    ("A[0, 0] = T.max(A[0, 0])", "T.max(A[0, 0])", "T.max(a, b, dtype=None): missing a required argument: 'b'", ""),
    ("for i in T.serial(8, annotations={'x': T.exp}):\n    A[i, 0] = 1.0", "{'x': T.exp}", "the annotation x is", ""),
    ("for i in T.thread_binding(8, thread='core.x'):\n    A[i, 0] = 1.0", "T.thread_binding(8, thread='core.x')",
     "'core.x' is not a thread axis", "threadIdx.x"),
    ("T.evaluate(T.StringImm(4))", "T.StringImm(4)", "T.StringImm takes a text, not 4", ""),
]


@pytest.mark.parametrize("body, under, part, hint", ROWS, ids=[r[0].split("\n")[-1][:40] for r in ROWS])
def test_refused(body, under, part, hint):
    text = message(body)
    first, _, rest = text.partition("\n\n")
    line, caret = rest.split("\n")[:2]
    column, width = len(caret) - len(caret.lstrip()), caret.count("^")
    assert line[column:column + width] == under, text
    assert part in first, text
    assert hint in rest.partition("hint: ")[2], text
    row = int(first.split(":")[1])
    source = (HEAD + "".join(f"    {x}\n" for x in body.split("\n"))).split("\n")
    assert source[row - 1] == line[4:]


@pytest.mark.parametrize("text, part", [
    ("x = =", "<script>:1: this is not Python: invalid syntax"),
    ("x = 3", "defines 0 functions and modules"),
    ("def f(): pass", "f is not under @T.prim_func"),
    ("print(3)", "nothing else"),
    ("import os", "imports nothing but T and I, not os"),
    ("@T.prim_func\ndef f(A): pass", "the parameter A has no type"),
    ("@T.prim_func\ndef f(A: int): pass", "annotated with no type of T"),
    ("@T.prim_func\ndef f(n: T.int32 = 3): pass", "without defaults"),
    ("@T.prim_func\ndef f(n: 'T.int32('): pass", "'T.int32(' is no type"),
    ("@T.prim_func\ndef f(n: 'T.int3'): pass", "T has no name 'int3'"),
    ("@T.prim_func\ndef f(*n): pass", "without defaults"),
    ("@I.ir_module\nclass M:\n    x = 3", "a module holds functions"),
    ("@I.ir_module\nclass M:\n    def f(): pass", "f is not under @T.prim_func"),
    ("@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer(a, (4,))\n    B = T.match_buffer(a, (4,))",
     "no buffer yet"),
])
def test_texts_that_are_no_script(text, part):
    with pytest.raises(ScriptError) as caught:
        from_source(text)
    assert part in str(caught.value)


def test_decorated_functions_point_into_their_file():
    def wrong(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                A[vi] = "ä" + nothing      # noqa: F821

    line = wrong.__code__.co_firstlineno + 4
    with pytest.raises(ScriptError) as caught:
        T.prim_func(wrong)
    text = str(caught.value)
    assert text.startswith(f"{__file__}:{line}: the name 'nothing' is not defined here")
    shown, caret = text.split("\n")[2:4]
    assert shown[caret.index("^"):].startswith("nothing") and caret.count("^") == len("nothing")


def test_forms_mean_nothing_outside_a_script():
    with pytest.raises(ScriptError, match="T.grid was called outside a script"):
        T.grid(3)
    with pytest.raises(AttributeError, match="did you mean T.grid"):
        T.gird      # noqa: B018
    with pytest.raises(ScriptError, match="not on a?n? ?3"):
        T.prim_func(3)
    with pytest.raises(ScriptError, match="source of f is not to be found"):
        exec("from tilewright.script import tir as T\n@T.prim_func\ndef f(): pass")
    with pytest.raises(ScriptError, match="put @T.prim_func on each function"):
        @ir_module
        class Module:
            def f(): pass
    assert issubclass(ScriptError, TilewrightError)


@pytest.mark.parametrize("body", ["A[0, 0] = " + "+".join(["A[0, 0]"] * n) for n in (900, 100_000)] + [
    "A[0, 0] = " + "-" * 500 + "A[0, 0]",
    f"for {','.join(f'i{k}' for k in range(999))} in T.grid({'2,' * 999}):\n  pass"],
                         ids=["sum", "text", "signs", "loops"])
def test_a_script_without_bound_is_refused(body):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)                            # Python's own, which other tests may have raised
    try:
        text = message(body)
    finally:
        sys.setrecursionlimit(before)
    assert "nested too deeply" in text


def test_more_texts_and_functions_that_are_no_script():
    with pytest.raises(ScriptError, match="lone surrogate"):
        from_source("# \ud800")
    with pytest.raises(ScriptError, match="the decorator does not take these arguments"):
        from_source("@T.prim_func(bogus=1)\ndef f(A: T.int32):\n    T.evaluate(A)\n")
    function = "    @T.prim_func\n    def f(A: T.int32):\n        T.evaluate(A)\n"
    with pytest.raises(ScriptError, match="the module has a function f already"):
        from_source(f"@I.ir_module\nclass M:\n{function}{function}")
    with pytest.raises(ScriptError, match="no function definition stands here"):
        T.prim_func(lambda A: A)


@pytest.mark.parametrize("dtype", ["float32x70000", "float32x\u00b2", "float32x-1"])
def test_lanes_that_no_vector_has(dtype):
    with pytest.raises(TilewrightError, match="1 to 65535 lanes"):
        T.Buffer((4,), dtype)


def test_of_a_long_line_the_part_around_the_error_is_shown():
    ones = " + ".join(["1.0"] * 100)
    with pytest.raises(ScriptError, match="the name 'nix' is not defined here") as found:
        from_source(f"@T.prim_func\ndef f(A: T.Buffer((4,))):\n    A[0] = {ones} + nix + {ones}")
    line, caret = str(found.value).splitlines()[2:4]
    assert len(line) <= 170
    assert line[caret.index("^"):].startswith("nix")
