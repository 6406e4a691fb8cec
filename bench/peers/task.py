"""What all Python peers share: data, who holds it, who arrives in a round, the model, evaluation, the result.

    python PEER.py SETTING.json MNIST-FOLDER SEED

A setting is what `cargo xtask bench peers` writes: numbers of a scenario and the failure probability of each client.
Everything a peer's own library does not bring is here, written as generously as possible to the peers: arrays are
gathered once, only those whose upload gets through are trained, a client drawn twice is trained once.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)


def read_idx(path):
    """An IDX file of bytes as an array."""
    data = Path(path).read_bytes()
    shape = np.frombuffer(data, ">u4", count=data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


class Task:
    """A setting, its data and its random numbers."""

    def __init__(self):
        setting, folder, seed = sys.argv[1:]
        self.begun = time.perf_counter()
        for key, value in json.loads(Path(setting).read_text()).items():
            setattr(self, key, value)
        self.generator = np.random.default_rng(int(seed))
        torch.manual_seed(int(seed))
        self.inputs, self.labels = self.load(folder, "train")
        self.test_inputs, self.test_labels = self.load(folder, "t10k")
        self.holdings = [torch.from_numpy(each) for each in self.partition()]
        self.weights = np.array([len(each) for each in self.holdings]) / len(self.labels)
        self.accuracies = []

    def load(self, folder, part):
        images = read_idx(f"{folder}/{part}-images-idx3-ubyte").reshape(-1, 784)
        inputs = (torch.from_numpy(images.astype(np.float32)) / 255 - 0.1307) / 0.3081
        labels = read_idx(f"{folder}/{part}-labels-idx1-ubyte").astype(np.int64)
        return inputs, torch.from_numpy(labels)

    def partition(self):
        """Shards of one label, two a client; or blocks of clients that share two labels."""
        labels = self.labels.numpy()
        if self.split == "shards":
            shuffled = self.generator.permutation(len(labels))
            shards = shuffled[labels[shuffled].argsort(kind="stable")].reshape(2 * self.clients, -1)
            return self.generator.permutation(shards).reshape(self.clients, -1)
        blocks = []
        for pair in range(5):
            block = self.generator.permutation(np.flatnonzero(labels // 2 == pair))
            blocks += np.array_split(block, self.clients // 5)
        return blocks

    def arrivals(self):
        """A round's clients and how many of their uploads get through; drawn by weight, with replacement."""
        drawn = self.generator.choice(self.clients, self.selected, p=self.weights)
        while True:
            through = self.generator.random(self.selected) >= np.take(self.failure, drawn)
            if through.any():
                return Counter(drawn[through].tolist())

    def batches(self, client):
        """The mini-batches of a client's local steps: an epoch for small clients, random samples else."""
        held = self.holdings[client]
        chosen = held[torch.randperm(len(held))[: self.local_steps * self.batch]]
        for indices in chosen.split(self.batch):
            yield self.inputs[indices], self.labels[indices]

    def model(self):
        """The network of the setting."""
        sizes = [784, *self.hidden, 10]
        layers = []
        for before, after in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def train(self, model, client):
        """Local steps of plain gradient descent."""
        optimiser = torch.optim.SGD(model.parameters(), lr=self.rate)
        for inputs, labels in self.batches(client):
            optimiser.zero_grad()
            functional.cross_entropy(model(inputs), labels).backward()
            optimiser.step()

    def evaluate(self, model, round):
        """Every so many rounds, loss on all training samples and accuracy on the test set."""
        if round % self.evaluate_every == 0:
            with torch.no_grad():
                functional.cross_entropy(model(self.inputs), self.labels).item()
                right = model(self.test_inputs).argmax(1) == self.test_labels
                self.accuracies.append(right.float().mean().item())

    def finish(self, version):
        """Prints the result: accuracy over the last fifth of the rounds, and seconds after the imports."""
        last = self.accuracies[-max(1, min(100, self.rounds // 5) // self.evaluate_every) :]
        accuracy, seconds = sum(last) / len(last), time.perf_counter() - self.begun
        print(json.dumps({"accuracy": accuracy, "seconds": seconds, "version": version}))
