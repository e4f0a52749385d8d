"""Recurrent layers of PyTorch: exported, with sizes, by torch.compile, their gradients. Skipped without PyTorch."""
import pytest

torch = pytest.importorskip("torch")

from torch import fx, nn  # noqa: E402
from torch.utils import _pytree  # noqa: E402

import tilewright as tw  # noqa: E402
from tilewright.frontend import torch as frontend  # noqa: E402
from tilewright.frontend.torch import dynamo  # noqa: E402
from tilewright.frontend.torch.function import import_graph  # noqa: E402
from tilewright.support.errors import ImportModelError  # noqa: E402

LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN, "relu": nn.RNN}
STACKS = {
    "both_directions": {"num_layers": 2, "bidirectional": True},
    "no_bias_batch_first": {"bias": False, "batch_first": True},
    "dropout": {"num_layers": 2, "dropout": 0.5},
}


class Model(nn.Module):
    """A layer, beside operators that read its results."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, states=None):
        y, last = self.layer(x, states)
        return y, last, y.sum(-1)


def made(kind, **options):
    options |= {"nonlinearity": kind} if kind in ("tanh", "relu") else {}
    return Model(LAYERS[kind](5, 6, **options)).eval()


def drawn(model, steps, batch, given=False):
    """Arguments: a sequence, and what the layer starts with."""
    layer = model.layer
    x = torch.randn((batch, steps, 5) if layer.batch_first else (steps, batch, 5))
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    state = torch.randn(count, batch, layer.proj_size or layer.hidden_size)
    cell = torch.randn(count, batch, layer.hidden_size)
    return (x, (state, cell) if isinstance(layer, nn.LSTM) else state) if given else (x,)


def check(got, wanted):
    got, wanted = _pytree.tree_leaves(got), _pytree.tree_leaves(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def whole(program):
    """How many recurrent layers are operators of an exported program."""
    return sum(str(n.target).endswith(".input") for n in program.graph.nodes)


@pytest.fixture(autouse=True)
def reproducible():
    torch.manual_seed(0)
    torch._dynamo.reset()


@pytest.fixture
def traced_layers():
    """torch.compile traces recurrent layers, which it leaves to PyTorch else."""
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


def agrees(model, given, dynamic, *sizes):
    """Export a model for the first (steps, batch) and run it for all."""
    program = torch.export.export(model, drawn(model, *sizes[0], given), dynamic_shapes=dynamic)
    assert whole(program) == 1
    run = frontend.compile_exported_program(program)
    for steps, batch in sizes:
        arguments = drawn(model, steps, batch, given)
        check(run(*arguments), model(*arguments))


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("stack", STACKS)
def test_layers_agree_with_pytorch(kind, stack):
    agrees(made(kind, **STACKS[stack]), stack == "both_directions", None, (4, 3))


@pytest.mark.parametrize("options", [{}, {"bias": False, "num_layers": 2, "bidirectional": True}])
def test_projected_states(options):
    agrees(made("lstm", proj_size=2, **options), True, None, (4, 3))


@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh", "projected"])
def test_every_length_and_every_batch(kind):
    options = {"proj_size": 2} if kind == "projected" else {}
    model = made("lstm" if options else kind, bidirectional=True, batch_first=True, **options)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("steps")}
    with frontend.whole_recurrent_layers():
        agrees(model, False, (sizes,), (4, 3), (1, 1), (7, 2))


def test_what_pytorch_says_of_lengths_is_as_before_behind_the_context():
    model = made("gru")
    with frontend.whole_recurrent_layers():
        for steps in (3, 4):
            assert whole(torch.export.export(model, drawn(model, steps, 2))) == 1
    with pytest.raises(Exception, match="specialized it to be a constant"):
        torch.export.export(model, drawn(model, 4, 3), dynamic_shapes=({0: torch.export.Dim("steps")},))


def test_a_model_of_one_sequence_by_compile():
    model = made("lstm")
    x = torch.randn(4, 5)
    run = tw.compile(torch.export.export(model, (x,)))
    check([torch.from_dlpack(r) for r in run(x)], model(x))


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(cell):
    model = cell(5, 6).eval()
    run = frontend.compile_exported_program(
        torch.export.export(model, (torch.randn(3, 5),), dynamic_shapes=({0: torch.export.Dim("batch")},)))
    for batch in (3, 1, 8):
        x = torch.randn(batch, 5)
        check(run(x), model(x))


@pytest.mark.parametrize("kind", LAYERS)
def test_torch_compile_keeps_layers_whole(kind, traced_layers, monkeypatch):
    model, graphs = made(kind, num_layers=2, bidirectional=True), []

    def recorded(module, *args, **kwargs):
        graphs.append([str(n.target) for n in module.graph.nodes])
        return import_graph(module, *args, **kwargs)
    monkeypatch.setattr(dynamo, "import_graph", recorded)
    run = torch.compile(model, backend=frontend.backend, dynamic=True)
    with torch.no_grad(), frontend.whole_recurrent_layers():
        for steps in (4, 6, 9):
            arguments = drawn(model, steps, 3)
            check(run(*arguments), model(*arguments))
    assert len(graphs) == 1 and sum(name.endswith(".input") for name in graphs[0]) == 1
    torch._dynamo.reset()
    with torch.inference_mode():
        check(torch.compile(model, backend=frontend.backend)(*arguments), model(*arguments))
    assert len(graphs) == 2 and sum(name.endswith(".input") for name in graphs[1]) == 1


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_gradients(kind, traced_layers):
    model = made(kind)
    run = torch.compile(model, backend=frontend.backend)
    found = []
    for f in (model, run):
        model.zero_grad()
        torch.manual_seed(1)
        x, states = drawn(model, 3, 2, given=True)
        results = _pytree.tree_leaves(f(x.requires_grad_(), states))
        sum((r * r).sum() for r in results).backward()
        found.append([x.grad, *(p.grad.clone() for p in model.parameters())])
    check(found[1], found[0])


def test_dropout_in_training_is_refused():
    model = made("gru", **STACKS["dropout"])
    arguments = drawn(model, 3, 2)
    program = torch.export.export(model.train(), arguments)
    with pytest.raises(ImportModelError, match=r"dropout 0\.5 between layers.*(?s:.)*model\.eval\(\)"):
        frontend.from_exported_program(program)


def test_packed_sequences_are_refused():
    graph = fx.Graph()
    data = graph.placeholder("data")
    data.meta["val"] = torch.randn(8, 5)
    node = graph.call_function(torch.ops.aten.lstm.data, (data, data, [data], [data], True, 1, 0.0, False, False))
    node.meta["val"] = (torch.randn(8, 6), torch.randn(1, 3, 6), torch.randn(1, 3, 6))
    graph.output((node,))
    with pytest.raises(ImportModelError, match="packed sequences are not supported"):
        import_graph(fx.GraphModule(nn.Module(), graph), {})
