"""Gathers and scatters by indices from data, some of which lie outside: those are an error, never a wild access.

The reference works out, element by element, which accesses are made: the branch that `if_then_else` does not take
makes none, nor does what stands behind a false part of an `and`. Where one is outside, the interpreter and native code
must raise; elsewhere the results must be equal. In either case no memory beside the arguments changes, nor any input.
Native code may leave out a read whose value cannot matter, and does not raise for it then.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.script import from_source
from tilewright.support.errors import CallError, InterpreterError, TensorExpressionError

from .common import Case, Wrong, array_differences, call_guarded
from .scalars import INTEGERS, limits, wrapped

_BEYOND = (0, 1, 2, 3, 5, 7, -1, 100, 2 ** 31 - 1, -2 ** 31, 2 ** 63 - 1)    # what may stand outside of a source
FORMS = ("loop", "vector", "parallel", "blocks", "te", "te vector", "te parallel", "compile")


class Outside(Exception):
    """An access of the reference is outside of its buffer."""


@dataclass(frozen=True)
class Index:
    """How an element of `source` becomes an index of a dimension of `extent` elements."""
    kind: str
    source: str
    extent: int
    c: int = 0
    inner: Index | None = None

    def text(self, at: str, lang: str) -> str:
        """In a script, or in Python over te's functions."""
        raw = self.inner.text(at, lang) if self.inner is not None else at
        x = f"{self.source}[{raw}]"
        wide = f'T.cast({x}, "int64")' if lang == "script" else f'{x}.astype("int64")'
        short = f'T.cast({x}, "int32")' if lang == "script" else f'{x}.astype("int32")'
        low, high = ("T.min", "T.max") if lang == "script" else ("te.minimum", "te.maximum")
        const = (lambda v: f"T.int64({v})") if lang == "script" else (lambda v: f'te.const({v}, "int64")')
        match self.kind:
            case "plain":
                return x
            case "cast":
                return short
            case "shifted":
                return f"({wide} + {const(self.c)})"
            case "mod":
                return f"({wide} % {const(self.extent)})"
            case "clip":
                return f"{low}({high}({wide}, {const(0)}), {const(self.extent - 1)})"
            case "half clip":
                return f"{low}({wide}, {const(self.extent - 1)})"
            case "mask":
                return f"{low}({wide} & {const(self.c)}, {const(self.extent - 1)})"
        return f"({wide} >> {const(self.c)})"

    def value(self, data: dict[str, np.ndarray], at: int, beyond: int | None = None) -> int:
        """Where the index of the source is outside, what is read there is `beyond`; raises Outside without it."""
        a = data[self.source]
        position = at if self.inner is None else self.inner.value(data, at, beyond)
        if 0 <= position < len(a):
            beyond = int(a[position])
        if beyond is None:
            raise Outside
        x = beyond if self.kind == "plain" else wrapped(beyond, "int64")
        match self.kind:
            case "plain":
                return x
            case "cast":
                return (x + 2 ** 31) % 2 ** 32 - 2 ** 31
            case "shifted":
                return x + self.c
            case "mod":
                return x % self.extent
            case "clip":
                return min(max(x, 0), self.extent - 1)
            case "half clip":
                return min(x, self.extent - 1)
            case "mask":
                return min(x & self.c, self.extent - 1)
        return x >> self.c


@dataclass(frozen=True)
class Output:
    """out[i] = table[index(s)] under a guard; "scatter": out[index] = or += of i's elements, in order."""
    kind: str
    indices: tuple[Index, ...]
    table: str = ""
    guard: str = ""                                    # "", "if", "select": where the indices are known to be inside


@dataclass
class Program:
    seed: int
    form: str
    length: int
    checked: bool
    data: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)

    def want(self, beyond: int | None = None) -> dict[str, np.ndarray] | None:
        """The outputs; None where an access is outside, that of an index excepted where `beyond` is what it reads."""
        out = {n: start_of(self, n) for n in self.outputs}
        try:
            for n, o in self.outputs.items():
                for i in range(self.length):
                    self._element(n, o, i, out, beyond)
        except Outside:
            return None
        return out

    def want_without(self) -> dict[str, np.ndarray] | None:
        """The outputs where none depends on what is read outside; else None."""
        first, *others = (self.want(beyond) for beyond in _BEYOND)
        same = first is not None and all(o is not None and all(map(np.array_equal, first.values(), o.values()))
                                         for o in others)
        return first if same else None

    def _element(self, n: str, o: Output, i: int, out: dict[str, np.ndarray], beyond: int | None) -> None:
        if o.kind == "gather":
            table = self.data[o.table]
            at = []
            for x, extent in zip(o.indices, table.shape, strict=True):
                at.append(x.value(self.data, i, beyond))
                if not 0 <= at[-1] < extent:
                    if not o.guard:
                        raise Outside
                    out[n][i] = -7                     # `and` asks for no more
                    return
            out[n][i] = table[tuple(at)]
            return
        (at,) = [x.value(self.data, i, beyond) for x in o.indices]
        if not 0 <= at < len(out[n]):
            raise Outside
        added = out[n][at] if o.kind == "add" else 0
        out[n][at] = added + self.data["V"][i]


