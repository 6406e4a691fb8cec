"""How many models a simulation holds at once: ``python python/bench/memory.py``.

A task that returns a copy of the model, `fedcote-control`, everyone heard from in the end, a checkpoint after half of the rounds;
``--resume`` stops after half of the rounds and goes on in another process. The peak of the process's memory before the
simulation is taken off. One model of what is left is the task's own: the copy that it returns.
"""

import argparse
import multiprocessing
import resource
import tempfile

import numpy as np

import fedcote


class Nothing:
    def __init__(self, clients, parameters, stop):
        self.labels, self.parameters, self.heard = np.eye(clients, 10) + 1, parameters, set()
        self.stop = stop

    def initial(self, seed):
        return [np.zeros(self.parameters, dtype=np.float32)]

    def train(self, model, job):
        if job.round >= self.stop:
            raise Stop
        self.heard.add(job.client)
        return [model[0].copy()]

    def evaluate(self, model):
        return {"loss": float(model[0][0])}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    reader = argparse.ArgumentParser()
    reader.add_argument("--parameters", type=int, default=25_000_000)
    reader.add_argument("--clients", type=int, default=100)
    reader.add_argument("--selected", type=int, default=10)
    reader.add_argument("--rounds", type=int, default=40)
    reader.add_argument("--resume", action="store_true")
    reader.add_argument("--scheme", default="fedcote-control")
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory(prefix="fedcote-memory-", dir=".") as folder:
        halves = [asked.rounds // 2, asked.rounds] if asked.resume else [asked.rounds]
        heard = set()
        for rounds in halves:
            # A process of its own: the peak is that of a process.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                models, new = pool.apply(measure, (asked, folder, rounds))
            heard |= new
            print(
                f"{len(heard)} clients heard, {asked.selected} selected, round {rounds}: {models:.2f} models at most, "
                f"{models - 1:.2f} without the task's own",
                flush=True,
            )


class Stop(Exception):
    """Enough rounds."""


def measure(asked, folder, rounds):
    """Peak in models, and who was heard, of a run up to a round."""
    scenario = {
        "rounds": asked.rounds, "clients": asked.clients, "selected": asked.selected, "seeds": [1],
        "schemes": [asked.scheme], "evaluate_every": asked.rounds, "checkpoint_every": asked.rounds // 2,
        "network": {"kind": "fixed", "failure": 0.3},
    }  # fmt: skip
    # Everything that does not grow with the model is there before the first measurement.
    fedcote.simulate(scenario, {"rounds": 2}, task=Nothing(asked.clients, 100, 3), progress=False)
    before = peak()
    task = Nothing(asked.clients, asked.parameters, rounds + 1)
    try:
        fedcote.simulate(scenario, task=task, out=folder, resume=True, progress=False)
    except fedcote.TaskError as error:
        if not isinstance(error.__cause__, Stop):
            raise
    return (peak() - before) / (4 * asked.parameters), task.heard


if __name__ == "__main__":
    main()
