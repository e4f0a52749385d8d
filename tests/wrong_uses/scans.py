"""Wrong scans: refused where they are written, or where a part of one is asked to leave it."""
from __future__ import annotations

import tilewright as tw
from tilewright import te

from .wrong_use import Section, watch

SECTION = Section("Scans (`te.scan`)")
wrong = SECTION.wrong


def scan(read):
    """The scan over S whose step is read(S, t, i), after one step of zeros"""
    m, n = te.var("m"), te.var("n")
    s = te.placeholder((m, n), name="S")
    init = te.compute((1, n), lambda t, i: 0.0, name="init")
    return te.scan(init, te.compute((m, n), lambda t, i: read(s, t, i), name="update"), s)


def stages():
    """s, the stage s1 of the steps, the update, the output, and a reader of it"""
    m, n = te.var("m"), te.var("n")
    s = te.placeholder((m, n), name="S")
    s1 = te.compute((m, n), lambda t, i: s[t - 1, i] * 2.0, name="s1")
    update = te.compute((m, n), lambda t, i: s1[t, i] + 1.0, name="update")
    y = te.scan(te.compute((1, n), lambda t, i: 0.0, name="init"), update, s)
    z = te.compute((m, n), lambda t, i: y[t, i] * 3.0, name="Z")
    return watch(te.create_schedule(z.op)), s1, update, y, z


@wrong("a step that reads its own state: `S[t, i]`",
       r"scan scan: update reads state S at step t, which is not before step t")
def own_step():
    scan(lambda s, t, i: s[t, i])


@wrong("a step that reads further back than the init reaches: `S[t - 2, i]` after an init of one step",
       r"scan scan: update reads state S at step t - 2, and init gives no more than the first 1 step\(s\)")
def before_the_init():
    scan(lambda s, t, i: s[t - 2, i])


@wrong("fewer updates than states",
       r"scan scan: 1 init\(s\), 0 update\(s\) and 1 state placeholder\(s\)")
def counts():
    m, n = te.var("m"), te.var("n")
    te.scan([te.compute((1, n), lambda t, i: 0.0)], [], [te.placeholder((m, n))])


@wrong("an init of another type than the state",
       r"scan scan: init is int32\(1, n\), its state S is float32\(m, n\): they may differ in the number of steps only")
def other_dtype():
    m, n = te.var("m"), te.var("n")
    s = te.placeholder((m, n), name="S")
    te.scan(te.compute((1, n), lambda t, i: 0, name="init"), te.compute((m, n), lambda t, i: s[t - 1, i]), s)


@wrong("a read before the first row, outside of a scan: `A[i - 1, j]`",
       r"compute B: A\[i - 1, j\]: index 0 runs from -1 to m - 2, outside of the shape \(m, n\) of A")
def no_scan():
    a = te.placeholder((te.var("m"), te.var("n")), name="A")
    te.create_schedule(te.compute(a.shape, lambda i, j: a[i - 1, j], name="B").op)


@wrong("a stage of the steps as a result",
       r"update is a part of scan scan and cannot be a result")
def part_as_result():
    _, _, update, y, _ = stages()
    te.create_prim_func([update, y])


@wrong("a stage of the steps read outside of them",
       r"out reads s1, which exists only in the steps of scan scan")
def part_outside():
    _, s1, _, y, _ = stages()
    te.create_schedule(te.compute(y.shape, lambda i, j: y[i, j] + s1[i, j], name="out").op)


@wrong("`compute_at` of a stage of the steps at a reader of the scan",
       r"s\[s1\]\.compute_at\(s\[Z\], t\): s1 is computed in every step of scan scan, and Z is")
def leaves_the_group():
    s, s1, _, _, z = stages()
    s[s1].compute_at(s[z], z.op.axis[0])


@wrong("`compute_inline` of an update",
       r"s\[update\]\.compute_inline\(\): update gives scan scan its values and stays at the scan")
def inlined_update():
    s, _, update, _, _ = stages()
    s[update].compute_inline()


@wrong("splitting the first axis of an update",
       r"s\[update\]\.split\(t, factor=2\): t is the axis of the steps of scan scan")
def axis_of_the_steps():
    s, _, update, _, _ = stages()
    s[update].split(update.op.axis[0], factor=2)


@wrong("`cache_read` for a scan",
       r"s\.cache_read\(update, 'local', \[scan\]\): scan is a scan, whose memory update writes")
def copied_for_the_scan():
    s, _, update, y, _ = stages()
    s.cache_read(update, "local", [y])


@wrong("`fuse` of a new loop and the scan axis",
       r"s\[scan\]\.fuse\(singleton, scan\.idx\): singleton is a spatial axis and scan\.idx an axis of steps")
