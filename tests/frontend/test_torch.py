"""Programs of PyTorch: torch.export with sizes, torch.compile by its name, what is refused. Skipped without PyTorch."""
import math
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

from tilewright.frontend import torch as frontend  # noqa: E402
from tilewright.frontend.torch.fx import Importer  # noqa: E402
from tilewright.graph.compile import build_function  # noqa: E402
from tilewright.graph.ir.builder import BlockBuilder  # noqa: E402
from tilewright.support.errors import ArgumentError, GraphError, ImportModelError  # noqa: E402


class Network(nn.Module):
    """Layers, a view that is written to, sizes and a number among inputs and results."""

    def __init__(self):
        super().__init__()
        self.dense, self.norm, self.conv = nn.Linear(8, 8), nn.LayerNorm(8), nn.Conv2d(3, 4, 3)

    def forward(self, x, image, n: int):
        y = self.norm(nn.functional.gelu(self.dense(x)))
        z = torch.relu(self.conv(image)).clone()
        z[:, 0] += 1
        rows = x.shape[0]
        return y + torch.arange(rows)[:, None], z.view(z.shape[0], -1), rows * 2, torch.full((rows,), n)


@pytest.fixture(autouse=True)
def reproducible():
    torch.manual_seed(0)
    torch._dynamo.reset()


def check(got, wanted):
    for a, b in zip(got, wanted, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        else:
            assert a == b and type(a) is type(b)


def inputs(n, number=4):
    return torch.randn(n, 8), torch.randn(2, 3, 8, 8), number


def exported(model, arguments, dynamic=None):
    return torch.export.export(model.eval(), arguments, dynamic_shapes=dynamic)


def test_an_exported_program_runs_for_every_size():
    model = Network().eval()
    program = exported(model, inputs(5), ({0: torch.export.Dim("batch")}, None, None))
    run = frontend.compile_exported_program(program)
    for n in (5, 1, 9):
        arguments = inputs(n)
        check(run(*arguments), model(*arguments))


def test_the_function_of_a_program_has_its_weights_as_constants():
    model = nn.Linear(6, 4).eval()
    function = frontend.from_exported_program(exported(model, (torch.randn(3, 6),)))
    assert [str(p.type) for p in function.params] == ["float32[3, 6]"]
    shared = {v.data.ctypes.data for v in function.constants}
    assert {p.data_ptr() for p in model.parameters()} <= shared
    x = torch.randn(3, 6)
    np.testing.assert_allclose(np.asarray(build_function(function)(x)), model(x).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile(dynamic):
    model = Network().eval()
    run = torch.compile(model, backend=frontend.backend, dynamic=dynamic)
    with torch.no_grad():
        for n in (4, 6):
            arguments = inputs(n, number=n)
            check(run(*arguments), model(*arguments))


def test_torch_compile_by_name():
    frontend.register()
    run = torch.compile(lambda x: torch.softmax(x * 2, -1), backend="tilewright")
    x = torch.randn(3, 5)
    check([run(x)], [torch.softmax(x * 2, -1)])


def test_functions_of_nan_and_zeros():
    def f(x):
        half = torch.heaviside(x, torch.tensor(0.5))
        return x.sign(), x.sgn(), half, x.clamp(-1, 1), x.nan_to_num(), x.amax(), x.relu()
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, -2.0])
    for a, b in zip(torch.compile(f, backend=frontend.backend)(x), f(x)):
        torch.testing.assert_close(a, b, equal_nan=True)
        assert torch.equal(a.signbit(), b.signbit()) or b.isnan().any()


def test_numbers_that_are_no_sizes():
    run = torch.compile(lambda x, n: x + n, backend=frontend.backend, dynamic=True)
    x = torch.arange(3)
    for n in (3, 4, 2 ** 31, 2 ** 40, -2 ** 40):
        check([run(x, n)], [x + n])


def test_sizes_below_one():
    run = torch.compile(lambda x, n: x[:n] * n, backend=frontend.backend, dynamic=True)
    x = torch.randn(6, 2)
    for n in (3, 4, 0, -2):
        check([run(x, n)], [x[:n] * n])


def test_changes_of_weights_are_seen():
    model = nn.Linear(6, 4).eval()
    run, x = torch.compile(model, backend=frontend.backend), torch.randn(3, 6)
    with torch.no_grad():
        check([run(x)], [model(x)])
        for _ in range(2):
            model.weight.mul_(-2)
            check([run(x)], [model(x)])


def test_layers_of_transformers():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    run = torch.compile(layer, backend=frontend.backend, dynamic=True)
    with torch.no_grad():
        for shape in ((2, 5, 8), (3, 7, 8)):
            x = torch.randn(shape)
            check([run(x)], [layer(x)])


