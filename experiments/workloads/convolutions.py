"""Convolutional networks in plain PyTorch: a residual network (He et al., 2016) and its basic step."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from torch_pim.experiments.workloads.options import about
from torch_pim.experiments.workloads.workload import Built, Workload


class ConvBatchNormReLU(nn.Sequential):
    """3x3 convolution, batch norm and ReLU on [batch, channels, height, width]."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
        )


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut; a strided block projects its shortcut by a 1x1 convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = ConvBatchNormReLU(inputs, outputs, stride)
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.shortcut(x))


class ResNet(nn.Module):
    """Stem, one stage of two basic blocks per width, global average pooling and a classifier."""

    def __init__(self, widths: tuple[int, ...], classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        blocks: list[nn.Module] = []
        inputs = widths[0]
        for stage, width in enumerate(widths):
            blocks += [BasicBlock(inputs, width, 2 if stage else 1), BasicBlock(width, width, 1)]
            inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.blocks(self.stem(images)).mean((2, 3)))
        return logits


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """Shape of an image batch."""

    batch: int = field(default=1, metadata=about("images per pass"))
    image: int = field(default=224, metadata=about("height and width in pixels", minimum=32))


@dataclass(frozen=True, slots=True)
class ConvOptions:
    """Shape of one convolution step."""

    batch: int = field(default=1, metadata=about("images per pass"))
    channels: int = field(default=64, metadata=about("input and output channels"))
    image: int = field(default=56, metadata=about("height and width in pixels"))


def _resnet_small(options: ImageOptions) -> Built:
    return ResNet((32, 64, 128)), (torch.randn(options.batch, 3, options.image, options.image),)


def _conv_bn_relu(options: ConvOptions) -> Built:
    block = ConvBatchNormReLU(options.channels, options.channels)
    return block, (torch.randn(options.batch, options.channels, options.image, options.image),)


CONVOLUTIONS = (
    Workload("resnet-small", "residual network of 3 stages (32, 64, 128 channels)", ImageOptions(), _resnet_small),
    Workload("conv-bn-relu", "3x3 convolution, batch norm and ReLU", ConvOptions(), _conv_bn_relu),
)
