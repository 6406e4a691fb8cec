"""A small convolutional network on Fashion-MNIST: 20 clients of few classes, on a network that loses uploads."""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
from torch import nn

import fedcote
import fedcote.torch

FOLDER = Path("/usr/share/datasets/fashion-mnist")  # Debian's package dataset-fashion-mnist


def split(name: str) -> tuple[np.ndarray, np.ndarray]:
    images = gzip.decompress((FOLDER / f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((FOLDER / f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    pixels = np.frombuffer(images, np.uint8).reshape(-1, 1, 28, 28) / np.float32(255)
    return pixels, np.frombuffer(labels, np.uint8)


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip


def main() -> None:
    train, test = split("train"), split("t10k")
    task = fedcote.torch.Task(
        network, train, test, clients=20, partition="dirichlet", concentration=0.1, loss_samples=200
    )
    schemes = ["fedavg", "scaffold", "fedcote-memory", "fedcote-control", "ideal"]
    settings = {"rounds": 100, "seeds": [1, 2], "schemes": schemes, "training.batch": 32}
    settings |= json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    result = fedcote.simulate(settings=settings, task=task, out="runs/fashion-mnist", resume=True)
    for scheme in result.summary["schemes"]:
        print(scheme["name"], scheme["final_accuracy"], scheme["tail_accuracy"])


main()