def start_of(p: Program, n: str) -> np.ndarray:
    o = p.outputs[n]
    length = p.length if o.kind == "gather" else o.indices[0].extent
    return np.full(length, 3, "int32")


def program(seed: int) -> Program:
    rng = random.Random(f"gathers {seed}")
    p = Program(seed, rng.choice(FORMS), rng.choice([8, 16, 24]), rng.random() < 0.2)
    if p.form == "te parallel" or p.form == "compile":
        p.checked = False
    tables = {"A": (rng.choice([5, 8, 16, 33]),), "M": (rng.choice([3, 6]), rng.choice([4, 7]))}
    for n, shape in tables.items():
        p.data[n] = np.array([rng.randint(-99, 99) for _ in range(int(np.prod(shape)))], "int32").reshape(shape)
    p.data["V"] = np.array([rng.randint(-9, 9) for _ in range(p.length)], "int32")
    wild = rng.random() < 0.5                            # an index may lie outside
    sources = {}
    for k in range(rng.choice([1, 2, 3])):
        d = rng.choice(INTEGERS)
        low, high = limits(d)
        most = rng.choice([3, 4, 5, 8])
        inside = [rng.randrange(most) for _ in range(p.length)]
        if wild:
            for _ in range(rng.choice([0, 1, 1, 3])):
                bad = rng.choice([low, high, max(-1, low), max(-2, low), most, *tables["A"], *tables["A"], *tables["M"],
                                  min(100000, high)])
                inside[rng.randrange(p.length)] = bad
        p.data[f"I{k}"] = np.array(inside, d)
        sources[f"I{k}"] = most
    for k in range(rng.choice([1, 2, 3, 4])):
        p.outputs[f"o{k}"] = _output(rng, p, sources, tables, in_te=p.form.startswith(("te", "compile")))
    return p


def _index(rng: random.Random, p: Program, sources: dict[str, int], extent: int, deep: bool = True) -> Index:
    source = rng.choice(list(sources))
    kind = rng.choice(["plain", "plain", "cast", "shifted", "mod", "clip", "half clip", "mask", "shift"])
    c = {"shifted": rng.choice([0, 1, -1, 2]), "mask": rng.choice([3, 7, 255, 2 ** 31 - 1, 2 ** 63 - 1, 2 ** 32 - 1]),
         "shift": rng.choice([0, 1, 2])}.get(kind, 0)
    inner = _index(rng, p, sources, p.length, False) if deep and rng.random() < 0.2 else None
    return Index(kind, source, extent, c, inner)


def _output(rng: random.Random, p: Program, sources: dict[str, int], tables: dict[str, tuple[int, ...]],
            in_te: bool) -> Output:
    if not in_te and p.form in ("loop", "blocks") and rng.random() < 0.35:
        return Output(rng.choice(["set", "add", "add"]), (_index(rng, p, sources, rng.choice([5, 8, 40])),))
    table = rng.choice(list(tables))
    return Output("gather", tuple(_index(rng, p, sources, e) for e in tables[table]), table,
                  rng.choice(["", "", "", "if"]))


# writing it ----------------------------------------------------------------------------------------------------------
def script(p: Program) -> str:
    arguments = [f'{n}: T.Buffer({a.shape}, "{a.dtype}")' for n, a in p.data.items()]
    arguments += [f'{n}: T.Buffer({start_of(p, n).shape}, "int32")' for n in p.outputs]
    lines = ["@T.prim_func", f"def main({', '.join(arguments)}):"]
    if p.form == "blocks":
        for n, o in p.outputs.items():
            lines += [f"    for l_{n} in range({p.length}):", f'        with T.block("{n}"):',
                      f"            i = T.axis.{'spatial' if o.kind == 'gather' else 'opaque'}({p.length}, l_{n})",
                      f"            {_statement(p, n, o, 'i')}"]
        return "\n".join(lines)
    if p.form == "vector":
        at = "(outer * 8 + lane)"
        lines += [f"    for outer in range({p.length // 8}):", "        for lane in T.vectorized(8):"]
        return "\n".join([*lines, *[f"            {_statement(p, n, o, at)}" for n, o in p.outputs.items()]])
    lines.append(f"    for i in {'T.parallel' if p.form == 'parallel' else 'range'}({p.length}):")
    return "\n".join([*lines, *[f"        {_statement(p, n, o, 'i')}" for n, o in p.outputs.items()]])


def _statement(p: Program, n: str, o: Output, at: str) -> str:
    index = [x.text(at, "script") for x in o.indices]
    if o.kind != "gather":
        return f"{n}[{index[0]}] {'+=' if o.kind == 'add' else '='} V[{at}]"
    return f"{n}[{at}] = {_gathered(p, o, index, 'T.if_then_else', 'and')}"


