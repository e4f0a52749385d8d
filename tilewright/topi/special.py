"""Special functions: of errors, gamma functions, logarithms with their limits, signs and fractions.

What series and quotients of polynomials approximate is computed in float64.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.te import math as te_math
from tilewright.te.math import reinterpret
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, any_of, binary, negate, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.elementwise import elementwise
from tilewright.topi.shapes import check, check_numbers, check_tensors
from tilewright.topi.types import ANY, FLOAT, NUMBER

_F = te_math.FUNCTIONS
_exp, _log, _erf = _F["exp"], _F["log"], _F["erf"]


def _c(e: Expr, value: float) -> Expr:
    return const(value, e.dtype)


def _unary(op: str, formula: str, f: Callable[[Expr], Expr], kind: str = FLOAT) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        check_tensors(op, x=x)
        return elementwise(op, f, x, kind=kind)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"y = {formula}, element by element."
    return function


def _binary(op: str, formula: str, f: Callable[[Expr, Expr], Expr]) -> Callable[[Any, Any], Tensor]:
    def function(a: Any, b: Any) -> Tensor:
        return elementwise(op, f, a, b, kind=FLOAT)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"y = {formula}; a and b broadcast, one may be a number."
    return function


def _in_float64(f: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return lambda e: cast(e.dtype, f(cast("float64", e)))


# error functions

#: of exp(x * x) * x * erfc(x) as a quotient of polynomials in 1 / (x * x): up to 1 / 0.35, and above.
#: Source: fdlibm, s_erf.c (Sun Microsystems, 1993)
_NEAR = ((-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
          -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
          -8.12874355063065934246e+01, -9.81432934416914548592e+00),
         (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
          6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
          6.57024977031928170135e+00, -6.04244152148580987438e-02))
_FAR = ((-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
         -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
         -4.83519191608651397019e+02),
        (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
         3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
         -2.24409524465858183362e+01))


def _polynomial(coefficients: Sequence[float], x: Expr) -> Expr:
    out = _c(x, coefficients[-1])
    for value in coefficients[-2::-1]:
        out = out * x + value
    return out


def _erfc(x: Expr) -> Expr:
    """1 - erf(x) in float64, without cancellation."""
    size = binary("min", binary("max", absolute(x), _c(x, 1.25)), _c(x, 30.0))
    s = 1.0 / (size * size)
    near, far = (_polynomial(p, s) / _polynomial(q, s) for p, q in (_NEAR, _FAR))
    short = cast("float64", cast("float32", size))
    tail = _exp(negate(short * short) - 0.5625) * _exp((short - size) * (short + size) + select(
        binary("lt", size, _c(x, 1 / 0.35)), near, far)) / size
    outer = select(binary("gt", x, _c(x, 0.0)), tail, 2.0 - tail)
    small = any_of(_F["isnan"](x), binary("lt", absolute(x), _c(x, 1.25)))
    return select(small, 1.0 - _erf(x), outer)


#: of erfinv(x) / x in w - 2.5 and sqrt(w) - 3, w = -log(1 - x * x).
#: Source: Giles, Approximating the erfinv function (2010)
_MIDDLE = (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
           3.43273939e-07, 2.81022636e-08)
_ENDS = (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322,
         0.000100950558, -0.000200214257)


def _erfinv_start(x: Expr) -> Expr:
    """An approximation of the number whose erf is x."""
    w = negate(_log((1.0 - x) * (1.0 + x)))
    root = _F["sqrt"](binary("max", w, _c(x, 0.0)))
    return x * select(binary("lt", w, _c(x, 5.0)), _polynomial(_MIDDLE, w - 2.5), _polynomial(_ENDS, root - 3.0))


def _erfinv_step(y: Expr, x: Expr) -> Expr:
    """A step of Newton's method to the number whose erf is x."""
    over = select(binary("gt", y, _c(x, 0.0)), (1.0 - x) - _erfc(y), _erfc(negate(y)) - (1.0 + x))
    return y - over * _exp(y * y) * (math.sqrt(math.pi) / 2)


