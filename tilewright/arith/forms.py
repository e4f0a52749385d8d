"""Integer expressions to linear forms and back."""
from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

from tilewright.arith.context import Context
from tilewright.arith.intervals import UNBOUNDED
from tilewright.arith.laws import divide, maximum, minimum, remainder
from tilewright.arith.linear import Atom, Bounds, Linear, structural_key
from tilewright.arith.proof import nonneg, positive
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import refolded
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Let, Select, Var
from tilewright.tir.node import map_children, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.places import INDEXED

Rule = Callable[[Context, Linear, Linear], Linear]


def form_of(ctx: Context, e: Expr) -> Linear:
    """The linear form of a scalar expression of one of ctx.types.

    Of an index, its value. Of a value, an integer that is congruent to it: sums and products are taken in the
    integers, and only where ctx.fits the form is the value.
    """
    cls = type(e)
    if cls is IntImm:
        return Linear({}, e.value)  # type: ignore[attr-defined]
    found = ctx.forms.get(id(e))
    if found is not None:
        return found[1]
    if cls is Binary:
        form = READINGS.get(e.op, _opaque)(ctx, e)  # type: ignore[attr-defined]
        if ctx.in_place and not ctx.is_plain(e) and not _keeps_wrapping(ctx, form, e):
            form = _opaque(ctx, e)
    elif cls is Var:
        form = _variable(ctx, e)
    else:
        form = _NODES.get(cls, _opaque)(ctx, e)
    ctx.forms[id(e)] = (e, form)
    return form


def _keeps_wrapping(ctx: Context, form: Linear, e: Expr) -> bool:
    """True when form still says that e, an index with data in it, wraps around: data may have cancelled out of it."""
    if not form.exact:
        return True
    with ctx.places(False):
        return ctx.fits(form, e.dtype)


def _variable(ctx: Context, v: Any) -> Linear:
    atom = ctx.var_atom(v)
    value = ctx.values.get(atom)
    if value is not None:
        return value
    lo, hi = ctx.span(atom)
    return Linear({}, lo) if lo is not None and lo == hi else Linear({atom: 1})


def _add(ctx: Context, e: Any) -> Linear:
    return form_of(ctx, e.a).plus(form_of(ctx, e.b))


def _sub(ctx: Context, e: Any) -> Linear:
    return form_of(ctx, e.a).plus(form_of(ctx, e.b), -1)


def _mul(ctx: Context, e: Any) -> Linear:
    return ctx.multiply(form_of(ctx, e.a), form_of(ctx, e.b))


def _operands(ctx: Context, e: Any) -> tuple[Linear, Linear] | None:
    """The forms of both operands, or None when one of them may have wrapped around."""
    a, b = form_of(ctx, e.a), form_of(ctx, e.b)
    return (a, b) if ctx.fits(a, e.type) and ctx.fits(b, e.type) else None


def _division(law: Rule, truncates: bool) -> Callable[[Context, Any], Linear]:
    def build(ctx: Context, e: Any) -> Linear:
        pair = _operands(ctx, e)
        if pair is None or (not pair[1].terms and pair[1].const == 0):
            return _opaque(ctx, e)
        if truncates and not (nonneg(ctx, pair[0]) and positive(ctx, pair[1])):
            return _opaque(ctx, e)
        return _held(ctx, law(ctx, *pair), e)
    return build


def _held(ctx: Context, form: Linear, e: Any) -> Linear:
    """form, that a law gave for e; e as it is where its type does not hold what the law makes of it."""
    return form if ctx.holds(form, e.type) else _opaque(ctx, e)


def _choice(law: Rule) -> Callable[[Context, Any], Linear]:
    def build(ctx: Context, e: Any) -> Linear:
        pair = _operands(ctx, e)
        return _opaque(ctx, e) if pair is None else _held(ctx, law(ctx, *pair), e)
    return build


def _shift(ctx: Context, e: Any) -> Linear:
    """x << c is x * 2**c and x >> c is x // 2**c, for constant c."""
    pair = _operands(ctx, e)
    if pair is None or pair[1].terms or not 0 <= pair[1].const < dt.bits_of(e.type):
        return _opaque(ctx, e)
    power = 1 << pair[1].const
    return pair[0].times(power) if e.op == "shl" else _held(ctx, divide(ctx, pair[0], Linear({}, power)), e)


def _bitand(ctx: Context, e: Any) -> Linear:
    """x & (2**k - 1) is x % 2**k: in two's complement, for negative x too."""
    pair = _operands(ctx, e)
    if pair is not None and not pair[1].terms:
        power = pair[1].const + 1
        if power > 0 and power & pair[1].const == 0:
            return _held(ctx, remainder(ctx, pair[0], Linear({}, power)), e)
    return _opaque(ctx, e)


