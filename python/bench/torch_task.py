"""What the engine costs around a PyTorch task, and all clients at once against one by one, on one thread.

    python python/bench/torch_task.py [REPEATS [MODEL]]

MODEL is MLP, of which five repeats take eight minutes, or CNN, of which they take an hour; without it, both.

Seconds of processor. Beside every training of a simulation without evaluation a bare loop makes the same local steps on the
same mini-batches, in turns, so that what else the machine does falls on both; of three turns the fastest counts. Corrections
are part of a scheme, whoever executes it, so the bare loop adds them too; a second one, without them, says what they cost.
What the simulation takes besides its trainings is added to them: of the process before the first and after the last, of their
thread in between (the other one looks for Ctrl-C twenty times a second, which here, where trainings are repeated, is many times).
Ratios are medians over REPEATS simulations, with the quartiles.
"""

import statistics
import sys
import time

import numpy as np
import torch
from torch import nn

import fedcote
import fedcote.torch

#: A simulation also begins and ends, some 12 ms: so many rounds as make that small.
ROUNDS = {"MLP": 200, "CNN": 10}


class Beside:
    """A task that makes the same local steps in a bare loop beside every training, and is not evaluated."""

    def __init__(self, task, make, repeats):
        self.task, self.labels, self.initial, self.repeats = (
            task,
            task.labels,
            task.initial,
            repeats,
        )
        self.module, self.jobs = make(), 0
        #: Seconds of the fastest of the repetitions: of all trainings, of all bare loops, and of those without corrections.
        self.seconds = {"training": 0.0, "bare": 0.0, "plain": 0.0}
        #: When the simulation, and later the latest training, was left: of the process, and of the thread that trains.
        self.process, self.thread = time.process_time(), None
        #: Seconds of all else.
        self.else_ = 0.0

    def train(self, model, job):
        if self.thread is None:
            self.else_ += time.process_time() - self.process
        else:
            self.else_ += time.thread_time() - self.thread
        times = {kind: [] for kind in self.seconds}
        for at in range(self.repeats):
            # Who comes first finds other caches.
            for kind in list(times)[:: 1 if (self.jobs + at) % 2 else -1]:
                start = time.thread_time()
                if kind == "training":
                    found = self.task.train(model, job)
                else:
                    bare(self.module, self.task, job, job.correction if kind == "bare" else None)
                times[kind].append(time.thread_time() - start)
        self.jobs += 1
        for kind, taken in times.items():
            self.seconds[kind] += min(taken)
        self.process, self.thread = time.process_time(), time.thread_time()
        return found

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


def bare(module, task, job, correction):
    """The same steps, as one would write them."""
    inputs, targets = task._local.data.tensors
    module.load_state_dict({name: torch.tensor(array) for name, array in job.anchor.items()})
    added = {name: torch.tensor(array) for name, array in (correction or {}).items()}
    optimiser = torch.optim.SGD(module.parameters(), lr=job.rate)
    own = task._local.samples[job.client]
    for rows in own[job.batches(len(own))]:
        index = torch.as_tensor(rows)
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(inputs[index]), targets[index]).backward()
        optimiser.step()
        if added:
            with torch.no_grad():
                for name, parameter in module.named_parameters():
                    parameter.sub_(added[name], alpha=job.rate)


def seconds(function, *arguments, **named):
    begun = time.process_time()
    function(*arguments, **named)
    return time.process_time() - begun


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def overhead(name, make, data, repeats, scheme):
    task = fedcote.torch.Task(make, data, data, clients=20, partition="label-pairs", batched=False)
    rounds = ROUNDS[name]
    settings = {"rounds": rounds, "seeds": [1], "schemes": [scheme], "evaluate_every": rounds}
    ratios, plain = [], []
    for _ in range(repeats + 1):
        both = Beside(task, make, 3)
        fedcote.simulate(settings=settings, task=both, progress=False)
        engine, taken = both.else_ + time.process_time() - both.process, both.seconds
        ratios.append((engine + taken["training"]) / taken["bare"])
        plain.append((engine + taken["training"]) / taken["plain"])
    # The first turn warms up.
    print(f"{name}, {scheme}: {both.jobs} trainings, bare loops {taken['bare']:.2f} s (without corrections"
          f" {taken['plain']:.2f} s), trainings {taken['training']:.2f} s, all else {engine:.3f} s;"
          f" simulation / bare loop = {spread(ratios[1:])}, without corrections {spread(plain[1:])}", flush=True)  # fmt: skip


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
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    models = {"MLP": mlp, "CNN": cnn}
    if len(sys.argv) > 2:
        models = {sys.argv[2]: models[sys.argv[2]]}
    torch.set_num_threads(1)
    mnist = fedcote.mnist()
    data = mnist.train_images[:, None] / np.float32(255), mnist.train_labels
    for name, make in models.items():
        together(name, make, data, repeats)
    for name, make in models.items():
        for scheme in ("ideal", "fedcote-control"):
            overhead(name, make, data, repeats, scheme)


if __name__ == "__main__":
    main()
