"""What the engine costs around a PyTorch task, and all clients at once against one by one, on one thread.

    python python/bench/torch_task.py [REPEATS]

Seconds of processor. The engine's are those of whole simulations without evaluation; the bare loop then makes the same
local steps on the same mini-batches. Both take turns; ratios are medians over the turns, with the quartiles.
"""

import statistics
import sys
import time

import numpy as np
import torch
from torch import nn

import fedcote
import fedcote.torch

ROUNDS = 10


class Recorded:
    """A task that keeps its jobs, and is not evaluated."""

    def __init__(self, task):
        self.task, self.labels, self.initial, self.jobs = task, task.labels, task.initial, []
        self.batched = task.batched

    def train(self, model, job):
        self.jobs.append(job)
        return self.task.train(model, job)

    def train_many(self, model, jobs):
        self.jobs.extend(jobs)
        return self.task.train_many(model, jobs)

    def evaluate(self, model):
        return {"accuracy": 0.0, "loss": 0.0}


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 30), nn.ReLU(), nn.Linear(30, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip


def bare(make, inputs, targets, samples, jobs):
    """The same steps, as one would write them."""
    module = make()
    for job in jobs:
        module.load_state_dict({name: torch.tensor(array) for name, array in job.anchor.items()})
        optimiser = torch.optim.SGD(module.parameters(), lr=job.rate)
        own = samples[job.client]
        for rows in own[job.batches(len(own))]:
            index = torch.as_tensor(rows)
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(inputs[index]), targets[index]).backward()
            optimiser.step()


def seconds(function, *arguments, **named):
    begun = time.process_time()
    function(*arguments, **named)
    return time.process_time() - begun


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def overhead(name, make, data, repeats, scheme):
    task = fedcote.torch.Task(make, data, data, clients=20, partition="label-pairs", batched=False)
    inputs, targets = task._local.data.tensors
    settings = {"rounds": ROUNDS, "seeds": [1], "schemes": [scheme], "evaluate_every": ROUNDS}
    ratios, engine = [], []
    for _ in range(repeats + 1):
        recorded = Recorded(task)
        took = seconds(fedcote.simulate, settings=settings, task=recorded, progress=False)
        loop = seconds(bare, make, inputs, targets, task._local.samples, recorded.jobs)
        ratios.append(took / loop)
        engine.append(took)
    # The first turn warms up.
    print(f"{name}, {scheme}: {len(recorded.jobs)} trainings, {statistics.median(engine[1:]):.2f} s,"
          f" engine / bare loop = {spread(ratios[1:])}")  # fmt: skip


def together(name, make, data, repeats):
    tasks = [
        fedcote.torch.Task(make, data, data, clients=10, partition="iid", batched=batched)
        for batched in (False, True)
    ]
    start = tasks[0].initial(1)
    jobs = [
        fedcote.Job(client=at, round=1, seed=at, steps=5, batch=128, rate=0.05, anchor=start)
        for at in range(10)
    ]
    ratios = []
    for _ in range(repeats + 1):
        looped, batched = (seconds(task.train_many, start, jobs) for task in tasks)
        ratios.append(looped / batched)
    print(
        f"{name}, 10 clients: one by one {looped:.3f} s, one by one / at once = {spread(ratios[1:])}"
    )


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    torch.set_num_threads(1)
    mnist = fedcote.mnist()
    data = mnist.train_images[:, None] / np.float32(255), mnist.train_labels
    for name, make in (("MLP", mlp), ("CNN", cnn)):
        together(name, make, data, repeats)
    for name, make in (("CNN", cnn), ("MLP", mlp)):
        for scheme in ("ideal", "fedcote-control"):
            overhead(name, make, data, repeats, scheme)


if __name__ == "__main__":
    main()
