"""The ClientApp: tells its labels, trains, and loses some uploads."""

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedcote.client import Correction, label_histogram

from . import task

app = ClientApp()


def who(context: Context) -> tuple[int, int]:
    """This client's number, and how many there are."""
    return int(context.node_config["partition-id"]), int(context.node_config["num-partitions"])


@app.query("label_histogram")
def histogram(message: Message, context: Context) -> Message:
    """What FedCote asks for: how many samples of each label there are."""
    _, labels = task.client_data(*who(context))
    return label_histogram(message, context, labels=labels, classes=task.CLASSES)


@app.train()
def train(message: Message, context: Context) -> Message:
    """A few steps of training. The upload fails with this client's probability."""
    client, clients = who(context)
    config = context.run_config
    round_ = message.content.config_records["config"]["server-round"]
    assert isinstance(round_, int)
    generator = np.random.default_rng([int(config["seed"]), client, round_])
    rates = [float(rate) for rate in str(config["failure-rates"]).split(",")]
    if generator.random() < rates[client % len(rates)]:
        raise ConnectionError("the upload was lost")
    images, labels = task.client_data(client, clients)
    rate = float(config["rate"])
    correction = Correction(message, steps=int(config["local-steps"]), rate=rate)
    model, loss = task.train(
        message.content.array_records["arrays"].to_numpy_ndarrays(),
        images,
        labels,
        correction.steps,
        int(config["batch"]),
        rate,
        generator,
        after_step=correction.add,  # does nothing unless the server sent a correction
    )
    metrics = MetricRecord({"num-examples": len(labels), "loss": loss})
    return correction.reply(RecordDict({"arrays": ArrayRecord(model), "metrics": metrics}))
