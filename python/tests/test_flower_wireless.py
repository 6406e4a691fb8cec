"""A wireless network under any Flower app: the client's mod and the server's grid."""

import pickle

import numpy as np
import oracles
import pytest

pytest.importorskip("flwr")

from fake_grid import FakeGrid, initial  # noqa: E402
from flwr.app import Context, RecordDict  # noqa: E402
from flwr.clientapp import ClientApp  # noqa: E402
from flwr.serverapp.strategy import FedAvg  # noqa: E402

import fedcote  # noqa: E402
from fedcote.flower import FedCote, WirelessGrid, wireless_mod  # noqa: E402

LABELS = oracles.instance()[0]
NETWORK = fedcote.Network(6, kind="fixed", failure=[0.0, 0.2, 0.5, 0.8, 0.9, 1.0], seed=5)


class Apps(FakeGrid):
    """Every message goes through a ClientApp with mods."""

    def __init__(self, labels, mods):
        super().__init__(labels)
        self.app = ClientApp(mods=mods)
        self.app.train()(
            lambda message, context: super(Apps, self)._train(message, self._who(context))
        )
        query = lambda message, context: super(Apps, self)._query(message, self._who(context))  # noqa: E731
        self.app.query("label_histogram")(query)

    def _who(self, context):
        return self.nodes.index(context.node_id)

    def _train(self, message, client):
        config = {"partition-id": client, "num-partitions": 6}
        context = Context(1, self.nodes[client], config, RecordDict(), {})
        return self.app(message, context)

    _query = _train


def strategies():
    return [
        FedAvg(fraction_evaluate=0.0, min_evaluate_nodes=0),
        FedCote(selected=6, seed=1, fraction_evaluate=0.0, max_attempts=4),
        FedCote(selected=6, seed=1, fraction_evaluate=0.0, aggregation="memory"),
    ]


def asked(strategy, grid):
    """The model, and which uploads arrived, by round, client and attempt."""
    sent, arrived = [], []
    inner = grid.send_and_receive

    def send(messages, *, timeout=None):
        messages = list(messages)
        replies = list(inner(messages, timeout=timeout))
        by_id = {}
        for message in messages:
            if message.metadata.message_type == "train":
                config = message.content["config"]
                key = (config["server-round"], message.metadata.dst_node_id,
                       config.get("fedcote-attempt", 0))  # fmt: skip
                by_id[message.metadata.message_id] = key
                sent.append(key)
        for reply in replies:
            if not reply.has_error() and reply.metadata.reply_to_message_id in by_id:
                arrived.append(by_id[reply.metadata.reply_to_message_id])
            elif reply.has_error():
                assert (reply.error.code, reply.error.reason) == (4, "the upload was lost")
        return replies

    grid.send_and_receive = send
    result = strategy.start(grid, initial(), num_rounds=12, timeout=30)
    return result.arrays["w"].numpy(), sent, set(arrived)


@pytest.mark.parametrize("which", range(3))
def test_mod_and_grid_lose_the_same_uploads(which):
    bare = FakeGrid(LABELS)
    by_grid = asked(strategies()[which], WirelessGrid(bare, NETWORK))
    by_mod = asked(strategies()[which], Apps(LABELS, [wireless_mod(NETWORK)]))
    assert by_grid[2] == by_mod[2]
    # FedAvg adds up in the order of its own draws, which have no seed: the last digit may differ.
    np.testing.assert_allclose(by_grid[0], by_mod[0], rtol=0 if which else 1e-6)
    model, sent, arrived = by_grid
    for round_, node, attempt in sent:
        client = bare.nodes.index(node)
        wanted = NETWORK.arrives(round_ - 1, client, 0, attempt)
        assert ((round_, node, attempt) in arrived) == wanted
    assert 0 < len(arrived) < len(sent)
    if which:
        assert len(bare.asked) == len(sent)  # clients train all the same
        assert len(bare.queries) == 6  # queries are not lost


def test_every_attempt_is_a_new_chance():
    network = fedcote.Network(2, kind="fixed", failure=[0.8, 0.8], seed=1)
    strategy = FedCote(selected=2, seed=1, fraction_evaluate=0.0, max_attempts=50)
    _, sent, arrived = asked(strategy, WirelessGrid(FakeGrid([[1, 1], [1, 1]]), network))
    assert max(attempt for *_, attempt in sent) > 2
    assert all(report["arrived"] for report in strategy.history)


def test_push_and_pull():
    class Mailbox(FakeGrid):
        def push_messages(self, messages):
            messages = list(messages)
            self.replies = {
                reply.metadata.reply_to_message_id: reply
                for reply in FakeGrid.send_and_receive(self, messages)
            }
            return [message.metadata.message_id for message in messages]

        def pull_messages(self, message_ids):
            return [self.replies[key] for key in message_ids]

    grid = WirelessGrid(Mailbox(LABELS), NETWORK)
    strategy = FedCote(selected=12, seed=1, fraction_evaluate=0.0)
    grid.send_and_receive = lambda messages, timeout=None: grid.pull_messages(
        grid.push_messages(messages)
    )
    strategy.start(grid, initial(), num_rounds=5, timeout=30)
    for report in strategy.history:
        for name in report["drawn"]:
            wanted = NETWORK.arrives(report["round"] - 1, int(name), 0, report["attempts"] - 1)
            assert (name in report["arrived"]) == wanted


def test_wrong_uses_say_so():
    with pytest.raises(ValueError, match="is none of the 2 of the network"):
        small = fedcote.Network(2, kind="fixed", failure=[0.0, 0.0])
        asked(
            FedAvg(fraction_evaluate=0.0, min_evaluate_nodes=0),
            WirelessGrid(FakeGrid(LABELS), small),
        )
    with pytest.raises(ValueError, match="has no number for node"):
        asked(
            FedAvg(fraction_evaluate=0.0, min_evaluate_nodes=0),
            WirelessGrid(FakeGrid(LABELS), NETWORK, clients={}),
        )
    grid = Apps(LABELS, [wireless_mod(NETWORK, client_key="number")])
    with pytest.raises(ValueError, match="--node-config 'number=0'"):
        asked(FedAvg(fraction_evaluate=0.0, min_evaluate_nodes=0), grid)


def test_networks_travel():
    """Regression: a Network in a ClientApp made every client fail on Ray, where apps are pickled."""
    for network in (NETWORK, fedcote.Network(6, mobility="walk", seed=3)):
        again = pickle.loads(pickle.dumps(network))
        for round_ in range(5):
            assert (again.failures(round_) == network.failures(round_)).all()
            for client in range(6):
                assert again.arrives(round_, client) == network.arrives(round_, client)
