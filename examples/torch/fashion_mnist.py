"""A small convolutional network on Fashion-MNIST: 20 clients of few classes, on a network that loses uploads."""

import gzip

import numpy as np
from torch import nn

import fedcote
import fedcote.torch


def read(name: str, start: int) -> np.ndarray:
    file = f"/usr/share/datasets/fashion-mnist/{name}-ubyte.gz"  # Debian's dataset-fashion-mnist
    return np.frombuffer(gzip.open(file).read(), np.uint8, offset=start)


def split(name: str) -> tuple[np.ndarray, np.ndarray]:
    images = read(f"{name}-images-idx3", 16).reshape(-1, 1, 28, 28) / np.float32(255)
    return images, read(f"{name}-labels-idx1", 8)


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip


task = fedcote.torch.Task(
    network, split("train"), split("t10k"),
    clients=20, partition="dirichlet", concentration=0.1, loss_samples=200,
)  # fmt: skip
schemes = ["fedavg", "scaffold", "fedcote-memory", "fedcote-control", "ideal"]
settings = {"rounds": 100, "seeds": [1, 2, 3], "schemes": schemes, "training.batch": 32}
result = fedcote.simulate(settings=settings, task=task, out="runs/fashion-mnist", resume=True)
print({scheme["name"]: scheme["tail_accuracy"]["mean"] for scheme in result.summary["schemes"]})
