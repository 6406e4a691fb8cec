"""Federated averaging with pfl-research's simulated backend."""

import pfl
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightingStrategy
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDatasetBase
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch.nn import functional

from task import Task


class Cohorts(FederatedDatasetBase):
    """Draws with replacement, by weight; uploads fail. The user's id carries how many got through."""

    def __init__(self, task):
        super().__init__()
        self.task = task

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration

    def __len__(self):
        return self.task.clients

    def get_cohort(self, cohort_size):
        for client, copies in self.task.arrivals().items():
            inputs, labels = zip(*self.task.batches(client), strict=True)
            tensors = [torch.cat(inputs), torch.cat(labels)]
            yield PyTorchTensorDataset(tensors, user_id=str(copies)), 0


class WeightByCopies(WeightingStrategy):
    """As often as its uploads got through."""

    def postprocess_one_user(self, *, stats, user_context):
        stats.reweight(int(user_context.user_id))
        return stats, Metrics()


class Evaluation(TrainingProcessCallback):
    """The evaluation that all peers make."""

    def __init__(self, task):
        self.task = task

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        self.task.evaluate(model.pytorch_model, central_iteration + 1)
        return False, Metrics()


def main():
    task = Task()
    network = task.model()
    network.loss = lambda inputs, labels, **_: functional.cross_entropy(network(inputs), labels)
    network.metrics = lambda inputs, labels, **_: {}
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    training = NNTrainHyperParams(
        local_num_epochs=1, local_learning_rate=task.rate, local_batch_size=task.batch
    )
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=task.rounds,
            evaluation_frequency=task.rounds,
            train_cohort_size=task.selected,
            val_cohort_size=0,
        ),
        SimulatedBackend(Cohorts(task), Cohorts(task), [WeightByCopies()]),
        model,
        training,
        NNEvalHyperParams(local_batch_size=None),
        [Evaluation(task)],
    )
    task.finish(pfl.__version__)


main()