def fused_steps():
    s, _, _, y, _ = stages()
    unit = s[y].fuse()
    watch(s)[y].fuse(unit, y.op.scan_axis)


@wrong("`parallel` on the scan axis",
       r"s\[scan\]\.parallel\(scan\.idx\): cannot parallel the scan axis scan\.idx: its steps run in order")
def parallel_steps():
    s, _, _, y, _ = stages()
    s[y].parallel(y.op.scan_axis)


@wrong("`parallel` on the loop over the steps of a block schedule",
       r"cannot parallel loop scan\.idx: it carries the ordered axis of block update, a scan: its steps run in order")
def parallel_block_steps():
    sch = watch(tw.Schedule(te.create_prim_func([scan(lambda s, t, i: s[t - 1, i])])))
    sch.parallel(sch.get_loops(sch.get_block("update"))[0])


def parts(update=None, init=None, state=None, first=1):
    """A scan of 8 steps of 4 elements, with other parts"""
    s = te.placeholder((8, 4), name="S") if state is None else state
    start = te.compute((first, 4), lambda t, i: 0.0, name="init") if init is None else init
    step = te.compute((8, 4), lambda t, i: s[t - 1, i], name="update") if update is None else update
    return te.scan(start, step, s)


@wrong("`te.scan(init, 3, S)`", r"scan scan: .*3, not a tensor")
def update_number():
    parts(update=3)


@wrong("a computed tensor as the state", r"scan scan: the state B is computed, not a placeholder")
def computed_state():
    parts(state=te.compute((8, 4), lambda t, i: 1.0, name="B"))


@wrong("a state without dimensions", r"scan scan: the state S has no dimension for the steps")
def flat_state():
    s = te.placeholder((), name="S")
    te.scan(te.compute((1,), lambda t: 0.0), te.compute((8,), lambda t: 1.0), s)


@wrong("one state given twice", r"scan scan: S is given for two states")
def state_twice():
    s = te.placeholder((8, 4), name="S")
    init = [te.compute((1, 4), lambda t, i: 0.0) for _ in range(2)]
    te.scan(init, [te.compute((8, 4), lambda t, i: s[t - 1, i]) for _ in range(2)], [s, s])


@wrong("external code as the update", r"scan scan: the update E is no te\.compute")
def extern_update():
    s = te.placeholder((8, 4), name="S")
    parts(update=te.extern((8, 4), [s], lambda ins, outs: te.call_packed("f"), name="E"), state=s)


@wrong("an update of more steps than the state", r"scan scan: update has 9 steps, another one has 8")
def other_steps():
    s = te.placeholder((8, 4), name="S")
    parts(update=te.compute((9, 4), lambda t, i: s[t - 1, i], name="update"), state=s)


@wrong("an init of more steps than there are", r"scan scan: init gives the first 9 steps of 8")
def long_init():
    parts(first=9)


@wrong("external code between state and update",
       r"scan scan: E, which reads a state, is no te\.compute")
def extern_step():
    s = te.placeholder((8, 4), name="S")
    e = te.extern((8, 4), [s], lambda ins, outs: te.call_packed("f"), name="E")
    parts(update=te.compute((8, 4), lambda t, i: e[t, i], name="update"), state=s)


@wrong("a stage of the steps without an axis for them",
       r"scan scan: B reads a state and has no axis for the steps, of extent 8, as its first")
def stage_without_steps():
    s = te.placeholder((8, 4), name="S")
    b = te.compute((4,), lambda i: s[0, i], name="B")
    parts(update=te.compute((8, 4), lambda t, i: b[i], name="update"), state=s)


@wrong("a stage of the steps read at another step: `B[t - 1, i]`",
       r"scan scan: update reads B\[t - 1, i\], which another step computes")
def other_step():
    s = te.placeholder((8, 4), name="S")
    b = te.compute((8, 4), lambda t, i: s[t - 1, i], name="B")
    parts(update=te.compute((8, 4), lambda t, i: te.if_then_else(t > 1, b[t - 1, i], 0.0), name="update"), state=s)


@wrong("an init that is the init of another scan, too", r"init is a part of \w+ and of another scan, \w+")
def shared_init():
    init = te.compute((1, 4), lambda t, i: 0.0, name="init")
    x, y = parts(init=init), parts(init=init)
    te.create_schedule(te.compute((8, 4), lambda t, i: x[t, i] + y[t, i]).op)


@wrong("`transform_layout` of a stage of the steps", r"the steps of scan scan share the memory of s1")
def layout_of_step():
    s, s1, _, _, _ = stages()
    s[s1].transform_layout(lambda t, i: [i, t])
