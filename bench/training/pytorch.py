"""The PyTorch side of `cargo xtask bench training`.

Reads the name of a measurement a line from standard input and answers with the seconds of processor time it took, on one thread.
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

BATCH = 128


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(2, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(2, outputs)
        self.stride, self.extra = stride, outputs - inputs

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        if self.stride > 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra))
        return F.relu(y + x)


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.GroupNorm(2, 16), nn.ReLU()]
    inputs = 16
    for stage, outputs in enumerate((16, 32, 64)):
        for block in range(3):
            layers.append(Block(inputs, outputs, 2 if stage and not block else 1))
            inputs = outputs
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    assert sum(p.numel() for p in model.parameters()) == 269722
    return model


def cnn():
    layers = [nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    layers += [nn.Linear(2048, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)]
    model = nn.Sequential(*layers)
    assert sum(p.numel() for p in model.parameters()) == 551786
    return model


def mlp():
    model = nn.Sequential(nn.Linear(784, 30), nn.ReLU(), nn.Linear(30, 10))
    assert sum(p.numel() for p in model.parameters()) == 23860
    return model


def shortest(repeats, call):
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def step(model, inputs, repeats):
    labels = torch.randint(0, 10, (BATCH,))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)

    def call():
        optimiser.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimiser.step()

    return shortest(repeats, call)


def evaluate():
    model, inputs, labels = mlp(), torch.randn(70000, 784), torch.randint(0, 10, (70000,))

    def run(chunk):
        with torch.inference_mode():
            for at in range(0, 70000, chunk):
                logits = model(inputs[at : at + chunk])
                here = labels[at : at + chunk]
                F.cross_entropy(logits, here, reduction="sum").item()
                (logits.argmax(1) == here).sum().item()

    return min(shortest(2, lambda chunk=chunk: run(chunk)) for chunk in (1000, 10000))


def product():
    a, b = torch.rand(768, 768), torch.rand(768, 768)
    c = torch.empty(768, 768)
    return shortest(4, lambda: torch.mm(a, b, out=c))


MEASUREMENTS = {
    "product": product,
    "mlp": lambda: step(mlp(), torch.randn(BATCH, 784), 300),
    "resnet20": lambda: step(resnet20(), torch.randn(BATCH, 3, 32, 32), 2),
    "resnet20-channels-last": lambda: step(
        resnet20().to(memory_format=torch.channels_last),
        torch.randn(BATCH, 3, 32, 32).to(memory_format=torch.channels_last),
        2,
    ),
    "cnn": lambda: step(cnn(), torch.randn(BATCH, 3, 32, 32), 5),
    "cnn-channels-last": lambda: step(
        cnn().to(memory_format=torch.channels_last),
        torch.randn(BATCH, 3, 32, 32).to(memory_format=torch.channels_last),
        5,
    ),
    "evaluate": evaluate,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for line in sys.stdin:
        measurement = MEASUREMENTS.get(line.strip())
        print(measurement() if measurement else "unknown", flush=True)
