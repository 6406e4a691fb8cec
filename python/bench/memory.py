"""How many models a simulation holds at once: ``python python/bench/memory.py --parameters 1000000``.

A task that computes nothing, `fedcote-control`, everyone heard from; the peak of the process's memory before the
simulation is taken off.
"""

import argparse
import resource

import numpy as np

import fedcote


class Nothing:
    def __init__(self, clients, parameters):
        self.labels, self.parameters, self.heard = np.eye(clients, 10) + 1, parameters, set()

    def initial(self, seed):
        return [np.zeros(self.parameters, dtype=np.float32)]

    def train(self, model, job):
        self.heard.add(job.client)
        return [model[0] + np.float32(job.client)]

    def evaluate(self, model):
        return {"loss": float(model[0][0])}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    reader = argparse.ArgumentParser()
    reader.add_argument("--parameters", type=int, default=1_000_000)
    reader.add_argument("--clients", type=int, default=100)
    reader.add_argument("--selected", type=int, default=10)
    reader.add_argument("--rounds", type=int, default=40)
    reader.add_argument("--scheme", default="fedcote-control")
    asked = reader.parse_args()
    scenario = {
        "rounds": asked.rounds, "clients": asked.clients, "selected": asked.selected, "seeds": [1],
        "schemes": [asked.scheme], "evaluate_every": asked.rounds, "checkpoint_every": 10 * asked.rounds,
        "network": {"kind": "fixed", "failure": 0.3},
    }  # fmt: skip
    # Everything that does not grow with the model is there before the first measurement.
    fedcote.simulate(scenario, {"rounds": 2}, task=Nothing(asked.clients, 100))
    before = peak()
    task = Nothing(asked.clients, asked.parameters)
    fedcote.simulate(scenario, task=task)
    models = (peak() - before) / (4 * asked.parameters)
    print(
        f"{len(task.heard)} clients heard, {asked.selected} selected: {models:.1f} models at most"
    )


if __name__ == "__main__":
    main()
