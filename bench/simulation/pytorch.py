"""The PyTorch side of `cargo xtask bench simulation`: 500 rounds of FedAvg as one would write them.

20 clients with 3,000 samples each, 10 draws a round with replacement, 5 local steps of 128 samples, uploads that fail
with probability 0.3, an evaluation on all 70,000 images every 10 rounds. The images are random numbers of MNIST's
shape: how long a dense network takes in PyTorch does not depend on them.
"""

import copy
import random

import torch
from torch import nn
from torch.nn import functional as F

ROUNDS, CLIENTS, DRAWS, STEPS, BATCH, RATE = 500, 20, 10, 5, 128, 0.05


def main():
    torch.manual_seed(1)
    random.seed(1)
    inputs, labels = torch.randn(60_000, 784), torch.randint(10, (60_000,))
    test_inputs, test_labels = torch.randn(10_000, 784), torch.randint(10, (10_000,))
    clients = torch.randperm(60_000).reshape(CLIENTS, -1)
    model = nn.Sequential(nn.Linear(784, 30), nn.ReLU(), nn.Linear(30, 10))
    for round in range(1, ROUNDS + 1):
        drawn = [random.randrange(CLIENTS) for _ in range(DRAWS)]
        states = {}
        for client in set(drawn):
            local = copy.deepcopy(model)
            optimiser = torch.optim.SGD(local.parameters(), lr=RATE)
            for _ in range(STEPS):
                batch = clients[client][torch.randint(len(clients[client]), (BATCH,))]
                optimiser.zero_grad()
                F.cross_entropy(local(inputs[batch]), labels[batch]).backward()
                optimiser.step()
            states[client] = local.state_dict()
        arrived = []
        while not arrived:
            arrived = [client for client in drawn if random.random() >= 0.3]
        mean = {
            name: sum(states[client][name] for client in arrived) / len(arrived)
            for name in model.state_dict()
        }
        model.load_state_dict(mean)
        if round % 10 == 0:
            with torch.no_grad():
                F.cross_entropy(model(inputs), labels).item()
                (model(test_inputs).argmax(1) == test_labels).float().mean().item()


main()