def erfinv(x: Tensor) -> Tensor:
    """y = the number whose erf is x, element by element; infinities for -1 and 1, NaN beyond them."""
    op = "erfinv"
    check_tensors(op, x=x)

    def within(e: Expr) -> Expr:
        return select(binary("lt", absolute(e), _c(e, 1.0)), e, _c(e, 0.0))

    def finished(e: Expr, y: Expr) -> Expr:
        ends = select(binary("eq", absolute(e), _c(e, 1.0)), e * float("inf"), _c(e, float("nan")))
        return select(binary("lt", absolute(e), _c(e, 1.0)), y, ends)
    given = elementwise(f"{op}_x", lambda e: e, x, kind=FLOAT)
    wide = elementwise(f"{op}_within", lambda e: within(cast("float64", e)), given, dtype="float64")
    y = elementwise(f"{op}_start", _erfinv_start, wide)
    for _ in range(2):
        y = elementwise(f"{op}_step", _erfinv_step, y, wide)
    return elementwise(op, lambda e, value: finished(cast("float64", e), value), given, y, dtype=given.dtype)


erfc = _unary("erfc", "1 - erf(x), without cancellation", _in_float64(_erfc))
normal_cdf = _unary("normal_cdf", "how likely a standard normal number is at most x: erfc(-x / sqrt(2)) / 2",
                    _in_float64(lambda e: _erfc(e * -math.sqrt(0.5)) * 0.5))


# gamma functions

#: of the gamma function with g = 7, n = 9. Source: Lanczos (1964), coefficients by Godfrey (2001)
_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
            12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)
#: of the asymptotic series of digamma(x) - log(x) + 1 / (2 * x) in 1 / (x * x): -B(2k) / 2k
_DIGAMMA = (0.0, -1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)


def _lgamma(x: Expr) -> Expr:
    """log(|gamma(x)|) in float64."""
    low = binary("lt", x, _c(x, 0.5))
    t = select(low, 0.0 - x, x - 1.0)                       # gamma(t + 1), reflected below 1 / 2
    total = _c(x, _LANCZOS[0])
    for k, c in enumerate(_LANCZOS[1:], 1):
        total = total + c / (t + float(k))
    base = t + 7.5
    y = (t + 0.5) * _log(base) - base + _log(total) + 0.5 * math.log(2 * math.pi)
    fraction = absolute(x - te_math.round(x))
    mirrored = math.log(math.pi) - _log(_F["sin"](fraction * math.pi)) - y
    pole = all_of(binary("le", x, _c(x, 0.0)), binary("eq", fraction, _c(x, 0.0)))
    infinite = any_of(pole, _F["isinf"](x))
    zero = any_of(binary("eq", x, _c(x, 1.0)), binary("eq", x, _c(x, 2.0)))
    return select(infinite, _c(x, float("inf")), select(zero, _c(x, 0.0), select(low, mirrored, y)))


def _digamma(x: Expr) -> Expr:
    """The derivative of log(gamma(x)) in float64."""
    low = binary("lt", x, _c(x, 0.0))
    t = select(low, 1.0 - x, x)
    shift = _c(x, 0.0)
    for k in range(8):
        shift = shift + 1.0 / (t + float(k))
    far = t + 8.0
    y = _log(far) - 0.5 / far + _polynomial(_DIGAMMA, 1.0 / (far * far)) - shift
    fraction = x - te_math.round(x)
    mirrored = y - math.pi / _F["tan"](fraction * math.pi)
    whole = binary("eq", fraction, _c(x, 0.0))
    return select(all_of(low, whole), _c(x, float("nan")), select(low, mirrored, select(
        binary("eq", x, _c(x, 0.0)), -1.0 / x, y)))


#: of exp(-x) * I0(x) in x / 4 - 1 up to 8, times sqrt(x) in 16 / x - 1 above: the series of Chebyshev polynomials of
#: Cephes, i0.c (Moshier, 1984), as polynomials
_I0_NEAR = (0.2070019212239867, -0.11300432688620551, 0.09451562853995098, -0.08904344136075956,
            0.08734341617552316, -0.08496338091616307, 0.07927522590716346, -0.06954119561719382,
            0.05677703201991694, -0.042985949454796106, 0.03017791202297836, -0.019682654690592345,
            0.01196007790702622, -0.006792399873073169, 0.003617126448897043, -0.0018118867939377241,
            0.0008563152748272305, -0.0003829020955006598, 0.00016240542162878106, -6.55086138962085e-05,
            2.520232727107692e-05, -9.251680584432657e-06, 3.2293390826404927e-06, -1.0883393970072518e-06,
            3.6758429265554296e-07, -1.1384114641747254e-07, 2.626536315197011e-08, -7.723094556846333e-09,
            4.470516727511741e-09, -1.1852342482684723e-09)
