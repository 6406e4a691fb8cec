"""A Grid whose nodes are functions: a federation without processes."""

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from fedcote.client import CORRECTION, RECORD, Correction

try:  # newer versions make messages only inside a run
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
except ImportError:
    pass

#: Nodes' ids are random numbers of 64 bits.
FIRST_NODE = 2**63 + 11


class FakeGrid(Grid):
    """Clients ``names`` with label counts; ``behave(name, round)`` says what one does in a round.

    ``None`` trains, a number is the code of an error, "silent" never answers, "nan", "infinite",
    "shape", "dtype", "text", "huge", "huge-float64" and "empty" answer wrongly, bytes are what
    stands in place of an array, and a dictionary is what is said of the correction.
    """

    #: Local steps.
    steps = 2

    def __init__(self, labels, behave=lambda name, round: None, names=None, nodes=None):
        self.labels = [list(map(int, row)) for row in labels]
        self.names = names or [str(client) for client in range(len(labels))]
        self.nodes = nodes or [FIRST_NODE + 7 * client for client in range(len(labels))]
        self.present = set(self.nodes)
        self.behave = behave
        self.mute = set()  # clients that do not tell their labels
        self.queries, self.asked = [], []
        self.corrections = []  # what was sent of them: round, client, arrays
        self.pushed = 0

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, *args, **kwargs):
        raise NotImplementedError

    def push_messages(self, messages):
        raise NotImplementedError

    def pull_messages(self, message_ids):
        raise NotImplementedError

    def get_node_ids(self):
        return [node for node in self.nodes if node in self.present]

    def send_and_receive(self, messages, *, timeout=None):
        replies = []
        for message in messages:
            self.pushed += 1
            message.metadata.__dict__["_message_id"] = f"message-{self.pushed}"
            client = self.nodes.index(message.metadata.dst_node_id)
            kind = message.metadata.message_type
            reply = (self._query if kind.startswith("query") else self._train)(message, client)
            if reply is not None:
                replies.append(reply)
        return replies[::-1]  # replies come in any order

    def _query(self, message, client):
        assert message.metadata.message_type == "query.label_histogram"
        self.queries.append(self.names[client])
        if self.names[client] in self.mute:
            return Message(Error(2, "no such query"), reply_to=message)
        answer = ConfigRecord({"name": self.names[client], "labels": self.labels[client]})
        return Message(RecordDict({"fedcote": answer}), reply_to=message)

    def _train(self, message, client):
        name = self.names[client]
        round_ = message.content["config"]["server-round"]
        self.asked.append((round_, name))
        what = self.behave(name, round_)
        if what == "silent":
            return None
        if isinstance(what, int):
            reply = Message(Error(what, "as ordered"), reply_to=message)
            if what in (3, 5):  # Flower's own errors come from the server's node
                reply.metadata.__dict__["_src_node_id"] = 1
            return reply
        self.correction = Correction(message, self.steps, rate=0.5)
        if CORRECTION in message.content:
            self.corrections.append((round_, name, self.correction.arrays))
        model = {key: array.numpy() for key, array in message.content["arrays"].items()}
        model["w"] = self.learn(model["w"], client, round_)
        if what == "nan":
            model["w"][0] = np.nan
        if what == "shape":
            model["w"] = model["w"][:-1]
        if what == "infinite":
            model["w"][1] = -np.inf
        if what == "dtype":
            model["w"] = model["w"].astype(np.complex64)
        if what == "text":
            model["w"] = np.array(["a", "b", "c", "d"])
        if what == "huge":
            model["w"] = model["w"] * np.float32(1e30)
        if what == "huge-float64":
            model["w"] = model["w"].astype(np.float64) * 1e300
        if what == "empty":
            model = {}
        arrays = {key: Array(array) for key, array in model.items()}
        if isinstance(what, bytes):
            arrays["w"] = Array("float32", (4,), "numpy.ndarray", what)
        metrics = MetricRecord({"num-examples": 10 * (client + 1), "loss": float(client)})
        if what == "metrics":
            metrics["loss"] = [1.0, 2.0]
        content = RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics})
        reply = self.correction.reply(content)
        if isinstance(what, dict):
            reply.content[RECORD] = ConfigRecord(what)
        return reply

    def learn(self, model, client, round_):
        """What a client makes of the array "w"; ``self.correction`` is what it was asked to add."""
        return model + np.float32(1 + client)


def initial():
    """A model of two arrays."""
    arrays = {"w": np.zeros(4, np.float32), "steps": np.array(5, np.int64)}
    return ArrayRecord({key: Array(array) for key, array in arrays.items()})
