"""Federated averaging as a plain loop in PyTorch."""

import torch

from task import Task


def main():
    task = Task()
    model, local = task.model(), task.model()
    for round in range(1, task.rounds + 1):
        arrived = task.arrivals()
        total = sum(arrived.values())
        mean = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
        for client, copies in arrived.items():
            local.load_state_dict(model.state_dict())
            task.train(local, client)
            for name, value in local.state_dict().items():
                mean[name].add_(value, alpha=copies / total)
        model.load_state_dict(mean)
        task.evaluate(model, round)
    task.finish(torch.__version__)


main()
