"""torch.compile and memory: views among results, changes in place, weights that change, indices out of range.

Skipped without PyTorch.
"""
import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.frontend.test_torch import check, reproducible  # noqa: E402, F401
from tilewright.frontend import torch as frontend  # noqa: E402
from tilewright.support.errors import CallError, ImportModelError  # noqa: E402


def compiled(f, **options):
    return torch.compile(f, backend=frontend.backend, **options)


def layouts(results):
    return [(r.stride(), r.storage_offset()) for r in results]


def views_of_an_argument(x):
    return x[1:], x.t(), x.view(-1)[2:], x.expand(2, *x.shape), x[::2, 1:], x.t()[1:], x


def views_of_a_result(x):
    y = x.t() * 2
    return y, y[1:], y[1:].t(), y.t(), (x @ x.t()).t(), y


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", [views_of_an_argument, views_of_a_result])
def test_views_among_the_results(f, dynamic):
    run = compiled(f, dynamic=dynamic)
    for shape in ((3, 4), (5, 2)):
        x = torch.randn(shape)
        got, wanted = run(x), f(x.clone())
        check(got, wanted)
        assert layouts(got) == layouts(wanted)
        got[0].add_(1)
        wanted[0].add_(1)
        check(got, wanted)


def test_views_of_parts_of_memory():
    def f(x):
        return x[1:], x.t(), x + 1, x[:, 1]
    run = compiled(f, dynamic=True)
    memory = torch.randn(8, 15)
    for x in (memory.t(), memory[::2, 1:], memory[1:, ::3].t(), memory[4:, 5:]):
        check(run(x), f(x))
        assert layouts(run(x)) == layouts(f(x))


def test_views_under_gradients():
    def f(x, w):
        y = x @ w
        return y.t(), y, x.t(), w[1:], (y * 2).relu()[:, 1:]

    def total(results):
        return sum((r * torch.arange(r.numel()).view(r.shape)).sum() for r in results)
    run = compiled(f, dynamic=True)
    for n in (3, 5):
        x, w = torch.randn(n, 4, requires_grad=True), torch.randn(4, 6, requires_grad=True)
        check(torch.autograd.grad(total(run(x, w)), (x, w)), torch.autograd.grad(total(f(x, w)), (x, w)))


@pytest.mark.parametrize("dynamic", [False, True])
def test_changes_in_place(dynamic):
    def f(x):
        y = x[1:]
        x.mul_(2)
        x[:, ::2] = x[:1, :1]
        x.t()[0].add_(3)
        return y, y + 1
    run = compiled(f, dynamic=dynamic)
    for shape in ((3, 4), (5, 3), (2, 2)):
        for x in (torch.randn(shape), torch.randn(shape[::-1]).t()):
            other = x.clone()
            check([*run(x), x], [*f(other), other])


def test_slices_by_sizes():
    def f(x, n):
        return x[n:] * 1, x[:n], x[n - 4:] * 1, x.roll(n), x[n - 1 if n > 0 else n]
    run = compiled(f, dynamic=True)
    x = torch.randn(6)
    for n in (3, 2, 6, 1, -1, -6):
        check(run(x, n), f(x, n))


def test_slices_at_elements_of_tensors():
    class Model(nn.Module):
        def forward(self, x, at):
            return x.narrow(0, at.item(), 2), x[at.item()]
    x = torch.randn(5, 3)
    run = frontend.compile_exported_program(torch.export.export(Model(), (x, torch.tensor(2))))
    for at in (0, 3, -2):
        check(run(x, torch.tensor(at)), Model()(x, torch.tensor(at)))
    with pytest.raises(CallError, match="outside"):
        run(x, torch.tensor(4))


def test_weights_in_other_memory():
    model = nn.Linear(6, 4).eval()
    run, x = compiled(model), torch.randn(3, 6)
    with torch.no_grad():
        check([run(x)], [model(x)])
        model.weight.data = torch.randn(4, 6)
        check([run(x)], [model(x)])


def test_weights_of_inference_mode():
    with torch.inference_mode():
        model, x = nn.Linear(6, 4).eval(), torch.randn(3, 6)
        run = compiled(model)
        for _ in range(2):
            check([run(x)], [model(x)])
            model.weight.mul_(2)


@pytest.mark.parametrize("grad", [False, True])
def test_batch_norm_in_training(grad):
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).train()
    other = copy.deepcopy(model)
    run = compiled(model)
    with torch.set_grad_enabled(grad):
        for _ in range(2):
            x = torch.randn(4, 2, 6, 6)
            check([run(x)], [other(x)])
    check(model.state_dict().values(), other.state_dict().values())


OUTSIDE = {
    "embedding": (lambda x, i: nn.functional.embedding(i, x), -1),
    "index_select": (lambda x, i: x.index_select(0, i), -1),
    "gather": (lambda x, i: x.gather(0, i[:, None]), -1),
    "scatter": (lambda x, i: x.scatter(0, i[:, None], 1.0), -1),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(0, i[:, None], x[:2], "sum"), -1),
    "index_add": (lambda x, i: x.index_add(0, i, x[:2]), -1),
    "index_copy": (lambda x, i: x.index_copy(0, i, x[:2]), -1),
    "index": (lambda x, i: x[i], -5), "index_put": (lambda x, i: x.index_put((i,), x[0]), -5),
    "index_fill": (lambda x, i: x.index_fill(0, i, 2.0), -5), "take": (lambda x, i: x.take(i), -13),
    "embedding_bag": (lambda x, i: nn.functional.embedding_bag(i[None], x), -1),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_indices_out_of_range(name):
    f, below = OUTSIDE[name]
    run, x = compiled(f), torch.randn(4, 3)
    check([run(x, torch.tensor([0, 3]))], [f(x, torch.tensor([0, 3]))])
    for index in (below, 2 ** 40):
        with pytest.raises((IndexError, RuntimeError)):
            f(x, torch.tensor([0, index]))
        with pytest.raises(CallError):
            run(x, torch.tensor([0, index]))


def test_strides_that_are_asked_for():
    def f(x):
        return x.as_strided((2, 2), (1, 2)) + 1
    run = compiled(f, dynamic=False)
    for x in (torch.randn(3, 4), torch.randn(4, 3).t()):
        check([run(x)], [f(x)])
    with pytest.raises(ImportModelError, match="no part of it"):
        run(torch.randn(6, 8)[::2, ::2])


def test_memory_around_an_argument():
    def f(x):
        return x.as_strided((2, 2), (1, 3), 0) * 2 + x.sum(), x.as_strided((3,), (5,), 2)
    run = compiled(f, dynamic=False)
    for x in (torch.randn(20)[5:15], torch.randn(4, 5)[1:, ::2]):
        check(run(x), f(x))
