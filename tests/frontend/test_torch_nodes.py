"""Operators of PyTorch on elements and arguments that its own samples have not. Skipped without PyTorch."""
import functools
import math

import pytest

torch = pytest.importorskip("torch")

from tests.frontend.torch_opinfo import tensors_of, through_export, trace  # noqa: E402
from tilewright.frontend.torch.function import import_graph  # noqa: E402
from tilewright.graph.compile import build_function  # noqa: E402

NAN, INF = math.nan, math.inf
SPECIAL = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, -2.5, 0.25])


def check(function, *tensors, **tolerance):
    wanted, module = tensors_of(function(*tensors)), trace(function, list(tensors))
    made = import_graph(module, {})
    sizes = made.values(tensors)
    got = tensors_of(made.returned(build_function(made.function)(*made.arguments(tensors, sizes)), tensors, sizes))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        torch.testing.assert_close(a, b, equal_nan=True, **tolerance)


def check_exported(function, *tensors):
    """`check` of a program of torch.export, in which operators stay whole that make_fx takes apart."""
    for a, b in zip(tensors_of(through_export(function, tensors)), tensors_of(function(*tensors)), strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)


def pairs(x):
    return x[:, None].expand(len(x), len(x)).reshape(-1), x[None].expand(len(x), len(x)).reshape(-1)


@pytest.mark.parametrize("base", [2, 1, 0, -1, -3])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_numbers_to_the_power_of_integers(base, dtype):
    exponents = torch.tensor([0, 1, 2, 7], dtype=getattr(torch, dtype))
    if dtype != "uint8" and base:
        exponents = torch.cat([exponents, -exponents])
    if base >= 0 or dtype != "uint8":
        check(lambda b: torch.pow(base, b), exponents)
    check(lambda b: torch.pow(abs(base), b), exponents[1])


def test_integers_to_the_power_of_integers():
    check(torch.pow, *pairs(torch.tensor([1, -1, 2, -3, 5, -2])))


@pytest.mark.parametrize("dtype, number", [("float16", -1e9), ("bfloat16", 1e39), ("float32", 3.0)])
def test_numbers_beyond_the_range_of_a_type_are_infinite(dtype, number):
    x = torch.tensor([1.0, -2.0, 0.5], dtype=getattr(torch, dtype))
    check_exported(lambda x: (torch.where(x > 0, x, number), x + number, x * 1e6), x)
    check_exported(lambda x: x - 1e39, x.float())


def test_elements_as_often_as_others_say():
    check_exported(lambda x, n: x.repeat_interleave(n, 0, output_size=3), torch.arange(6.0).view(3, 2),
                   torch.tensor([2, 0, 1]))


def test_lerp_meets_its_ends():
    a, b = torch.tensor([1e8, 1.0, 3.0]), torch.tensor([1.0, 1e8, -4.0])
    for weight in (0.0, 0.25, 0.5, 1.0):
        check(lambda a, b, w=weight: torch.lerp(a, b, w), a, b)


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_the_extreme_of_a_number_and_nan_is_the_number(name):
    check(getattr(torch, name), *pairs(SPECIAL))
    check(getattr(torch, name), torch.tensor([3, -1]), torch.tensor([2, 5]))


def test_softshrink_of_nan():
    check(torch.nn.functional.softshrink, SPECIAL)


def test_any_and_all_over_no_dimensions_are_of_each_element_alone():
    check(lambda x: (torch.any(x, dim=()), torch.all(x, dim=()), torch.any(x), torch.sum(x, dim=())), SPECIAL)


@pytest.mark.parametrize("shape", [(2, 5, 6), (2, 1, 6), (2, 1, 1), (5, 6), (6,), (1, 5, 6), (5, 1), (), (1,)])
@pytest.mark.parametrize("accumulate", [False, True])
def test_values_are_repeated_where_a_mask_holds(shape, accumulate):
    mask = torch.tensor([True, False, True, False])
    check(lambda x, m, v: x.index_put((m,), v, accumulate=accumulate), torch.randn(4, 5, 6), mask, torch.randn(shape))


def assigned(x, mask, values):
    y = x.clone()
    y[:, mask] = values
    return y


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (4, 1), (3,), (), (1, 1)])
def test_a_mask_of_other_dimensions_than_the_first(shape):
    mask = torch.tensor([True, False, True, False, True])
    check(assigned, torch.randn(4, 5), mask, torch.randn(shape))
    check(assigned, torch.randn(4, 5, 6), mask, torch.randn((*shape, 6) if shape else ()))


