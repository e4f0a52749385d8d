"""Plain networks in PyTorch with random weights, and their inputs. Runs where PyTorch is installed.

    python -m model_cases.networks NAME BATCH FOLDER    writes model.onnx, model.pt2, data.npz (inputs, results)
    python -m model_cases.networks NAME any FOLDER      model.onnx of a transformer for any batch and any length
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

TOKENS = 128


def conv(c_in: int, c_out: int, k: int, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU) -> nn.Sequential:
    layers = [nn.Conv2d(c_in, c_out, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(c_out)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Block(nn.Module):
    """A residual block: two 3x3 convolutions, or 1x1, 3x3 and 1x1."""

    def __init__(self, c_in: int, width: int, stride: int, wide: bool) -> None:
        super().__init__()
        out = 4 * width if wide else width
        self.body = nn.Sequential(conv(c_in, width, 1), conv(width, width, 3, stride), conv(width, out, 1, act=None)) \
            if wide else nn.Sequential(conv(c_in, width, 3, stride), conv(width, width, 3, act=None))
        self.short = conv(c_in, out, 1, stride, act=None) if stride > 1 or c_in != out else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


def resnet(counts: tuple[int, ...], wide: bool) -> nn.Module:
    """He and others (2016): Deep residual learning for image recognition."""
    layers: list[nn.Module] = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    c_in = 64
    for stage, count in enumerate(counts):
        for k in range(count):
            layers.append(Block(c_in, 64 << stage, 2 if k == 0 and stage else 1, wide))
            c_in = (64 << stage) * (4 if wide else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c_in, 1000))


class Inverted(nn.Module):
    def __init__(self, c_in: int, c_out: int, stride: int, expand: int) -> None:
        super().__init__()
        mid = c_in * expand
        first = [conv(c_in, mid, 1, act=nn.ReLU6)] if expand > 1 else []
        self.body = nn.Sequential(*first, conv(mid, mid, 3, stride, mid, nn.ReLU6), conv(mid, c_out, 1, act=None))
        self.add = stride == 1 and c_in == c_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.add else self.body(x)


def mobilenet_v2() -> nn.Module:
    """Sandler and others (2018): MobileNetV2: inverted residuals and linear bottlenecks."""
    layers: list[nn.Module] = [conv(3, 32, 3, 2, act=nn.ReLU6)]
    c_in = 32
    for expand, c_out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                         (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(count):
            layers.append(Inverted(c_in, c_out, stride if k == 0 else 1, expand))
            c_in = c_out
    return nn.Sequential(*layers, conv(c_in, 1280, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(1280, 1000))


class First(nn.Module):
    """The first result of a model of transformers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids)[0]


def transformer(name: str) -> nn.Module:
    import transformers as t
    if name == "bert":
        made = t.BertModel(t.BertConfig(attn_implementation="sdpa"), add_pooling_layer=False)
    elif name == "minilm":
        made = t.BertModel(t.BertConfig(hidden_size=384, num_hidden_layers=6, intermediate_size=1536,
                                        attn_implementation="sdpa"), add_pooling_layer=False)
    else:
        made = t.GPT2LMHeadModel(t.GPT2Config(use_cache=False, attn_implementation="sdpa"))
    return First(made)


NAMES = ("resnet18", "resnet50", "mobilenet_v2", "bert", "gpt2", "minilm")


def network(name: str) -> nn.Module:
    """The network, ready for inference, its weights of a fixed seed."""
    torch.manual_seed(0)
    made = {"resnet18": lambda: resnet((2, 2, 2, 2), False), "resnet50": lambda: resnet((3, 4, 6, 3), True),
            "mobilenet_v2": mobilenet_v2}.get(name, lambda: transformer(name))()
    for m in made.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.0)
            nn.init.normal_(m.running_mean, std=0.1)
            nn.init.uniform_(m.running_var, 0.5, 1.5)
    return made.eval()


def example(name: str, batch: int) -> torch.Tensor:
    """The input of a network."""
    torch.manual_seed(1)
    if name in ("bert", "gpt2", "minilm"):
        return torch.randint(0, 30000, (batch, TOKENS))
    return torch.randn(batch, 3, 224, 224)


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[3])
    model = network(name)
    if sys.argv[2] == "any":
        sizes = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("length", min=2, max=512)}
        torch.onnx.export(model, (example(name, 2),), str(folder / "model.onnx"), input_names=["x"],
                          output_names=["y"], opset_version=18, dynamo=True, verbose=False, dynamic_shapes=(sizes,))
        return
    x = example(name, int(sys.argv[2]))
    with torch.no_grad():
        result = model(x)
        torch.onnx.export(model, (x,), str(folder / "model.onnx"), input_names=["x"], output_names=["y"],
                          opset_version=18, dynamo=True, verbose=False)
        torch.export.save(torch.export.export(model, (x,)), folder / "model.pt2")
    np.savez(folder / "data.npz", x=x.numpy(), y=result.numpy())


if __name__ == "__main__":
    main()
