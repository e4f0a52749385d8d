"""Wrong uses of what old programs are written with: ir_builder, hybrid functions, contexts; of print and checks."""
from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright import te, tir
from tilewright.compat import pass_objects
from tilewright.compat.nodes import make_node
from tilewright.compat.pass_context import PassContext, build_config
from tilewright.compat.pass_objects import prim_func_pass
from tilewright.compat.stmt_functor import ir_transform
from tilewright.lowering import own_pass, register_pass
from tilewright.runtime import loader
from tilewright.te import hybrid
from tilewright.tir import ir_builder

from . import hybrid_functions as functions
from .commands import tilewright
from .hybrid_functions import A
from .programs import matmul
from .stored import environment, folder
from .wrong_use import Section, watch


def product():
    """The matrix product in block form."""
    return te.create_prim_func(list(matmul()))


SECTION = Section("Idioms of old programs (`tvm.tir.ir_builder`, `te.hybrid`, contexts), printing, checked builds")
wrong = SECTION.wrong


@wrong("`ib.for_range(0, 4, kind=\"vector\")`", r"ir_builder: 'vector' is not a kind of loop")
def builder_kind():
    ir_builder.create().for_range(0, 4, kind="vector")


@wrong("`ib.get()` inside a loop", r"ir_builder: get\(\) inside 1 open scope")
def builder_get_inside():
    ib = ir_builder.create()
    with ib.for_range(0, 4):
        ib.get()


@wrong("`ib.else_scope()` without an if", r"ir_builder: else_scope does not follow an if_scope")
def builder_else():
    with ir_builder.create().else_scope():
        pass


@wrong("`ib.scope_attr(x, \"pragma\", 1)`", r"ir_builder: scope_attr\(3, 'pragma'\) has no meaning here")
def builder_attribute():
    ir_builder.create().scope_attr(3, "pragma", 1)


@wrong("`ib.buffer_ptr(A)` of a tensor", r"ir_builder: buffer_ptr takes a buffer, got Tensor")
def builder_tensor():
    ir_builder.create().buffer_ptr(te.placeholder((4,), name="A"))


@wrong("`ib.buffer_ptr(A, shape=(3,))`: another shape", r"ir_builder: buffer_ptr\(A\): the shape \(3,\) is another one")
def builder_shape():
    ir_builder.create().buffer_ptr(tir.decl_buffer((4,), "float32", "A"), (3,))


@wrong("a store of int32 to a float32 buffer", r"ir_builder: a int32 value is stored to A, which holds float32")
def builder_dtype():
    ir_builder.create().buffer_ptr(tir.decl_buffer((4,), "float32", "A"))[0] = tir.Var("i", "int32")


for _function, _title, _message in (
        (functions.returns_nothing, "without a return", "the function returns nothing"),
        (functions.unknown_name, "with a name that nobody defines", "nowhere has no value here"),
        (functions.inner_name, "that uses a name after the loop that assigns it", "last has no value here"),
        (functions.writes_input, "that writes to its input", "the input a is written"),
        (functions.odd_loop, "with `for x in a`", "`for x in a` is not a loop"),
        (functions.with_try, "with `try`", "`try:` is not part of the language"),
        (functions.early_return, "with a return in a loop", "return stands in a loop or branch"),
        (functions.after_return, "with a statement after the return", "nothing may follow the return"),
        (functions.returns_input, "that returns its input", "the function returns something else than its outputs"),
        (functions.forgets_output, "that does not return an output", "an output_tensor is not returned"),
        (functions.wrong_index, "with `a[0, 1]` of a vector", r"a has 1 dimension\(s\), 2 index\(es\) given"),
        (functions.asserts, "whose assertion fails", r"the assertion len\(a\.shape\) == 2 does not hold"),
        (functions.asserts_data, "with an assertion about data",
         "an assertion must be about what is known before the kernel runs"),
        (functions.captures, "that uses a tensor from outside", "the tensor A is no argument of the function"),
        (functions.inner_output, "with output_tensor in a loop", "output_tensor stands in a loop or branch"),
        (functions.three_arguments, "with `range(0, 8, 2)`", "range takes the end, or the begin and the end"),
        (functions.assigns_number, "that indexes a number", "number is not a tensor"),
        (functions.assigns_attribute, "with `out.dtype = 3`", "out.dtype cannot be assigned"),
        (functions.two_targets, "with `x = y = ...`", "one target for each assignment"),
        (functions.unpacks, "that unpacks a number", "several names for one value"),
        (functions.comprehension, "with a comprehension",
         r"`\[a\[i\] for i in range\(8\)\]` is not part of the language"),
        (functions.adds_unknown, "with `total += x` first", "total has no value here"),
        (functions.is_comparison, "with `is`", "`a is None` is not part of the language"),
        (functions.matrix_operator, "with `@`", "`a @ a` is not part of the language"),
        (functions.else_of_a_loop, "with the `else` of a loop", "`else` of a loop is not part of the language"),
        (functions.loop_with_keyword, "with `range(0, 8, step=2)`", "range takes no keywords"),
        (functions.loop_variable_taken, "whose loop variable is a name in use",
         "the loop variable i has a value already"),
        (functions.tensor_as_condition, "with a tensor as a condition", "`a` is no condition"),
        (functions.tuple_as_condition, "with a tuple as a condition", r"`\(a\[0\] > 0.0,\)` is no condition"),
        (functions.other_tensor, "that gives a name another tensor in a branch",
         "source stands for a tensor or tuple, and is given another in a loop or branch"),
        (functions.unpacked_keywords, "with `**` in a call",
         r"`output_tensor\(\(8,\), \*\*\{'dtype': 'float32'\}\)` is not part of the language")):
    def _call(function=_function):
        function(A)
    _call.__name__ = f"hybrid_{_function.__name__}"
    wrong(f"a hybrid function {_title}", rf"hybrid {_function.__name__}.*: {_message}")(_call)