READINGS: dict[str, Callable[[Context, Any], Linear]] = {
    "add": _add, "sub": _sub, "mul": _mul,
    "floordiv": _division(divide, False), "floormod": _division(remainder, False),
    "truncdiv": _division(divide, True), "truncmod": _division(remainder, True),
    "min": _choice(minimum), "max": _choice(maximum), "shl": _shift, "shr": _shift, "bitand": _bitand,
}


def _cast(ctx: Context, e: Any) -> Linear:
    """A widening cast of an index is the index itself; any other cast is an atom."""
    source = e.value.dtype
    if source not in ctx.types:
        return _opaque(ctx, e)
    form = form_of(ctx, e.value)
    if e.type == "int64" and source == "int32" and ctx.fits(form, source):
        return form
    value = ctx.simplify(e.value)
    new = e if value is e.value else Cast(e.type, value)
    key = ("cast", source, e.type, form.key, ctx.in_place and e.type == "int64")
    return Linear({ctx.intern(key, "cast", (form, source, e.type), new, exact=False): 1})


def _select(ctx: Context, e: Any) -> Linear:
    """A choice whose condition is known is the branch; if_then_else evaluates only the one it takes."""
    condition, a, b = (e.condition, e.a, e.b) if type(e) is Select else e.args
    with ctx.places(False):
        known = ctx.simplify(condition)
    if isinstance(known, IntImm):
        return form_of(ctx, a if known.value else b)
    lazy = type(e) is Call
    if lazy:
        with ctx.branch(known, memory=True):
            x = form_of(ctx, a)
    else:                                  # both branches are evaluated: each must stay safe on its own
        x = form_of(ctx, a)
    y = form_of(ctx, b)
    if x.key == y.key:
        return x
    if not ctx.holds(x, e.dtype) or not ctx.holds(y, e.dtype):
        return _opaque(ctx, e)
    exact = x.exact and y.exact
    key = ("select", lazy, structural_key(known), x.key, y.key)
    return Linear({ctx.intern(key, "select", (lazy, known, x, y), exact=exact): 1})


def _call(ctx: Context, e: Any) -> Linear:
    if e.op == "if_then_else":
        return _select(ctx, e)
    if e.op == "abs":
        with ctx.places(False):
            form = form_of(ctx, e.args[0])
            if ctx.fits(form, e.type) and nonneg(ctx, form):
                return form
    return _opaque(ctx, e)


def _opaque(ctx: Context, e: Any) -> Linear:
    """e as one atom, its children simplified. Calls with effects are never taken for equal."""
    new: Any = simplify_children(ctx, e)
    if ctx.in_place and isinstance(new, Binary) and ctx.is_plain(new) and not ctx.is_plain(e):
        new = e                                          # without the data that was in it, it would not wrap any more
    if isinstance(new, Binary):
        new = refolded(new)
    if isinstance(new, IntImm):
        return Linear({}, new.value)
    effect = any(isinstance(n, Call) and INTRINSICS[n.op].kind == "effect" for n in walk(new))
    key: Any = ("effect", id(e)) if effect else structural_key(new)
    key = (key, ctx.in_place) if isinstance(new, (Binary, Call)) else key      # what arithmetic means there
    args = (e,) if effect else ()
    return Linear({ctx.intern(key, "opaque", args, new, _type_bounds(ctx, new), exact=False): 1})


def _type_bounds(ctx: Context, e: Expr) -> Bounds:
    """What the types alone say about an opaque value."""
    least, most = dt.integer_range(e.dtype)
    if isinstance(e, Cast) and (dt.is_integer(e.value.dtype) or dt.is_bool(e.value.dtype)):
        lo, hi = dt.integer_range(e.value.dtype)
        return (lo, hi) if least <= lo and hi <= most else (least, most)
    return UNBOUNDED if _is_index(ctx, e) else (least, most)


def _is_index(ctx: Context, e: Expr) -> bool:
    """True for arithmetic that no type bounds, and for a choice of such."""
    match e:
        case Binary():
            return ctx.in_place and ctx.is_plain(e) or form_of(ctx, e.a).exact and form_of(ctx, e.b).exact
        case Call(op="if_then_else", args=(_, a, b)) | Select(_, a, b):
            return _is_index(ctx, a) or _is_index(ctx, b)
    return False


_NODES: dict[type, Callable[[Context, Any], Linear]] = {Cast: _cast, Select: _select, Call: _call}


