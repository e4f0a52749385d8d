"""Loop nests of programs in block form that were never tensor expressions, each as a script and as Python (twin.py)."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .twin import Axis, Buf, Lines, Twin, Writer, both, call, choice, compare, either, let, number, op, store


@dataclass
class Scene:
    """What a nest may use. `ready`: buffers that hold values everywhere; `fresh`: those that nothing has written."""
    rng: random.Random
    ready: list[Buf]
    fresh: list[Buf]
    orders: dict[int, Buf] = field(default_factory=dict)     # buffers that hold a permutation of [0, n), by n
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def target(self, rank: int | None = None) -> Buf:
        """A buffer to write; one that is fresh has to be written everywhere."""
        chosen = [b for b in (*self.ready, *self.fresh) if b not in self.orders.values()
                  and (rank is None or len(b.shape) == rank)]
        return self.rng.choice(chosen)

    def writer(self, *without: Buf) -> Writer:
        return Writer(self.rng, [b for b in self.ready if b not in without])

    def written(self, b: Buf) -> None:
        if b in self.fresh:
            self.fresh.remove(b)
            self.ready.append(b)


def looped(body: Lines, loops: Sequence[tuple[str, int]]) -> Lines:
    """body in loops, outermost first."""
    for var, extent in reversed(loops):
        body = body.below(f"for {var} in range({extent}):", f"for {var} in range({extent}):")
    return body


def block(name: str, axes: Sequence[tuple[str, str, str, Twin]], body: Lines, where: Twin | None = None,
          init: Lines | None = None, first: Twin | None = None) -> Lines:
    """A block; axes: (variable, kind, domain, value). init runs where `first` holds."""
    s = [f"{var} = T.axis.{kind}({domain}, {value.s})" for var, kind, domain, value in axes]
    p = tuple(f"{var} = {value.p}" for var, _, _, value in axes)
    if where is not None:
        s.append(f"T.where({where.s})")
    inner = Lines((), body.p)
    if init is not None and first is not None:
        s += ["with T.init():", *["    " + line for line in init.s]]
        inner = Lines((), (f"if {first.p}:", *["    " + line for line in init.p])) + inner
    inner = Lines((), p + inner.p)
    if where is not None:
        inner = inner.below("", f"if {where.p}:")
    return Lines((*s, *body.s), ()).below(f'with T.block("{name}"):', "") + inner


def plain(text: str) -> Twin:
    return Twin(text, text)


# the nests -----------------------------------------------------------------------------------------------------------
def elementwise(sc: Scene) -> Lines:
    """Every element of a buffer (or some: under a condition, through a permutation) from others, and from itself."""
    rng, b = sc.rng, sc.target()
    fresh = b in sc.fresh
    loops, axes, values, guards = [], [], [], []
    for extent in b.shape:
        i, v = sc.name("i"), sc.name("v")
        axes.append(Axis(v, extent))
        kind = rng.random()
        if kind < 0.2:
            loops += [(i, -(-extent // 3)), (f"{i}_", 3)]
            value = plain(f"{i} * 3 + {i}_")
            if extent % 3:
                guards.append(compare("<", value, number(extent)))
        else:
            loops.append((i, extent))
            value = plain(i)
            if kind < 0.35:
                value = plain(f"{extent - 1} - {i}")
            elif kind < 0.5 and extent in sc.orders:
                value = sc.orders[extent].at(plain(i))
        values.append(value)
    rng.shuffle(loops)
    around = [Axis(i, e) for i, e in loops]
    writer = sc.writer(b)
    where = guards[0] if guards else None
    for g in guards[1:]:
        where = both(where, g)  # type: ignore[arg-type]
    if not fresh and not guards and rng.random() < 0.4:
        where = writer.condition(around)
    here = b.at(*[a.twin for a in axes])
    own = None if fresh else here
    body = store(here, writer.value(axes, rng.choice([1, 2, 2]), own))
    if not fresh and rng.random() < 0.25:
        c = writer.condition(axes)
        body = body.below(f"if {c.s}:", f"if {c.p}:")
    if rng.random() < 0.25:
        x = sc.name("x")
        body = let(x, writer.value(axes, 1, own)) + store(here, op("+", plain(x), writer.value(axes, 1, own)))
    out = block(sc.name("map"), [(a.var, "spatial", str(a.extent), v) for a, v in zip(axes, values)], body, where)
    if not fresh and rng.random() < 0.2:
        c = writer.condition(around)
        out = out.below(f"if {c.s}:", f"if {c.p}:")
    sc.written(b)
    return looped(out, loops)


def part(sc: Scene) -> Lines:
    """A part of a buffer that others write as well: its middle, from the parts beside it."""
    rng, b = sc.rng, sc.target()
    if b in sc.fresh:
        return elementwise(sc)
    loops, axes = [], []
    for extent in b.shape:
        low = rng.randint(0, extent // 2)
        axes.append((Axis(sc.name("v"), rng.randint(low + 1, extent), low), sc.name("i")))
        loops.append((axes[-1][1], axes[-1][0].extent - low))
    writer = sc.writer(b)
    here = b.at(*[a.twin for a, _ in axes])
    body = store(here, writer.value([a for a, _ in axes], 2, here))
    return looped(block(sc.name("part"), [(a.var, "spatial", f"({a.low}, {a.extent})", plain(f"{a.low} + {i}"))
                                          for a, i in axes], body), loops)


def reduction(sc: Scene) -> Lines:
    """A sum, minimum or maximum over an axis or two, of values that may depend on conditions."""
    rng, b = sc.rng, sc.target()
    axes = [Axis(sc.name("v"), e) for e in b.shape]
    over = [Axis(sc.name("r"), rng.choice([3, 4, 5, 8])) for _ in range(rng.choice([1, 1, 2]))]
    writer = sc.writer(b)
    here = b.at(*[a.twin for a in axes])
    value = writer.value([*axes, *over], rng.choice([1, 2]))
    kind = rng.choice(["+", "+", "min", "max"])
    start = number({"+": 0, "min": 2 ** 31 - 1, "max": -2 ** 31}[kind])
    init = store(here, start if rng.random() < 0.8 else writer.value(axes, 1))
    body = store(here, op("+", here, value) if kind == "+" else call(kind, here, value))
    first = plain(" and ".join(f"{a.var} == 0" for a in over))
    loops = [(f"l_{a.var}", a.extent) for a in (*axes, *over)]
    where = None
    if rng.random() < 0.35:                              # never of the first step
        where = either(plain(" and ".join(f"l_{a.var} == 0" for a in over)),
                       writer.condition([Axis(v, e) for v, e in loops]))
    out = block(sc.name("sum"), [*[(a.var, "spatial", str(a.extent), plain(f"l_{a.var}")) for a in axes],
                                 *[(a.var, "reduce", str(a.extent), plain(f"l_{a.var}")) for a in over]],
                body, where, init, first)
    sc.written(b)
    return looped(out, loops)


def accumulation(sc: Scene) -> Lines:
    """b[i] += ..., as often as an extent says that comes from data."""
    rng, b = sc.rng, sc.target()
    if b in sc.fresh:
        return elementwise(sc)
    axes = [Axis(sc.name("v"), e) for e in b.shape]
    k, r = sc.name("k"), sc.name("r")
    writer = sc.writer(b)
    around = [Axis(f"l_{a.var}", a.extent) for a in axes]
    here = b.at(*[a.twin for a in axes])
    times = writer.load(around, data=False)
    body = store(here, op("+", here, writer.value([*axes, Axis(r, 4)], 1)))
    out = block(sc.name("acc"), [*[(a.var, "spatial", str(a.extent), o.twin) for a, o in zip(axes, around)],
                                 (r, "reduce", "4", plain(k))], body)
    out = out.below(f"for {k} in range({times.s} % 5):", f"for {k} in range({times.p} % 5):") if rng.random() < 0.6 \
        else out.below(f"for {k} in range(4):", f"for {k} in range(4):")
    return looped(out, [(a.var, a.extent) for a in around])


def argmax(sc: Scene) -> Lines:
    """The greatest element of each row and its place, the first of equal ones: a reduction of a tuple."""
    rng = sc.rng
    rows = [b for b in (*sc.ready, *sc.fresh) if len(b.shape) == 1 and b not in sc.orders.values()]
    pairs = [(b, c) for b in rows for c in rows if b is not c and b.shape == c.shape]
    if not pairs:
        return reduction(sc)
    top, place = rng.choice(pairs)
    i, r = Axis(sc.name("v"), top.shape[0]), Axis(sc.name("r"), rng.choice([3, 4, 7]))
    value = sc.writer(top, place).value([i, r], 1)
    best, at = top.at(i.twin), place.at(i.twin)
    x, p, q = sc.name("x"), sc.name("x"), sc.name("x")
    keep = either(compare(">", best, plain(x)), both(compare("==", best, plain(x)), compare("<=", at, r.twin)))
    body = (let(x, value) + let(p, choice(keep, best, plain(x), False)) + let(q, choice(keep, at, r.twin, False))
            + store(best, plain(p)) + store(at, plain(q)))
    init = store(best, number(-2 ** 31)) + store(at, number(2 ** 31 - 1))
    out = block(sc.name("argmax"), [(i.var, "spatial", str(i.extent), plain(f"l_{i.var}")),
                                    (r.var, "reduce", str(r.extent), plain(f"l_{r.var}"))], body, None, init,
                plain(f"{r.var} == 0"))
    sc.written(top)
    sc.written(place)
    return looped(out, [(f"l_{i.var}", i.extent), (f"l_{r.var}", r.extent)])


def recurrence(sc: Scene) -> Lines:
    """b[t] from b[t - 1] and others; or where an earlier element says so."""
    rng, b = sc.rng, sc.target()
    if b in sc.fresh:
        return elementwise(sc)
    t, rest = Axis(sc.name("t"), b.shape[0]), [Axis(sc.name("v"), e) for e in b.shape[1:]]
    writer = sc.writer(b)
    back = plain(f"{t.var} - 1")
    before = b.at(back, *[a.twin for a in rest])
    here = b.at(t.twin, *[a.twin for a in rest])
    kind, where = rng.choice(["scan", "opaque", "spatial"]), None
    if kind == "spatial":                                # the dependence is seen by whoever looks at all reads
        earlier = b.at(plain(f"l_{t.var}"), *[plain(f"l_{a.var}") for a in rest])
        where = compare(rng.choice([">", "<", "!="]), earlier, number(rng.randint(-3, 3)))
        body = store(here, writer.value([t, *rest], 1))
    else:
        body = store(here, op(rng.choice(["+", "-"]), before, writer.value([t, *rest], 1)))
    axes = [(t.var, kind, f"(1, {t.extent})", plain(f"l_{t.var} + 1")),
            *[(a.var, "spatial", str(a.extent), plain(f"l_{a.var}")) for a in rest]]
    return looped(block(sc.name("step"), axes, body, where),
                  [(f"l_{t.var}", t.extent - 1), *[(f"l_{a.var}", a.extent) for a in rest]])


def scatter(sc: Scene) -> Lines:
    """b[data] = b[data] + ...: any two points may meet."""
    rng, b = sc.rng, sc.target()
    if b in sc.fresh:
        return elementwise(sc)
    n = Axis(sc.name("v"), rng.choice([4, 7, 9]))
    writer = sc.writer(b)
    index = []
    for e in b.shape:
        at = writer.load([n], data=False)
        index.append(Twin(f"{at.s} % {e}", f"{at.p} % {e}"))
    here = b.at(*index)
    body = store(here, op(rng.choice(["+", "-"]), here, writer.value([n], 1)) if rng.random() < 0.7
                 else writer.value([n], 1))
    return looped(block(sc.name("scatter"), [(n.var, "opaque", str(n.extent), plain(f"l_{n.var}"))], body),
                  [(f"l_{n.var}", n.extent)])


def repeated(sc: Scene) -> Lines:
    """A while loop over a number in memory of the block."""
    b = sc.target(1)
    v, x = Axis(sc.name("v"), b.shape[0]), Buf(sc.name("x"), (1,))
    writer = sc.writer(b)
    left, here = x.at(plain("0")), b.at(v.twin)
    start = op("%", writer.value([v], 1), number(sc.rng.choice([8, 16, 31])))
    step = store(here, op("+", here, op("*", op("%", left, number(2)), writer.value([v], 0)))) + store(
        left, op("//", left, number(2)))
    c = compare(">", left, number(0))
    body = (Lines((f'{x.name} = T.alloc_buffer((1,), "int32", scope="local")',), (f"{x.name} = [0]",))
            + store(left, start) + store(here, number(0)) + step.below(f"while {c.s}:", f"while {c.p}:"))
    sc.written(b)
    return looped(block(sc.name("while"), [(v.var, "spatial", str(v.extent), plain(f"l_{v.var}"))], body),
                  [(f"l_{v.var}", v.extent)])


def views(sc: Scene) -> Lines:
    """Rows of matrices through views; a row may be read and written."""
    rng, b = sc.rng, sc.target(2)
    sources = [a for a in sc.ready if len(a.shape) == 2 and a.shape[0] >= b.shape[0]]
    if not sources:
        return elementwise(sc)
    a, v, j = rng.choice(sources), Axis(sc.name("v"), b.shape[0]), Axis(sc.name("j"), b.shape[1])
    row, out = Buf(sc.name("row"), a.shape[1:]), Buf(sc.name("out"), b.shape[1:])
    at = plain(v.var) if a is b or rng.random() < 0.6 else plain(f"({a.shape[0] - 1} - {v.var})")
    writer = Writer(rng, [row])
    body = store(out.at(j.twin), writer.value([v, j], 1))
    views = Lines(tuple(f'{x.name} = T.match_buffer({y.name}[{i.s}, 0:{y.shape[1]}], ({y.shape[1]},), "int32", '
                        f"offset_factor=1)" for x, y, i in ((row, a, at), (out, b, v.twin))),
                  tuple(f"{x.name} = {y.name}[{i.p}]" for x, y, i in ((row, a, at), (out, b, v.twin))))
    if rng.random() < 0.5 and a is not b:                # the elements of a row are a block inside
        k = sc.name("k")
        inner = block(sc.name("inner"), [(j.var, "spatial", str(j.extent), plain(k))], body)
        body = looped(inner, [(k, j.extent)])
    else:
        body = looped(body, [(j.var, j.extent)])
    sc.written(b)
    return looped(block(sc.name("view"), [(v.var, "spatial", str(v.extent), plain(f"l_{v.var}"))], views + body),
                  [(f"l_{v.var}", v.extent)])


def nested(sc: Scene) -> Lines:
    """Blocks of a tile inside of a block."""
    rng, b = sc.rng, sc.target()
    size = b.shape[0]
    tile = next((t for t in rng.sample([2, 3, 4, 5], 4) if size % t == 0 and t < size), 1)
    o, i, v = Axis(sc.name("o"), size // tile), sc.name("i"), Axis(sc.name("v"), size)
    rest = [Axis(sc.name("v"), e) for e in b.shape[1:]]
    writer = sc.writer(b)
    here = b.at(v.twin, *[a.twin for a in rest])
    inner = block(sc.name("inner"), [(v.var, "spatial", str(size), plain(f"{o.var} * {tile} + {i}")),
                                     *[(a.var, "spatial", str(a.extent), plain(f"l_{a.var}")) for a in rest]],
                  store(here, writer.value([v, *rest], 1, None if b in sc.fresh else here)))
    inner = looped(inner, [(i, tile), *[(f"l_{a.var}", a.extent) for a in rest]])
    sc.written(b)
    return looped(block(sc.name("outer"), [(o.var, "spatial", str(o.extent), plain(f"l_{o.var}"))], inner),
                  [(f"l_{o.var}", o.extent)])


def neighbours(sc: Scene) -> Lines:
    """Two blocks in one loop: the second reads what the first has left in this iteration, or in an earlier one."""
    rng = sc.rng
    rows = [b for b in sc.ready if len(b.shape) == 1 and b not in sc.orders.values()]
    if len(rows) < 2:
        return elementwise(sc)
    b, c = rng.sample(rows, 2)
    extent = min(b.shape[0], c.shape[0])
    i, v, u = Axis(sc.name("i"), extent), Axis(sc.name("v"), extent), Axis(sc.name("u"), extent)
    writer = sc.writer(b, c)
    first = block(sc.name("first"), [(v.var, "spatial", str(extent), i.twin)],
                  store(b.at(v.twin), writer.value([v], 1, b.at(v.twin))))
    read = b.at(rng.choice([u.twin, u.twin, plain(f"({extent - 1} - {u.var})"), plain("0")]))
    where = writer.condition([i]) if rng.random() < 0.3 else None
    if rng.random() < 0.4:
        where = compare(">", b.at(rng.choice([i.twin, plain(f"({extent - 1} - {i.var})")])), number(rng.randint(-3, 3)))
    second = block(sc.name("second"), [(u.var, "spatial", str(extent), i.twin)],
                   store(c.at(u.twin), op("+", read, writer.value([u], 1, c.at(u.twin)))), where)
    return looped(first + second, [(i.var, extent)])


NESTS: tuple[tuple[Callable[[Scene], Lines], float], ...] = (
    (elementwise, 5), (part, 2), (reduction, 3), (accumulation, 1.5), (argmax, 1), (recurrence, 2), (scatter, 1),
    (repeated, 0.7), (views, 1.2), (nested, 1.2), (neighbours, 2))