@wrong("a hybrid function called with too many arguments", r"hybrid returns_input: too many positional arguments")
def hybrid_arguments():
    functions.returns_input(A, A)


@wrong("`hybrid.script(3)`", r"hybrid\.script takes a function, got 3")
def hybrid_number():
    hybrid.script(3)


@wrong("`hybrid.script` of a function without source text", r"hybrid f: its source text is not available")
def hybrid_no_source():
    names: dict = {}
    exec("def f(a): return a", names)
    hybrid.script(names["f"])


@wrong("`te.tag_scope(3)`", r"tag_scope: 3 is not a tag")
def tag_number():
    with te.tag_scope(3):
        pass


@wrong("a tag_scope in a tag_scope", r"tag_scope\('b'\) inside tag_scope\('a'\): tags are not nested")
def tag_nested():
    with te.tag_scope("a"), te.tag_scope("b"):
        pass


@wrong("`te.compute(..., tag=\"b\")` in a tag_scope", r"compute c: tag='b' inside tag_scope\('a'\)")
def tag_twice():
    with te.tag_scope("a"):
        te.compute((8,), lambda i: A[i], name="c", tag="b")


@wrong("`tw.pass_options(disable=[\"vectorise\"])`", r"no pass 'vectorise' .*\n\nhint: did you mean vectorize\?")
def options_unknown_pass():
    tw.pass_options(disable=["vectorise"])


@wrong("`tw.pass_options(enable=[\"Everything\"])`", r"there is no pass 'Everything' in the lists of passes")
def options_far_from_any():
    tw.pass_options(enable=["Everything"])


@wrong("`tw.pass_options(disable=[\"lower_blocks\"])`", r"lower_blocks cannot be disabled: others rely on it")
def options_needed_pass():
    tw.pass_options(disable=["lower_blocks"])


@wrong("`tw.pass_options(disable=\"vectorize\")`", r"pass_options: disable is 'vectorize'\n")
def options_no_list():
    tw.pass_options(disable="vectorize")


@wrong("`tw.pass_options(instruments=[3])`", r"pass_options: instruments is \[3\]")
def options_instruments():
    tw.pass_options(instruments=[3])


@wrong("`tw.pass_options(passes=[f])` of a function that has no place", r"pass_options: passes is \[<class 'object'>\]")
def options_passes():
    tw.pass_options(passes=[object])


@wrong("`own_pass(\"after simplfy\", f)`", r"no place 'after simplfy' .*\n\nhint: did you mean after simplify\?")
def own_pass_place():
    own_pass("after simplfy", product)


@wrong("`own_pass(\"after simplify\", 3)`", r"own_pass: 3 is not a function")
def own_pass_number():
    own_pass("after simplify", 3)


@wrong("`register_pass` under the name of another pass", r"register_pass: there is a pass unroll already")
def own_pass_name():
    register_pass(own_pass("after simplify", product, "unroll"))


@wrong("`PassContext(config=3)`", r"PassContext: config is 3, not a dict")
def context_config_number():
    PassContext(config=3)


@wrong("`PassContext(disabled_pass=3)`", r"PassContext: disabled_pass is 3, not a list of names")
def context_disabled_number():
    PassContext(disabled_pass=3)


@wrong("a `PassContext` that is left before it was entered", r"this context was left before it was entered")
def context_left():
    PassContext().__exit__(None, None, None)


@wrong("`PassContext(config={\"tir.disable_vectorise\": True})`",
       r"PassContext: config has no 'tir.disable_vectorise' here\n\nhint: did you mean tir.disable_vectorize\?")
def context_key():
    PassContext(config={"tir.disable_vectorise": True})


@wrong("`PassContext(config={\"tir.disable_vectorize\": \"yes\"})`",
       r"PassContext: tir.disable_vectorize is 'yes', not True or False")
def context_value():
    PassContext(config={"tir.disable_vectorize": "yes"})


@wrong("`PassContext(disabled_pass=[\"Everything\"])`", r"PassContext: disabled_pass has no 'Everything' here")
def context_disabled():
    PassContext(disabled_pass=["Everything"])


