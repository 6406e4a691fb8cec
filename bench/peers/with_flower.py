"""Federated averaging with Flower: its strategy, its messages and its ClientApp, in one process.

Flower's own simulation needs Ray, and its deployment passes messages over gRPC with polls of three seconds. Here messages
go straight from the strategy to the ClientApp, without either: the least that Flower costs.
"""

import logging

import flwr
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from task import Task

# Messages are made only inside a run.
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
logging.getLogger("flwr").setLevel(logging.ERROR)

task = Task()
local = task.model()
app = ClientApp()


@app.train()
def train(message, context):
    local.load_state_dict(message.content["arrays"].to_torch_state_dict())
    config = message.content["config"]
    task.train(local, config["client"])
    metrics = MetricRecord({"copies": config["copies"]})
    content = {"arrays": ArrayRecord(local.state_dict()), "metrics": metrics}
    return Message(RecordDict(content), reply_to=message)


class Drawn(FedAvg):
    """FedAvg with draws with replacement, by weight, and uploads that fail: Flower samples neither."""

    def configure_train(self, server_round, arrays, config, grid):
        for client, copies in task.arrivals().items():
            each = ConfigRecord({"client": client, "copies": copies})
            content = RecordDict({"arrays": arrays, "config": each})
            yield Message(content, dst_node_id=client + 1, message_type="train")


class InProcess(Grid):
    """Hands messages to the ClientApp."""

    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})

    def get_node_ids(self):
        return range(1, task.clients + 1)

    def send_and_receive(self, messages, *, timeout=None):
        return [app(message, self.context) for message in messages]

    run = property(lambda self: None)

    def set_run(self, run): ...

    def create_message(self, *args, **kwargs): ...

    def push_messages(self, messages): ...

    def pull_messages(self, message_ids): ...


def main():
    model = task.model()

    def evaluate(round, arrays):
        if round and round % task.evaluate_every == 0:
            model.load_state_dict(arrays.to_torch_state_dict())
            task.evaluate(model, round)

    strategy = Drawn(fraction_evaluate=0.0, weighted_by_key="copies")
    initial = ArrayRecord(model.state_dict())
    strategy.start(InProcess(), initial, num_rounds=task.rounds, evaluate_fn=evaluate)
    task.finish(flwr.__version__)


main()