def test_sizes_that_are_computed():
    def f(x):
        small = nn.functional.interpolate(x, scale_factor=0.5)
        roots = x.mean() / x.shape[2] ** 0.5, x.sum() * x.shape[3] ** -0.5, x.sum() * math.log(x.shape[2])
        again = x[0, 0].repeat(1, x.shape[3])
        return small, nn.functional.pad(x, (0, -x.shape[3] % 4)), x[..., -3:, :-1], again, *roots
    run = torch.compile(f, backend=frontend.backend, dynamic=True)
    for shape in ((1, 2, 5, 6), (1, 2, 7, 9)):
        x = torch.randn(shape)
        check(run(x), f(x))


@pytest.mark.parametrize("squeezed", [lambda x: x.squeeze(), lambda x: x.squeeze(0), lambda x: x.squeeze((0, -2))])
def test_a_size_that_may_be_squeezed_is_not_1(squeezed):
    class Squeezed(nn.Module):
        def forward(self, x):
            return squeezed(x)
    program = exported(Squeezed(), (torch.randn(4, 1, 3),), ({0: torch.export.Dim("n", max=100)},))
    run = frontend.compile_exported_program(program)
    for n in (4, 7, 0):
        x = torch.randn(n, 1, 3)
        check([run(x)], [squeezed(x)])
    with pytest.raises(GraphError, match="squeeze.*the extent .* of dimension 0 is 1, and stays where .* = 1"):
        run(torch.randn(1, 1, 3))
    with pytest.raises(GraphError, match="dimension 0 is 1"):
        build_function(frontend.from_exported_program(program))(torch.randn(1, 1, 3))


def test_scales_that_are_no_fractions():
    run = torch.compile(lambda x: nn.functional.interpolate(x, scale_factor=0.3), backend=frontend.backend,
                        dynamic=True)
    with pytest.raises(ImportModelError, match="computed with floats"):
        run(torch.randn(1, 2, 10, 20))


def test_choices_and_loops():
    def choice(x, y):
        return torch.cond(x.sum() > 0, lambda x, y: (x + y, x.sum()), lambda x, y: (x - 1, y.max()), (x, y))

    def loop(x, y):
        return while_loop(lambda i, x, y: (i < 9) & (x.sum() < 50), lambda i, x, y: (i + 1, x * 2 + y.sum(), y.clone()),
                          (torch.tensor(0), x, y))
    for f in (choice, loop):
        run = torch.compile(f, backend=frontend.backend, dynamic=True)
        for sign, n in ((1, 3), (-1, 3), (-1, 5)):
            x, y = torch.full((n, 2), float(sign)), torch.ones(n, 2)
            check(run(x, y), f(x, y))


def test_graph_breaks():
    def f(x):
        y = torch.relu(x) + 1
        if y.sum().item() > 0:
            y = y * 2
        return y.t()
    run, x = torch.compile(f, backend=frontend.backend), torch.randn(4, 3)
    check([run(x)], [f(x)])


def test_gradients():
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))
    run, x = torch.compile(model, backend=frontend.backend), torch.randn(7, 6)
    run(x).square().mean().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).square().mean().backward()
    check(found, [p.grad for p in model.parameters()])


