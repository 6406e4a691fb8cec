"""What is learnt: a small network in NumPy, and who holds which digits."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fedcote

Model = list[NDArray[np.float32]]

CLASSES = 10
HIDDEN = 32


def initial_model(seed: int) -> Model:
    """Weights and biases of a network 784 × 32 × 10."""
    generator = np.random.default_rng(seed)

    def uniform(inputs: int, outputs: int) -> NDArray[np.float32]:
        bound = 1 / np.sqrt(inputs)
        return generator.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)

    hidden, output = uniform(784, HIDDEN), uniform(HIDDEN, CLASSES)
    return [hidden, np.zeros(HIDDEN, np.float32), output, np.zeros(CLASSES, np.float32)]


def inputs(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Standardised pixels."""
    pixels = images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
    return (pixels - np.float32(0.1307)) / np.float32(0.3081)


def forward(
    model: Model, x: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    hidden = np.maximum(x @ model[0] + model[1], 0)
    return hidden, hidden @ model[2] + model[3]


def train(
    model: Model,
    images: NDArray[np.uint8],
    labels: NDArray[Any],
    steps: int,
    batch: int,
    rate: float,
    generator: np.random.Generator,
    after_step: Callable[[Model], None],
) -> tuple[Model, float]:
    """Stochastic gradient descent on the cross-entropy; the model and its last loss.

    ``after_step`` is called with the model after every step.
    """
    model = [array.copy() for array in model]
    loss = 0.0
    for _ in range(steps):
        chosen = generator.integers(0, len(labels), batch)
        x, y = inputs(images[chosen]), labels[chosen]
        hidden, scores = forward(model, x)
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        loss = float(-np.log(shares[np.arange(batch), y] + 1e-12).mean())
        shares[np.arange(batch), y] -= 1
        shares /= batch
        back = (shares @ model[2].T) * (hidden > 0)
        gradients = [x.T @ back, back.sum(axis=0), hidden.T @ shares, shares.sum(axis=0)]
        for array, gradient in zip(model, gradients, strict=True):
            array -= np.float32(rate) * gradient
        after_step(model)
    return model, loss


def accuracy(model: Model, images: NDArray[np.uint8], labels: NDArray[Any]) -> float:
    """The share of images that are recognised."""
    return float((forward(model, inputs(images))[1].argmax(axis=1) == labels).mean())


def own_samples(labels: NDArray[Any], client: int, clients: int) -> NDArray[np.intp]:
    """Which samples a client holds: each group of digits belongs to two clients or three."""
    groups = max(1, clients // 2)
    group, place = client % groups, client // groups
    holders = len(range(group, clients, groups))
    return np.flatnonzero(labels % groups == group)[place::holders]


def client_data(client: int, clients: int) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """A client's images and labels."""
    data = fedcote.mnist()
    own = own_samples(data.train_labels, client, clients)
    return data.train_images[own], data.train_labels[own]
