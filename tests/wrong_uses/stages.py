"""Wrong uses of stages: refused at the call, with the place of an earlier call that is in the way."""
from __future__ import annotations

from tilewright import te

from .programs import N, chain, matmul, placeholders, staged
from .wrong_use import Section, watch

SECTION = Section("Stages (`s = te.create_schedule(C.op)`)")
wrong = SECTION.wrong


def matmul_stages():
    """s, C, i, j, k of the matrix product, watched"""
    s, (_, _, c) = staged()
    (i, j), (k,) = s[c].op.axis, s[c].op.reduce_axis
    return watch(s), c, i, j, k


@wrong("`split` without factor and nparts",
       r"s\[C\]\.split\(i\): give one of factor and nparts")
def split_of_nothing():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i)


@wrong("`split` with both factor and nparts",
       r"s\[C\]\.split\(i, factor=2, nparts=2\): give one of factor and nparts")
def split_of_both():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=2, nparts=2)


@wrong("`split(i, factor=0)`",
       r"s\[C\]\.split\(i, factor=0\): factor is 0, which is not positive")
def split_by_zero():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=0)


@wrong("`split(i, factor=-4)`",
       r"s\[C\]\.split\(i, factor=-4\): factor is -4, which is not positive")
def split_by_negative():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=-4)


@wrong("`split(i, factor=2.5)`",
       r"s\[C\]\.split\(i, factor=2\.5\): factor is 2\.5, not an integer")
def split_by_float():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=2.5)


@wrong("`split(i, factor=te.var())`",
       r"s\[C\]\.split\(i, factor=n\): factor is n, not a constant integer")
def split_by_variable():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=te.var("n"))


@wrong("`split(i, factor=2**63)`",
       r"s\[C\]\.split\(i, factor=9223372036854775808\): factor is 9223372036854775808, which does not fit 64")
def split_by_huge():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=2**63)


@wrong("`split` of an axis that was split before",
       r"s\[C\]\.split\(i, factor=4\): i is no longer a loop of C: it was split into i\.outer and i\.inner")
def split_twice():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=4)
    watch(s)
    s[c].split(i, factor=4)


@wrong("`split` of another stage's axis",
       r"s\[C\]\.split\(i, factor=4\): i is an axis of B, not of C")
def split_foreign():
    s, (_, b, c) = staged(chain)
    watch(s)[c].split(s[b].op.axis[0], factor=4)


@wrong("`split` of a number",
       r"s\[C\]\.split\(0, factor=4\): 0 is not an axis")
def split_number():
    s, c, _, _, _ = matmul_stages()
    s[c].split(0, factor=4)


@wrong("`split` of a vectorized loop",
       r"s\[C\]\.split\(j, factor=4\): j is already vectorized \(")
def split_vectorized():
    s, c, _, j, _ = matmul_stages()
    s[c].vectorize(j)
    watch(s)
    s[c].split(j, factor=4)


@wrong("`tile` of one axis with itself",
       r"s\[C\]\.tile\(i, i, 4, 4\): the axis i is given twice")
def tile_one_axis():
    s, c, i, _, _ = matmul_stages()
    s[c].tile(i, i, 4, 4)


@wrong("`fuse` of loops that are not neighbours",
       r"s\[C\]\.fuse\(i, j\): the axes are not next to each other; the loops are i, k, j")
def fuse_far():
    s, c, i, j, k = matmul_stages()
    s[c].reorder(i, k, j)
    watch(s)
    s[c].fuse(i, j)


@wrong("`fuse` of a spatial and a reduction axis",
       r"s\[C\]\.fuse\(j, k\): j is a spatial axis and k a reduction axis")
def fuse_kinds():
    s, c, _, j, k = matmul_stages()
    s[c].fuse(j, k)


@wrong("`reorder(i, i)`",
       r"s\[C\]\.reorder\(i, i\): the axis i is given twice")
def reorder_twice():
    s, c, i, _, _ = matmul_stages()
    s[c].reorder(i, i)


@wrong("`vectorize` of a reduction axis",
       r"s\[C\]\.vectorize\(k\): cannot vectorize the reduction axis k: its steps update the same element")
def vectorize_reduction():
    s, c, _, _, k = matmul_stages()
    s[c].vectorize(k)