def test_a_mask_of_several_dimensions():
    mask = torch.tensor([[True, False, True], [False, True, True]])
    for shape in ((4, 6), (4, 1), (1, 6), (6,), ()):
        check(lambda x, m, v: x.index_put((m,), v), torch.randn(2, 3, 6), mask, torch.randn(shape))
        check(assigned, torch.randn(6, 2, 3), mask, torch.randn(shape[:1] if shape != (6,) else ()))


def test_bools_that_are_added_256_times():
    x, many, true = torch.zeros(4, dtype=torch.bool), torch.zeros(256, dtype=torch.int64), torch.ones(256) > 0
    check(lambda x, i, v: (x.index_put((i,), v, accumulate=True), x.index_add(0, i, v)), x, many, true)


def test_a_roll_of_one_dimension_twice():
    check(lambda x: (x.roll((1, 2), (0, 0)), x.roll((1, -7, 4), (0, 1, -2))), torch.randn(4, 5))


def test_numbers_beyond_float8():
    x = torch.tensor([448.0, 464.0, 465.0, 500.0, 1e6, -1e6, INF, -INF, NAN, 1.0625, 1e-3])
    check(lambda x: (x.to(torch.float8_e4m3fn).float(), x.to(torch.float8_e5m2).float(),
                     x[:1].to(torch.int32).mul(7).to(torch.float8_e4m3fn).float()), x)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_images_by_scales_that_keep_or_nearly_keep_their_size(size, mode):
    interpolate = torch.nn.functional.interpolate
    check(lambda x: [interpolate(x, scale_factor=s, mode=mode) for s in (0.7, 1.1, 1.3, 2.6)], torch.randn(1, 2, size))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_whose_scales_keep_one_side(mode):
    interpolate = torch.nn.functional.interpolate
    scales = ((1.1, 2.3), (0.7, 1.05), (1.0, 1.0))
    check(lambda x: [interpolate(x, scale_factor=s, mode=mode) for s in scales], torch.randn(1, 2, 4, 5))


def test_sums_of_products_and_one_number():
    check(lambda a, b, c: (torch.addmm(c[:1], a, b.t()), torch.addmm(c, a, b.t()), torch.addmm(c[None], a, b.t()),
                           torch.addmm(c[0], a, b.t())), torch.randn(2, 3), torch.randn(4, 3), torch.randn(4))


def test_moments_of_short_floats_are_rounded_once():
    x = torch.randn(4, 30).half()
    check(lambda x: torch.native_layer_norm(x, (30,), None, None, 1e-5), x)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3), (3, 9), (8, 4), (5, 3)])
def test_images_with_antialiasing(mode, align_corners, size):
    check(lambda x: torch.nn.functional.interpolate(x, size, mode=mode, align_corners=align_corners, antialias=True),
          torch.randn(1, 2, 5, 7))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("scales", [(0.5, 0.7), (0.5, 1.0), (1.5, 0.3)])
def test_images_by_scales_with_antialiasing(mode, scales):
    check(lambda x: torch.nn.functional.interpolate(x, scale_factor=scales, mode=mode, antialias=True),
          torch.randn(1, 2, 5, 7))


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 1), (2, 1, 3, 1)])
def test_grids_of_affine_maps(size):
    check(lambda t: [torch.nn.functional.affine_grid(t, size, align_corners=a) for a in (False, True)],
          torch.randn(2, 2, 3))


@pytest.mark.parametrize("a, b", [((3, 3), (3, 3)), ((2, 2, 3), (4, 5, 3)), ((3,), (4, 3)), ((3,), (3,)), ((), (4, 3)),
                                  ((4, 3), ()), ((), ())])
def test_inner_products_are_over_the_last_dimensions(a, b):
    check_exported(lambda a, b: torch.inner(a, b), torch.randn(a), torch.randn(b))