_I0_FAR = (0.40217650944500805, 0.003360551983667862, 0.0001362160743919305, 1.114303379093204e-05,
           1.4838475658279249e-06, 2.9735985885673923e-07, 8.872219737904054e-08, 3.9325843345529525e-08,
           2.1548377974791598e-08, 7.554691881248808e-09, -6.747657956107524e-09, -1.340891754008974e-08,
           -5.404771567579958e-09, 7.552583062123384e-09, 7.4304646503254255e-09, -3.505966530879332e-09,
           -5.95356943826489e-09, 1.5200816953924232e-09, 3.6379546359011143e-09, -5.715843864202709e-10,
           -1.6189806836246817e-09, 1.5279202694981569e-10, 4.577087631643623e-10, -2.0260604287413626e-11,
           -6.067631570603006e-11)


def _i0(x: Expr) -> Expr:
    """The modified Bessel function of the first kind of order 0 in float64."""
    size = absolute(x)
    far = binary("max", size, _c(x, 8.0))
    near = _polynomial(_I0_NEAR, binary("min", size, _c(x, 8.0)) * 0.25 - 1.0)
    outer = _polynomial(_I0_FAR, 16.0 / far - 1.0) / _F["sqrt"](far)
    half = _exp(size * 0.5)                                  # exp(x) alone is infinite before I0(x) is
    return half * select(binary("le", size, _c(x, 8.0)), near, outer) * half


lgamma = _unary("lgamma", "log(|gamma(x)|); infinity at 0 and the negative integers", _in_float64(_lgamma))
digamma = _unary("digamma", "the derivative of log(gamma(x)); NaN at the negative integers", _in_float64(_digamma))

bessel_i0 = _unary("bessel_i0", "the modified Bessel function of the first kind of order 0", _in_float64(_i0))


# logarithms, fractions, signs


def _sinc(x: Expr) -> Expr:
    zero = binary("eq", x, _c(x, 0.0))
    angle = select(zero, _c(x, 1.0), x * math.pi)
    return select(zero, _c(x, 1.0), _F["sin"](angle) / angle)


_THIRD = 1.850371707708594e-17                               # what 1 / 3 has more than its float64


def _cbrt(x: Expr) -> Expr:
    root = _F["pow"](absolute(x), _c(x, 1.0 / 3.0))
    root = root + root * (_log(absolute(x)) * _THIRD)
    return select(binary("eq", x, _c(x, 0.0)), x, _F["copysign"](root, x))