@wrong("`parallel` of a reduction axis",
       r"s\[C\]\.parallel\(k\): cannot parallel the reduction axis k: its steps update the same element")
def parallel_reduction():
    s, c, _, _, k = matmul_stages()
    s[c].parallel(k)


@wrong("`vectorize` of a loop of symbolic extent",
       r"vectorize\(loop=i\): cannot vectorize loop i: its extent n is not a constant")
def vectorize_symbolic():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(c.op.axis[0])
    s.replay([a, c])


@wrong("`unroll` of a loop of symbolic extent",
       r"unroll\(loop=i\): cannot unroll loop i: its extent n is not a constant")
def unroll_symbolic():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    s[c].unroll(c.op.axis[0])
    s.replay([a, c])


@wrong("`vectorize(\"i\")`: an axis by its name",
       r"s\[C\]\.vectorize\('i'\): 'i' is not an axis")
def axis_by_name():
    s, c, i, _, _ = matmul_stages()
    s[c].vectorize("i")


@wrong("`bind` to something that is no thread axis",
       r"s\[C\]\.bind\(i, j\): j is not a thread axis")
def bind_to_axis():
    s, c, i, j, _ = matmul_stages()
    s[c].bind(i, j)


@wrong("`bind` of two loops to one thread axis",
       r"s\[C\]\.bind\(j, threadIdx\.x\): threadIdx\.x is already bound to another loop of C")
def bind_twice():
    s, c, i, j, _ = matmul_stages()
    s[c].bind(i, te.thread_axis("threadIdx.x"))
    watch(s)
    s[c].bind(j, te.thread_axis("threadIdx.x"))


@wrong("`compute_at` of the output",
       r"s\[C\]\.compute_at\(s\[B\], i\): C is an output of the schedule")
def output_at():
    s, (_, b, c) = staged(chain)
    watch(s)[c].compute_at(s[b], s[b].op.axis[0])


@wrong("`compute_at` in a stage that does not need it",
       r"s\[B\]\.compute_at\(s\[C\], i\): C does not need B, neither directly nor through other stages")
def at_stranger():
    a, _ = placeholders()
    b = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((N, N), lambda i, j: a[i, j] + 2.0, name="C")
    d = te.compute((N, N), lambda i, j: b[i, j] + c[i, j], name="D")
    s = watch(te.create_schedule(d.op))
    s[b].compute_at(s[c], s[c].op.axis[0])


@wrong("`compute_at` at an axis of another stage",
       r"s\[B\]\.compute_at\(s\[C\], i\): i is an axis of B, not of C")
def at_foreign_axis():
    s, (_, b, c) = staged(chain)
    watch(s)[b].compute_at(s[c], s[b].op.axis[0])


@wrong("`compute_at` of a placeholder",
       r"s\[A\]\.compute_at\(s\[C\], i\): A is a placeholder: there is no computation to move")
def placeholder_at():
    s, (a, _, c) = staged(chain)
    watch(s)[a].compute_at(s[c], s[c].op.axis[0])


@wrong("`compute_at(C, axis)`: a tensor in place of its stage",
       r"s\[B\]\.compute_at\(s\[Tensor\(shape=\[16, 16\], op\.name=C\)\], i\): Tensor\(shape=\[16, 16\],")
def at_tensor():
    s, (_, b, c) = staged(chain)
    watch(s)[b].compute_at(c, c.op.axis[0])


@wrong("`compute_inline` of the output",
       r"s\[C\]\.compute_inline\(\): C is an output of the schedule")
def inline_output():
    s, (_, _, c) = staged(chain)
    watch(s)[c].compute_inline()


@wrong("`compute_inline` of a reduction",
       r"s\[C\]\.compute_inline\(\): C is a reduction, which has no expression for one element")
def inline_reduction():
    a, b, c = matmul()
    d = te.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    s = watch(te.create_schedule(d.op))
    s[c].compute_inline()


@wrong("`cache_write` after a loop that goes was made parallel",
       r"s\.cache_write\(C, 'local'\): i\.outer is no loop of C from then on, and s\[C\]\.parallel\(i\.outer\) \(")
def late_cache_write():
    s, c, i, _, _ = matmul_stages()
    s[c].parallel(s[c].split(i, factor=4)[0])
    watch(s)
    s.cache_write(c, "local")


