"""Networks for pictures, written out: ResNet (He and others, 2015) and MobileNetV2 (Sandler and others, 2018)."""
from __future__ import annotations

import torch
from torch import nn


def unit(inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU):
    """Convolution, batch norm with moments that are not 0 and 1, activation."""
    norm = nn.BatchNorm2d(outputs)
    nn.init.uniform_(norm.running_mean, -0.2, 0.2)
    nn.init.uniform_(norm.running_var, 0.5, 1.5)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    conv = nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False)
    return nn.Sequential(conv, norm, *([activation()] if activation else []))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(unit(inputs, outputs, 3, stride), unit(outputs, outputs, 3, activation=None))
        same = inputs == outputs and stride == 1
        self.short = nn.Identity() if same else unit(inputs, outputs, 1, stride, activation=None)

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, widths=(8, 16, 24, 32), blocks=(2, 2, 2, 2), classes=10):
        super().__init__()
        self.stem = nn.Sequential(unit(3, widths[0], 7, 2), nn.MaxPool2d(3, 2, 1))
        stages, inputs = [], widths[0]
        for k, (width, count) in enumerate(zip(widths, blocks)):
            for n in range(count):
                stages.append(Block(inputs, width, 2 if k and not n else 1))
                inputs = width
        self.stages, self.head = nn.Sequential(*stages), nn.Linear(inputs, classes)

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.stages(self.stem(x)), 1)
        return self.head(torch.flatten(x, 1))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, factor):
        super().__init__()
        wide = inputs * factor
        grow = [unit(inputs, wide, 1, activation=nn.ReLU6)] if factor > 1 else []
        self.body = nn.Sequential(*grow, unit(wide, wide, 3, stride, wide, nn.ReLU6),
                                  unit(wide, outputs, 1, activation=None))
        self.same = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        layers, inputs = [unit(3, 8, 3, 2, activation=nn.ReLU6)], 8
        for factor, width, count, stride in ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 2, 2), (6, 24, 1, 1)):
            for n in range(count):
                layers.append(Inverted(inputs, width, stride if n == 0 else 1, factor))
                inputs = width
        self.body = nn.Sequential(*layers, unit(inputs, 64, 1, activation=nn.ReLU6))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(64, classes))

    def forward(self, x):
        return self.head(self.body(x).mean([2, 3]))
