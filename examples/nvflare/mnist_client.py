"""A client with some of MNIST's digits, whose uploads fail."""

from typing import Any

import numpy as np
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import make_reply
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

import fedcote

CLASSES = 10


def accuracy(model: dict[str, Any], images: Any, labels: Any) -> float:
    """The share of images that softmax regression recognises."""
    scores = images.reshape(len(images), -1) / np.float32(255) @ model["weights"] + model["bias"]
    return float((scores.argmax(axis=1) == labels).mean())


class MnistClient(Executor):
    """Softmax regression in NumPy on the digits of this client's group."""

    def __init__(
        self, number: int, clients: int, failure: float, steps: int = 20, rate: float = 0.1
    ) -> None:
        """NVFlare writes down what the attributes of these names are, to make the same elsewhere."""
        super().__init__()
        self.number, self.clients, self.failure = number, clients, failure
        self.steps, self.rate = steps, rate
        data, groups = fedcote.mnist(), max(1, clients // 2)
        own = np.flatnonzero(data.train_labels % groups == number % groups)[number // groups :: 2]
        self.images = data.train_images[own].reshape(len(own), -1) / np.float32(255)
        self.labels = data.train_labels[own]

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """Tells the label counts, or trains; then the upload fails with this client's probability."""
        model = FLModelUtils.from_shareable(shareable)
        if task_name == "labels":
            counts = np.bincount(self.labels, minlength=CLASSES).tolist()
            return FLModelUtils.to_shareable(
                FLModel(metrics={"samples": len(self.labels)}, meta={"labels": counts})
            )
        generator = np.random.default_rng([self.number, model.current_round])
        if generator.random() < self.failure:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        weights, bias = model.params["weights"].copy(), model.params["bias"].copy()
        for _ in range(self.steps):
            chosen = generator.integers(0, len(self.labels), 64)
            x, y = self.images[chosen], self.labels[chosen]
            scores = x @ weights + bias
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            shares[np.arange(64), y] -= 1
            weights -= np.float32(self.rate / 64) * (x.T @ shares)
            bias -= np.float32(self.rate / 64) * shares.sum(axis=0)
        trained = {"weights": weights, "bias": bias}
        return FLModelUtils.to_shareable(FLModel(params_type=ParamsType.FULL, params=trained))