@wrong("`cache_write` of a placeholder",
       r"s\.cache_write\(A, 'local'\): A is a placeholder: nothing is computed")
def cache_write_placeholder():
    s, (a, _, _) = staged()
    watch(s).cache_write(a, "local")


@wrong("`cache_read` for a stage that does not read the tensor",
       r"s\.cache_read\(A, 'local', \[C\]\): C does not read A")
def cache_read_stranger():
    s, (a, _, c) = staged(chain)
    watch(s).cache_read(a, "local", [c])


@wrong("`cache_read` without readers",
       r"s\.cache_read\(A, 'local', \[\]\): no reader is given")
def cache_read_nobody():
    s, (a, _, _) = staged()
    watch(s).cache_read(a, "local", [])


@wrong("an unknown memory scope: `cache_write(C, \"registers\")`",
       r"s\.cache_write\(C, 'registers'\): 'registers' is not a storage scope")
def unknown_scope():
    s, (_, _, c) = staged()
    watch(s).cache_write(c, "registers")


@wrong("`set_scope` of the output",
       r"s\[C\]\.set_scope\('local'\): C is an argument of the function, its memory belongs to the caller")
def scope_of_output():
    s, (_, _, c) = staged()
    watch(s)[c].set_scope("local")


@wrong("`set_scope` with a number",
       r"s\[B\]\.set_scope\(3\): 3 is not a storage scope")
def scope_is_number():
    s, (_, b, _) = staged(chain)
    watch(s)[b].set_scope(3)


@wrong("`s[D]` of a tensor of another schedule",
       r"s\[C\]: C is not in this schedule")
def foreign_stage():
    s, _ = staged()
    _ = s[matmul()[2]]


@wrong("`s[\"C\"]`",
       r"s\['C'\]: 'C' is not in this schedule")
def stage_by_name():
    s, _ = staged()
    _ = s["C"]


@wrong("the argument list lacks an input",
       r"placeholder B is used by C and is not among the arguments")
def missing_input():
    s, (a, _, c) = staged()
    s.replay([a, c])


@wrong("the argument list lacks the output",
       r"the function would have no result: none of its arguments \(A, B\) is computed, and C is an output of the sch")
def missing_output():
    s, (a, b, _) = staged()
    s.replay([a, b])


@wrong("an argument is given twice",
       r"B is given twice in the arguments")
def argument_twice():
    s, (a, b, c) = staged()
    s.replay([a, b, b, c])


@wrong("an argument that is no tensor",
       r"argument 2 is 3")
def argument_is_number():
    s, (a, b, c) = staged()
    s.replay([a, b, 3, c])


@wrong("a tensor that is not in the schedule as argument",
       r"argument D is not in this schedule")
def foreign_argument():
    s, (a, b, c) = staged()
    other, _ = placeholders()
    s.replay([a, b, c, te.compute((N, N), lambda i, j: other[i, j], name="D")])


@wrong("`pragma` with a number as its name",
       r"s\[C\]\.pragma\(i, 7\): the pragma 7 is not a string")
def pragma_name():
    s, c, i, _, _ = matmul_stages()
    s[c].pragma(i, 7)


@wrong("`pragma(i, \"import_c\", code)`", r"s\[C\]\.pragma\(i, 'import_c'\): there is no C compiler here")
def pragma_c():
    s, c, i, _, _ = matmul_stages()
    s[c].pragma(i, "import_c", "int f() { return 1; }")


@wrong("`pragma(i, \"import_llvm\", x)` of a text without a function", r"'hello' is no LLVM IR that defines a function")
def pragma_llvm():
    s, c, i, _, _ = matmul_stages()
    s[c].pragma(i, "import_llvm", "hello")


@wrong("`pragma(i, \"import_llvm\", \"f.bc\")`", r"f\.bc is no text of LLVM IR")
def pragma_bitcode():
    s, c, i, _, _ = matmul_stages()
    s[c].pragma(i, "import_llvm", "f.bc")


@wrong("`pragma(i, \"import_llvm\", path)` of a file that is not there", r"there_is_no_such\.ll cannot be read")
def pragma_path():
    s, c, i, _, _ = matmul_stages()
    s[c].pragma(i, "import_llvm", "there_is_no_such.ll")