def bags(mode, indices, weight, offsets):
    return torch.nn.functional.embedding_bag(indices, weight, offsets, mode=mode, include_last_offset=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_last_of_the_offsets_ends_the_last_bag(mode):
    indices, weight = torch.tensor([1, 2, 4, 5, 4, 3]), torch.randn(10, 4)
    every = functools.partial(bags, mode)
    for run in (check, check_exported):
        run(every, indices, weight, torch.tensor([0, 2, 2, 6]))
        if mode == "sum":                            # of the others PyTorch reads rows behind the last bag
            run(every, indices, weight, torch.tensor([0, 2, 4]))


def test_numbers_as_tensors_of_primitives():
    check_exported(lambda x: (torch.special.xlog1py(2.0, x), torch.special.xlog1py(x, 2)), torch.rand(3))


F = torch.nn.functional
WINDOWED = {
    "conv1d": ((1, 2, 9), lambda x: F.conv1d(x, torch.ones(2, 2, 3), stride=2, dilation=2, padding=2)),
    "conv2d": ((1, 2, 5, 6), lambda x: F.conv2d(x, torch.ones(2, 1, 3, 2), groups=2, padding=1)),
    **{f"conv_transpose1d {k} {s} {d}": ((1, 2, 4), functools.partial(
        lambda x, k, s, d: F.conv_transpose1d(x, torch.ones(2, 3, k), stride=s, dilation=d), k=k, s=s, d=d))
       for k, s, d in ((3, 2, 1), (1, 3, 1), (2, 2, 3), (3, 4, 2), (5, 6, 4), (4, 2, 1))},
    "conv_transpose2d": ((1, 2, 4, 4), lambda x: F.conv_transpose2d(x, torch.ones(2, 3, 3, 3), stride=2, padding=1)),
    "conv_transpose3d": ((1, 2, 3, 3, 3), lambda x: F.conv_transpose3d(x, torch.ones(2, 1, 3, 2, 1), stride=2)),
    "max_pool2d": ((1, 2, 6, 6), lambda x: F.max_pool2d(x, 3, 2, 1, 1, True)),
    "avg_pool2d": ((1, 2, 6, 6), lambda x: F.avg_pool2d(x, 3, 2, 1, True, False)),
    "adaptive_avg_pool2d": ((1, 2, 6, 7), lambda x: F.adaptive_avg_pool2d(x, (4, 3))),
    "lp_pool2d": ((1, 2, 6, 7), lambda x: F.lp_pool2d(x, 2, 3)),
    "unfold": ((1, 2, 5, 6), lambda x: F.unfold(x, (2, 3), stride=2, padding=1)),
    "fold": ((1, 8, 6), lambda x: F.fold(x, (3, 4), 2)),
    "nearest": ((1, 2, 5, 7), lambda x: F.interpolate(x, (8, 3))),
    "antialiased linear": ((1, 1, 16, 16), lambda x: F.interpolate(x, (6, 7), mode="bilinear", antialias=True)),
    "antialiased cubic": ((1, 1, 16, 16), lambda x: F.interpolate(x, (6, 7), mode="bicubic", antialias=True)),
    "local_response_norm": ((1, 6, 3, 3), lambda x: F.local_response_norm(x, 3)),
}


@pytest.mark.parametrize("name", WINDOWED)
def test_elements_that_are_not_finite_reach_what_reads_them_alone(name):
    shape, function = WINDOWED[name]
    for value in (INF, NAN):
        x = torch.rand(shape)
        x[tuple(n // 2 for n in shape)] = value
        check(function, x)


def half(shape, value):
    return torch.full(shape, float(value), dtype=torch.half)


SHORT = {
    "addcmul": (lambda x, a: torch.addcmul(x, a, a, value=0.5), half((3,), 1), half((3,), 300)),
    "addcdiv": (lambda x, a: torch.addcdiv(x, a, x / 2, value=0.5), half((3,), 1), half((3,), 6e4)),
    "addmm": (lambda c, a: torch.addmm(c, a, a.t(), alpha=0.01, beta=0.5), half((2, 2), 6e4), half((2, 4), 200)),
    "addmm of a row": (lambda c, a: torch.addmm(c, a, a.t(), alpha=0.01), half((2,), 0), half((2, 4), 200)),
    "addmv": (lambda c, a: torch.addmv(c, a, a[0], alpha=0.01), half((2,), 0), half((2, 4), 200)),
    "baddbmm": (lambda c, a: torch.baddbmm(c, a, a.mT, alpha=0.01), half((1, 2, 2), 0), half((1, 2, 4), 200)),
    "addbmm": (lambda c, a: torch.addbmm(c, a, a.mT, alpha=0.01), half((2, 2), 0), half((1, 2, 4), 200)),
    "addr": (lambda c, a: torch.addr(c, a, a / 10, alpha=0.01), half((2, 2), 0), half((2,), 2000)),
    "std": (lambda x: (x.std(), x.std(0, correction=0), *torch.std_mean(x)), 300 * half((4,), 1).cumprod(0) - half(
        (4,), 600) * torch.tensor([0, 1, 0, 1]).half()),
    "instance_norm": (lambda x: F.instance_norm(x), 400 * torch.randn(2, 3, 50).half()),
    "batch_norm": (lambda x, v: torch.native_batch_norm(x, None, None, v, v.clone(), True, 0.01, 1e-5)[0],
                   400 * torch.randn(4, 3, 9).half(), half((3,), 0)),
    "rms_norm": (lambda x: F.rms_norm(x, (9,)), 400 * torch.randn(4, 9).half())}


@pytest.mark.parametrize("name", SHORT)
def test_short_floats_are_rounded_at_the_end(name):
    function, *tensors = SHORT[name]
    assert all(y.isfinite().all() for y in tensors_of(function(*tensors)))
    check(function, *tensors, rtol=1e-3, atol=1e-3)
