"""Gradients through torch.compile: layers and functions beside PyTorch's own. Skipped without PyTorch."""
import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.frontend.test_torch import reproducible  # noqa: E402, F401
from tilewright.frontend import torch as frontend  # noqa: E402

F = nn.functional
LAYERS = {
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1), nn.Conv2d(4, 6, (1, 2), groups=2,
                                                                               dilation=(1, 2))), (2, 2, 9, 11)),
    "transposed convolutions": (lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 3, 2, 1, output_padding=1),
                                                      nn.ConvTranspose2d(4, 4, 2, groups=2)), (2, 3, 5, 4)),
    "pools": (lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2, padding=1),
                                    nn.AdaptiveAvgPool2d(2)), (2, 2, 11, 12)),
    "other pools": (lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.AdaptiveMaxPool2d(5), nn.AvgPool2d(
        2, 1, 1, count_include_pad=False), nn.AdaptiveAvgPool2d((4, 3))), (2, 2, 7, 8)),
    "norms": (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)), (2, 4, 5, 5)),
    "borders": (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReflectionPad1d(1), nn.ReplicationPad1d((2, 1))), (2, 3, 4)),
    "a transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (2, 5, 8)),
}
SIZES = ("convolutions", "pools", "a transformer")           # with sizes as variables too
FUNCTIONS = {
    "causal attention": lambda x: F.scaled_dot_product_attention(x[None], x[None] * 2, x[None] - 1, is_causal=True),
    "attention by a mask": lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=x[0] @ x[0].t() > 0),
    "losses": lambda x: F.cross_entropy(x[0], torch.tensor([0, 1, 2, 1]), ignore_index=1, label_smoothing=0.1)
    + F.nll_loss(x[1].log_softmax(1), torch.tensor([3, 0, 2, 1])),
    "places": lambda x: x.gather(2, torch.tensor([[[0, 1]]])) + x[:, :1].index_select(2, torch.tensor([1, 1])),
    "an optimizer's step": lambda x: torch.addcmul(x, x, x, value=0.1).lerp(x.square(), 0.1),
}


def gradients(f, x, parameters):
    x = x.clone().requires_grad_()
    y = f(x)
    (y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum().backward()
    return [y.detach(), x.grad, *(p.grad for p in parameters)]


def compare(f, g, x, parameters=(), others=()):
    for a, b in zip(gradients(f, x, parameters), gradients(g, x, others), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name,dynamic", [*((name, False) for name in LAYERS), *((name, True) for name in SIZES)])
def test_layers(name, dynamic):
    make, shape = LAYERS[name]
    model = make().train()
    other = copy.deepcopy(model)
    run = torch.compile(model, backend=frontend.backend, dynamic=dynamic)
    compare(run, other, torch.randn(shape), list(model.parameters()), list(other.parameters()))
    torch.testing.assert_close(dict(model.state_dict()), dict(other.state_dict()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    compare(torch.compile(FUNCTIONS[name], backend=frontend.backend), FUNCTIONS[name], torch.randn(2, 4, 4))


def test_optimizers():
    model = nn.Linear(4, 2)
    other = copy.deepcopy(model)
    steps = []
    for m in (model, other):
        optimizer = torch.optim.Adam(m.parameters(), 0.1)
        steps.append(optimizer.step if m is other else torch.compile(optimizer.step, backend=frontend.backend))
    for _ in range(3):
        x = torch.randn(5, 4)
        for m, step in zip((model, other), steps):
            m.zero_grad()
            m(x).square().mean().backward()
            step()
    torch.testing.assert_close(dict(model.state_dict()), dict(other.state_dict()))