def _gathered(p: Program, o: Output, index: list[str], choose: str, both: str) -> str:
    read = f"{o.table}[{', '.join(index)}]"
    if not o.guard:
        return read
    inside = [c for x, e in zip(index, p.data[o.table].shape) for c in (f"({x} >= 0)", f"({x} < {e})")]
    condition = f" {both} ".join(inside) if both == "and" else f"te.all({', '.join(inside)})"
    other = "T.int32(-7)" if both == "and" else "te.const(-7, 'int32')"
    return f"{choose}({condition}, {read}, {other})"


def stages(p: Program) -> tuple[list[Any], list[Any]]:
    """p in te: (the arguments, the outputs)."""
    tensors = {n: te.placeholder(a.shape, str(a.dtype), name=n) for n, a in p.data.items()}

    def body(o: Output) -> Callable[[Any], Any]:
        def element(i: Any) -> Any:
            text = _gathered(p, o, [x.text("i", "te") for x in o.indices], "te.if_then_else", ",")
            return eval(text, {**tensors, "te": te, "i": i})
        return element
    outs = [te.compute((p.length,), body(o), name=n) for n, o in p.outputs.items()]
    return [*tensors.values(), *outs], outs


def functions(p: Program) -> tuple[Any, Callable[[str], Any]]:
    """(what the interpreter runs, build of a target)."""
    if not p.form.startswith(("te", "compile")):
        func = from_source(script(p))
        return func, lambda target: tw.build(func, target=target, checked=p.checked)
    arguments, outs = stages(p)
    func = te.create_prim_func(arguments)
    if p.form == "compile":
        return func, lambda target: tw.compile(func, target=target)
    s = te.create_schedule([t.op for t in outs])
    for t in outs:
        if p.form == "te vector":
            s[t].vectorize(s[t].split(t.op.axis[0], factor=8)[1])
        elif p.form == "te parallel":
            s[t].parallel(t.op.axis[0])
    return func, lambda target: tw.build(s, arguments, target=target, name="main", checked=p.checked)


def check(p: Program, case: Case) -> None:
    """Raise Wrong unless both raise where an access is outside, and give the reference elsewhere."""
    want = p.want()
    spared = p.want_without() if want is None else None
    try:
        func, build = functions(p)
    except TensorExpressionError as why:
        if want is None and "is outside" in str(why):
            return                                     # it always is: refused where it is written
        raise
    built = case.build(build)
    runs = [("interpreter", lambda args: case.interpret(func, args), InterpreterError)] if case.interpreted else []
    for who, run, error in (*runs, ("native", lambda args: call_guarded(built["main"], args), CallError)):
        args = [*[a.copy() for a in p.data.values()], *[start_of(p, n) for n in p.outputs]]
        raised = ""
        try:
            run(args)
        except error as why:
            raised = str(why).splitlines()[0]
        if any(a.tobytes() != old.tobytes() for a, old in zip(args, p.data.values(), strict=False)):
            raise Wrong(f"{who}: an input was changed")
        expected = spared if who == "native" and want is None and not raised else want
        if bool(raised) != (expected is None):
            raise Wrong(f"{who}: {'raised ' + raised if raised else 'did not raise'}, "
                        f"expected {'an error' if expected is None else 'none'}")
        if expected is not None:
            wrong = array_differences(dict(zip(expected, args[len(p.data):], strict=True)), expected)
            if wrong:
                raise Wrong("\n".join(f"{who}: {n}: {why}" for n, why in wrong.items()))


def describe(p: Program) -> str:
    text = script(replace(p, form="loop") if p.form.startswith(("te", "compile")) else p)
    return f"form {p.form}, checked {p.checked}\n{text}\n" + "\n".join(f"{n} = {a.tolist()}" for n, a in p.data.items())


def smaller(p: Program) -> list[Callable[[], Program]]:
    """Programs with one output, fewer inputs, plainer forms."""
    out: list[Callable[[], Program]] = []
    if len(p.outputs) > 1:
        out += [lambda n=n, o=o: replace(p, outputs={n: o}) for n, o in p.outputs.items()]  # type: ignore[misc]
    for n, o in p.outputs.items():
        for k, x in enumerate(o.indices):
            if x.inner is not None:
                plain = replace(o, indices=(*o.indices[:k], replace(x, inner=None), *o.indices[k + 1:]))
                out.append(lambda n=n, o=plain: replace(p, outputs=p.outputs | {n: o}))  # type: ignore[misc]
    used = str(list(p.outputs.values()))
    out += [lambda n=n: replace(p, data={m: a for m, a in p.data.items() if m != n})  # type: ignore[misc]
            for n in p.data if f"'{n}'" not in used and n != "V"]
    if p.checked:
        out.append(lambda: replace(p, checked=False))
    if p.form not in ("loop", "te"):
        out.append(lambda: replace(p, form="te" if p.form.startswith(("te", "compile")) else "loop"))
    return out
