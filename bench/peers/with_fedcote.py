"""Federated averaging in FedCote's engine, with a model in PyTorch: `fedcote.torch.Task`.

Rounds, draws, failures and local steps are the scenario's; data and model are here. Nothing is shared with the other sides.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

import fedcote
import fedcote.torch


def inputs(images):
    return (torch.tensor(images).reshape(-1, 784) / 255 - 0.1307) / 0.3081


def main():
    begun = time.perf_counter()
    setting, seed = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[3])

    def model():
        if not setting["hidden"]:
            return nn.Linear(784, 10)
        (hidden,) = setting["hidden"]
        return nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    mnist = fedcote.mnist()
    task = fedcote.torch.Task(
        model,
        (inputs(mnist.train_images), mnist.train_labels),
        (inputs(mnist.test_images), mnist.test_labels),
        clients=setting["clients"],
        partition=setting["split"],
        seed=seed,
        device="cpu",
    )
    found = fedcote.simulate(setting["scenario"], {"seeds": [seed]}, task=task)
    accuracy = found.summary["schemes"][0]["tail_accuracy"]["mean"]
    seconds = time.perf_counter() - begun
    print(json.dumps({"accuracy": accuracy, "seconds": seconds, "version": fedcote.__version__}))


main()