class Counter(nn.Module):
    """A model that changes a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2


def test_buffers_that_change():
    program = exported(Counter(), (torch.ones(3),))
    run, total = frontend.compile_exported_program(program), program.state_dict["total"]
    version = total._version
    check([run(torch.ones(3)), run(torch.ones(3))], [torch.full((3,), 2.0), torch.full((3,), 4.0)])
    check([total], [torch.full((3,), 2.0)])
    assert total._version == version + 2, "who holds the buffer as a constant must see that it changed"


def test_results_whose_size_follows_from_elements():
    class Chosen(nn.Module):
        def forward(self, x):
            return x[x > 0], torch.nonzero(x)
    x = torch.randn(4, 5)
    check(frontend.compile_exported_program(exported(Chosen(), (x,)))(x), Chosen()(x))


def test_results_that_are_not_known():
    class Chosen(nn.Module):
        def forward(self, x):
            y = x[x > 0]
            return y, y.shape[0], torch.linalg.inv_ex(x)[1] + 1
    with pytest.raises(ImportModelError, match=r"(?s)getitem_1 is a result that rows leave out.*the size u0 follows"):
        frontend.from_exported_program(exported(Chosen(), (torch.eye(3),)))


def test_constants_stay_while_they_are_told_apart_by_identity():
    importer, tensor = Importer(BlockBuilder()), torch.ones(3)
    alive = weakref.ref(tensor)
    importer.constant(tensor, "a")
    del tensor
    assert alive() is not None


def test_all_nodes_that_are_missing_are_named():
    class Odd(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvalsh(x), torch.special.airy_ai(x), torch.rand(3)
    with pytest.raises(ImportModelError, match=r"(?s)_linalg_eigh.*airy_ai.*aten\.rand.*docs/torch\.md"):
        frontend.from_exported_program(exported(Odd(), (torch.eye(3),)))


def test_arguments_that_do_not_fit():
    model = nn.Linear(6, 4).eval()
    run = frontend.compile_exported_program(exported(model, (torch.randn(3, 6),)))
    with pytest.raises(ArgumentError, match="structure"):
        run(torch.randn(3, 6), torch.randn(3))
    with pytest.raises(GraphError, match="shape"):
        run(torch.randn(3, 5))
    with pytest.raises(ArgumentError, match="no exported program"):
        frontend.from_exported_program(model)
    with pytest.raises(Exception, match="there is no option 'targt'"):
        torch.compile(model, backend=frontend.backend, options={"targt": "llvm"})(torch.randn(3, 6))
    for wrong in (3, None, "x", np.zeros((3, 6), "float32")):
        with pytest.raises(ArgumentError, match="no tensor of PyTorch"):
            run(wrong)
    with pytest.raises(ImportModelError, match="complex64"):
        run(torch.zeros(3, 6, dtype=torch.complex64))


def test_numbers_and_sizes_that_a_program_was_exported_for():
    class Scaled(nn.Module):
        def forward(self, x, n: int, factor: float, flag: bool):
            return x * n + factor if flag else x
    size = torch.export.Dim("size", min=3, max=8)
    run = frontend.compile_exported_program(exported(Scaled(), (torch.ones(4), 4, 2.5, True), ({0: size}, None, None,
                                                                                               None)))
    check([run(torch.ones(8), 4, 2.5, True)], [torch.full((8,), 6.5)])
    for wrong in ((5, 2.5, True), (4, 3.5, True), (4, 2.5, False)):
        with pytest.raises(ArgumentError, match="exported for"):
            run(torch.ones(4), *wrong)
    for n in (2, 9):
        with pytest.raises(GraphError, match=f"is {n}, and the program was exported for 3 to 8"):
            run(torch.ones(n), 4, 2.5, True)


OPERATORS = {
    "promotion": lambda x, i, b: (x + i, i / 2, i + b, b + b, i * 2.5, x > i, i // 3, -i % 5, i.float().to(torch.int8)),
    "reductions": lambda x, i, b: (x.sum(0), i.sum(), b.sum(1), x.mean((0, 1)), i.prod(0), x.max(1), x.argmax(),
                                   x.var(0), b.any(0), x.amax(-1, True), x.logsumexp(1), x.norm()),
    "slices": lambda x, i, b: (x[1:, ::2], x[-1], x[..., None, 1], x.flip(0), x.roll(1, 1), x.unbind(1)[2],
                               x.diagonal(), *x.split(2, 1), torch.cat([x, x], 1), torch.stack([x, x])),
    "places": lambda x, i, b: (x[i[:, 0] % 4], x[i[0] % 4, i[0] % 5], x.gather(1, i % 5), x.index_select(1, i[0] % 5),
                               x.masked_fill(b, 7.0), torch.where(b, x, 0.0), x.scatter(1, i % 5, 1.5),
                               x.index_put((i[0] % 4,), x[:1]), x.take(i % 20)),
    "orders": lambda x, i, b: (*x.sort(1), *x.topk(2, 0), x.cumsum(1), i.cumprod(0), x.median(1).values),
    "shapes": lambda x, i, b: (x.view(2, -1), x.t(), x.expand(3, 4, 5), x.repeat(2, 1), x.tril(), x.permute(1, 0)[None],
                               torch.nn.functional.pad(x, (1, -1, 0, 2)), x.unfold(1, 2, 2), x.swapaxes(0, 1)),
    "products": lambda x, i, b: (x @ x.t(), torch.addmm(x[:, :4], x, x.t(), beta=0.5), torch.einsum("ij,kj->ik", x, x),
                                 i @ i.t(), torch.bmm(x[None], x.t()[None]), torch.dot(x[0], x[1]), torch.cdist(x, x)),
    "creation": lambda x, i, b: (torch.arange(3, 9, 2), torch.linspace(0, 1, 5), torch.eye(3), x.new_ones(2),
                                 i.new_full((2,), 9), torch.zeros_like(b),
                                 torch.arange(0, 1, 0.25), torch.tensor([1, 2]) + i[0, :2]),
}


@pytest.mark.parametrize("family", OPERATORS)
def test_operators(family):
    class Model(nn.Module):
        def forward(self, x, i, b):
            return [r for part in OPERATORS[family](x, i, b) for r in (part if isinstance(part, tuple) else [part])]
    arguments = torch.randn(4, 5), torch.arange(20).reshape(4, 5), torch.rand(4, 5) > 0.5
    check(frontend.compile_exported_program(exported(Model(), arguments))(*arguments), Model()(*arguments))
