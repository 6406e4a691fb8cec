"""Federated averaging with FedLab's server handler and serial trainer."""

import fedlab
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.utils import Aggregators, SerializationTool

from task import Task


class Data:
    """What the trainer asks for."""

    def __init__(self, task):
        self.get_dataloader = lambda client, batch: task.batches(client)


class Handler(SyncServerHandler):
    """Draws with replacement, by weight; uploads fail."""

    def sample_clients(self):
        self.arrived = self.task.arrivals()
        return list(self.arrived)

    @property
    def num_clients_per_round(self):
        return len(self.arrived)

    def global_update(self, buffer):
        models = [model for (model,) in buffer]
        mean = Aggregators.fedavg_aggregate(models, list(self.arrived.values()))
        SerializationTool.deserialize_model(self._model, mean)


def main():
    task = Task()
    handler = Handler(task.model(), task.rounds, 1.0)
    handler.task, handler.num_clients = task, task.clients
    trainer = SGDSerialClientTrainer(task.model(), task.clients)
    trainer.setup_dataset(Data(task))
    trainer.setup_optim(1, task.batch, task.rate)
    while not handler.if_stop:
        clients = handler.sample_clients()
        trainer.local_process(handler.downlink_package, clients)
        for update in trainer.uplink_package:
            handler.load(update)
        task.evaluate(handler.model, handler.round)
    task.finish(fedlab.__version__)


main()