def simplify_children(ctx: Context, e: Expr) -> Any:
    """e with its children simplified, each as what it is there: an index or a value (see `tir.places`)."""
    place = ctx.in_place
    if isinstance(e, Select) or isinstance(e, Call) and e.op == "if_then_else":
        parts = (e.condition, e.a, e.b) if isinstance(e, Select) else e.args
        with ctx.places(False):
            condition: Any = ctx.simplify(parts[0])
        new = (condition, *map(ctx.simplify, parts[1:]))
        if all(map(is_, new, parts)):
            return e
        return Select(*new) if isinstance(e, Select) else e.replace(args=new)
    if isinstance(e, Call):
        place = e.op in INDEXED
    elif isinstance(e, Let):
        place = False
    elif isinstance(e, Cast):
        place = place and e.type == "int64"
    if ctx.in_place is (place or isinstance(e, Load)):
        return map_children(e, ctx.simplify)  # type: ignore[arg-type]
    with ctx.places(not ctx.in_place):
        return map_children(e, ctx.simplify)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------- back to expressions

def imm(value: int, dtype: str) -> IntImm:
    """The constant value, wrapped around into dtype as its arithmetic would."""
    return IntImm(dt.wrapped(value, dtype), dtype)


def to_expr(ctx: Context, form: Linear, dtype: str) -> Expr:
    """The expression of a form: an index in dtype, and in int64 where int32 does not hold it. Nothing is cut."""
    wide = dtype == "int32" and ctx.in_place and not ctx.holds(form, dtype)
    return written(ctx, form, "int64" if wide else dtype)


def written(ctx: Context, form: Linear, dtype: str) -> Expr:
    """The expression of a form that dtype holds: its terms in order, a positive one first, and the constant last."""
    mixed = ctx.with_remainders(form)
    if mixed is not form and not ctx.holds(mixed, dtype):
        mixed = form
    terms = list(mixed.terms.items())
    if not terms:
        return imm(mixed.const, dtype)
    const = mixed.const
    out: Expr | None = None
    if terms[0][1] < 0:
        lead = next((i for i, (_, k) in enumerate(terms) if k > 0), None)
        if lead is not None:
            terms.insert(0, terms.pop(lead))
        elif const:
            out, const = imm(const, dtype), 0
    for atom, k in terms:
        if out is None:
            out = _scaled(ctx, atom, k, dtype)
        else:
            op, k = _signed(k, dtype)
            out = Binary(op, out, _scaled(ctx, atom, k, dtype), dtype)
    assert out is not None
    if const:
        op, const = _signed(const, dtype)
        out = Binary(op, out, imm(const, dtype), dtype)
    return out


def _signed(k: int, dtype: str) -> tuple[str, int]:
    """("add", k) or ("sub", -k): a number that is written without a sign, where dtype has that."""
    return ("sub", -k) if k < 0 and -k <= dt.integer_range(dtype)[1] else ("add", k)


def _scaled(ctx: Context, atom: Atom, k: int, dtype: str) -> Expr:
    whole = ctx.multiples.get(atom)
    if whole is not None and k % whole[1] == 0:
        atom, k = whole[0], k // whole[1]
    e = atom_expr(ctx, atom, dtype)
    return e if k == 1 else Binary("mul", e, imm(k, dtype), dtype)


_BACK = {"div": "floordiv", "mod": "floormod", "min": "min", "max": "max"}


def atom_expr(ctx: Context, atom: Atom, dtype: str) -> Expr:
    """The expression of an atom, in dtype."""
    if ctx.multiples:                    # an atom may read differently while x is known to be c * (x // c)
        return _atom_expr(ctx, atom, dtype)
    e = atom.texts.get(dtype)
    if e is None:
        e = atom.texts[dtype] = _atom_expr(ctx, atom, dtype)
    return e


def _atom_expr(ctx: Context, atom: Atom, dtype: str) -> Expr:
    kind, args = atom.kind, atom.args
    if atom.expr is not None:
        return atom.expr if atom.expr.dtype == dtype else Cast(dtype, atom.expr)
    if kind == "product":
        e = atom_expr(ctx, args[0], dtype)
        for f in args[1:]:
            e = Binary("mul", e, atom_expr(ctx, f, dtype), dtype)
        return e
    if kind == "div" and len(args[0].terms) == 1 and not args[0].const and not args[1].terms:
        (q, k), = args[0].terms.items()
        whole = ctx.multiples.get(q)
        if whole is not None and k == 1:
            divisor = imm(whole[1] * args[1].const, dtype)
            return Binary("floordiv", atom_expr(ctx, whole[0], dtype), divisor, dtype)
    if kind == "select":
        lazy, condition, a, b = args
        x, y = written(ctx, a, dtype), written(ctx, b, dtype)
        return Call("if_then_else", (condition, x, y), dtype) if lazy else Select(condition, x, y)
    return Binary(_BACK[kind], written(ctx, args[0], dtype), written(ctx, args[1], dtype), dtype)