@wrong("`PassContext(opt_level=9)`", r"PassContext: opt_level=9 is not an integer from 0 to 4")
def context_level():
    PassContext(opt_level=9)


@wrong("`PassContext(instruments=[x])`", r"PassContext: <class 'object'> is no instrument")
def context_instruments():
    PassContext(instruments=[object])


@wrong("`PassContext(config={\"tir.add_lower_pass\": 3})`",
       r"PassContext: tir.add_lower_pass is 3, not a list of \(phase, pass\)")
def context_passes():
    PassContext(config={"tir.add_lower_pass": 3})


@wrong("a lower pass without a phase", r"PassContext: tir.add_lower_pass has 'pass', not a phase and a pass")
def context_phase():
    PassContext(config={"tir.add_lower_pass": ["pass"]})


@wrong("a pass that gives no function", r"the pass broken gives None, not a PrimFunc")
def pass_result():
    with PassContext(config={"tir.add_lower_pass": [(1, prim_func_pass(lambda f, mod, ctx: None, name="broken"))]}):
        tw.lower(product())


@wrong("`tvm.build_config(unroll=4)`", r"PassContext: build_config has no 'unroll' here")
def build_config_key():
    build_config(unroll=4)


@wrong("`prim_func_pass(3)`", r"prim_func_pass: 3 is not a function")
def pass_number():
    prim_func_pass(3)


@wrong("`prim_func_pass` of a class without `transform_function`",
       r"prim_func_pass: the class object has no transform_function")
def pass_class():
    prim_func_pass(object)


@wrong("`module_pass(3)`", r"module_pass: 3 is not a function")
def module_pass_number():
    pass_objects.module_pass(3)


@wrong("`module_pass` of a class without `transform_module`",
       r"module_pass: the class object has no transform_module")
def module_pass_class():
    pass_objects.module_pass(object)


@wrong("`Sequential([3])`", r"Sequential: 3 is not a pass")
def sequential_number():
    pass_objects.Sequential([3])


@wrong("`Target.current(allow_none=False)` outside of a target", r"there is no target in force")
def no_target():
    tw.Target.current(allow_none=False)


@wrong("`make_node(\"Nothing\")`", r"make_node\('Nothing'\) is not known here")
def node_kind():
    make_node("Nothing")


@wrong("`make_node(\"IntImm\", value=3)`: no dtype", r"make_node\('IntImm'\): .*missing 1 required positional argument")
def node_fields():
    make_node("IntImm", value=3)


@wrong("`ir_transform(..., [\"tir.Fro\"])`", r"ir_transform: only_enable has 'tir.Fro', which is no type of node here")
def transform_kind():
    ir_transform(product().body, None, lambda op: None, ["tir.Fro"])


@wrong("`ir_transform` with a visitor that gives a number", r"ir_transform: a visitor gives 3, neither None nor a node")
def transform_result():
    ir_transform(product().body, None, lambda op: 3, ["tir.For"])


@wrong("`build(..., checked=3)`", r"checked=3 is neither True nor False")
def checked_number():
    tw.build(product(), checked=3)


@wrong("an access outside of its buffer in a checked build",
       r"gather: the index I_1\[k\] = 40 of T is outside of its extent 8")
def checked_access():
    t, i = te.placeholder((8,), name="T"), te.placeholder((4,), "int32", name="I")
    b = te.compute((4,), lambda k: t[i[k]], name="B")
    f = tw.build(te.create_prim_func([t, i, b], name="gather"), checked=True)
    out = watch(np.zeros(4, "float32"))
    f(np.ones(8, "float32"), np.array([0, 1, 2, 40], "int32"), out.copy())


@wrong("`call_packed(\"print\", \"%d %d\", 1)`", r"print: the format '%d %d' does not fit 1 value\(s\)")
def print_format():
    b = te.extern((4,), [A], lambda ins, outs: te.call_packed("print", "%d %d", 1), name="B")
    tw.build(te.create_prim_func([A, b]))(np.zeros(8, "float32"), np.zeros(4, "float32"))


@wrong("`TILEWRIGHT_CHECKED=maybe`", r"TILEWRIGHT_CHECKED='maybe' is neither yes nor no")
def checked_maybe():
    with environment(TILEWRIGHT_CHECKED="maybe"):
        tw.build(product())


@wrong("`TILEWRIGHT_PERF=1` where the map of names cannot be written",
       r"TILEWRIGHT_PERF=1: names\.map cannot be written: Is a directory")
def perf_map():
    before = loader.map_file
    with folder() as f, environment(TILEWRIGHT_PERF="1"):
        (f / "names.map").mkdir()
        loader.map_file = lambda: f / "names.map"
        try:
            tw.build(product())["main"]
        finally:
            loader.map_file = before


@wrong("`tilewright tvm --check` of a file that is not Python", r"old\.py is not Python")
def check_syntax():
    with folder() as f:
        (f / "old.py").write_text("def\n")
        tilewright("tvm", "--check", "old.py")