def _zero_times(log: Callable[[Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """a * log(b), 0 where a is 0, whatever b is but NaN."""
    def f(a: Expr, b: Expr) -> Expr:
        none = all_of(binary("eq", a, _c(a, 0.0)), binary("eq", b, b))
        return select(none, _c(a, 0.0), a * log(b))
    return f


def _negative(x: Expr) -> Expr:
    if not dt.is_float(x.dtype):
        return binary("lt", x, const(0, x.dtype)) if dt.is_signed(x.dtype) else const(False, "bool")
    kind = f"int{dt.bits_of(x.dtype)}"
    return binary("lt", reinterpret(kind, x), const(0, kind))


def _infinite(sign: float) -> Callable[[Expr], Expr]:
    return lambda x: binary("eq", x, _c(x, sign * float("inf"))) if dt.is_float(x.dtype) else const(False, "bool")


sinc = _unary("sinc", "sin(pi * x) / (pi * x); 1 for 0", _in_float64(_sinc))
cbrt = _unary("cbrt", "the cube root of x, with its sign", _in_float64(_cbrt))
exp10 = _unary("exp10", "10 ** x", lambda x: _F["pow"](_c(x, 10.0), x))
frac = _unary("frac", "x - trunc(x): the fraction, with the sign of x", lambda x: x - te_math.trunc(x))
deg2rad = _unary("deg2rad", "x * pi / 180", lambda x: x * (math.pi / 180))
rad2deg = _unary("rad2deg", "x * 180 / pi", lambda x: x * (180 / math.pi))
signbit = _unary("signbit", "True where x has a minus sign, -0.0 too", _negative, NUMBER)
isposinf = _unary("isposinf", "True where x is the positive infinity", _infinite(1.0), ANY)
isneginf = _unary("isneginf", "True where x is the negative infinity", _infinite(-1.0), ANY)
xlogy = _binary("xlogy", "a * log(b), 0 where a is 0", _zero_times(_log))
xlog1py = _binary("xlog1py", "a * log(1 + b), 0 where a is 0", _zero_times(_F["log1p"]))


def logaddexp2(a: Any, b: Any) -> Tensor:
    """y = log2(2 ** a + 2 ** b), as max(a, b) + log2(1 + 2 ** -|a - b|); a and b broadcast, one may be a number."""
    def f(x: Expr, y: Expr) -> Expr:
        gap = select(binary("eq", x, y), _c(x, 0.0), absolute(x - y))
        return binary("max", x, y) + _F["log1p"](_F["exp2"](negate(gap))) * (1.0 / math.log(2.0))
    return elementwise("logaddexp2", f, a, b, kind=FLOAT)


def heaviside(a: Any, b: Any) -> Tensor:
    """y = 0 where a < 0, b where a is 0, 1 where a > 0; a and b broadcast, one may be a number; NaN for NaN."""
    def f(x: Expr, y: Expr) -> Expr:
        step = select(binary("lt", x, const(0, x.dtype)), const(0, x.dtype), const(1, x.dtype))
        out = select(binary("eq", x, const(0, x.dtype)), y, step)
        return select(_F["isnan"](x), x, out) if dt.is_float(x.dtype) else out
    return elementwise("heaviside", f, a, b, kind=NUMBER)


def logit(x: Tensor, *, eps: float | None = None) -> Tensor:
    """y = log(x / (1 - x)), of x brought into [eps, 1 - eps] where eps is given: the inverse of `sigmoid`."""
    check_tensors("logit", x=x)
    check_numbers("logit", eps=0 if eps is None else eps)
    check(eps is None or 0 <= eps <= 0.5, "logit", f"eps is {eps}, not between 0 and 0.5")

    def f(e: Expr) -> Expr:
        if eps is not None:
            e = binary("min", binary("max", e, _c(e, eps)), _c(e, 1.0 - eps))
        return _log(e) - _F["log1p"](negate(e))
    return elementwise("logit", f, x, kind=FLOAT)


def addcmul(x: Any, a: Any, b: Any, *, value: float = 1.0) -> Tensor:
    """y = x + value * a * b; all broadcast, a and b may be numbers."""
    check_numbers("addcmul", value=value)
    return elementwise("addcmul", lambda e, p, q: e + p * q * value, x, a, b, kind=FLOAT)


def addcdiv(x: Any, a: Any, b: Any, *, value: float = 1.0) -> Tensor:
    """y = x + value * a / b; all broadcast, a and b may be numbers."""
    check_numbers("addcdiv", value=value)
    return elementwise("addcdiv", lambda e, p, q: e + p * value / q, x, a, b, kind=FLOAT)


def popcount(x: Tensor) -> Tensor:
    """y = how many bits of x are 1, in the type of x; of integers."""
    op = "popcount"
    check_tensors(op, x=x)
    check(dt.is_integer(x.dtype), op, f"x is {x.dtype}, integers are needed")

    def f(e: Expr) -> Expr:
        bits = dt.bits_of(e.dtype)
        kind = "uint64" if bits == 64 else "uint32"
        word = reinterpret(f"uint{bits}", e) if dt.is_signed(e.dtype) else e
        return cast(e.dtype, _F["popcount"](cast(kind, word)))
    return elementwise(op, f, x)


__all__ = ["addcdiv", "addcmul", "bessel_i0", "cbrt", "deg2rad", "digamma", "erfc", "erfinv", "exp10", "frac",
           "heaviside", "isneginf", "isposinf", "lgamma", "logaddexp2", "logit", "normal_cdf", "popcount", "rad2deg",
           "signbit", "sinc", "xlog1py", "xlogy"]
