"""What clients say of themselves: names, labels, metrics, errors; odd ones and hostile ones."""

import copy
import logging
import pickle

import numpy as np
import oracles
import pytest

pytest.importorskip("flwr")

from fake_grid import FakeGrid, initial  # noqa: E402
from flwr.app import (  # noqa: E402
    Array,
    ArrayRecord,
    ConfigRecord,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.serverapp.strategy import FedAvg  # noqa: E402

import fedcote  # noqa: E402
from fedcote._report import short  # noqa: E402
from fedcote.flower import FedCote  # noqa: E402

LABELS = oracles.instance()[0]
FEW = dict(selected=4, seed=3, fraction_evaluate=0.0)


def train(strategy, grid, rounds=5, **options):
    return strategy.start(grid, initial(), num_rounds=rounds, timeout=30, **options)


class Answers(FakeGrid):
    """Clients that answer the query as they are told: ``answers`` by client."""

    answers: dict = {}

    def _query(self, message, client):
        reply = super()._query(message, client)
        answer = self.answers.get(client)
        if isinstance(answer, Exception):
            return Message(Error(6, str(answer)), reply_to=message)
        if answer is not None:
            reply.content["fedcote"] = ConfigRecord(answer)
        return reply


@pytest.mark.parametrize(
    "labels", [[7], [1] * 40_000, [], [float("nan")] * 4, [-1.0, 2.0, 3.0, 4.0]]
)
@pytest.mark.parametrize("classes", [None, 4])
def test_one_client_does_not_decide_the_number_of_classes(labels, classes):
    """Regression: the first answer decided; 40,000 entries ended the process, one entry disabled
    labels for all others.
    """
    strategy, grid = FedCote(**FEW, classes=classes), Answers(LABELS)
    grid.answers = {0: {"name": "0", "labels": labels}}
    train(strategy, grid, rounds=2)
    assert strategy.selector.classes == LABELS.shape[1] == 4
    counts = np.reshape(strategy.selector.state()["core"]["counts"], (-1, 4))
    told = dict(zip(strategy.selector.clients, counts, strict=True))
    for client in range(1, 6):
        np.testing.assert_array_equal(told[str(client)], LABELS[client])


@pytest.mark.parametrize("hostile", [0, 1])
def test_a_tie_of_the_first_clients_decides_nothing(tmp_path, caplog, hostile):
    """Regression: of two first clients that disagree the lower node decided how many classes there
    are for good; labels of all others were refused.
    """
    options = dict(FEW, state_file=tmp_path / "state.json")
    strategy, grid = FedCote(**options), Answers(LABELS)
    grid.answers = {hostile: {"name": str(hostile), "labels": [7]}}
    late = set(grid.nodes[2:])
    grid.present -= late
    train(strategy, grid, rounds=1)
    assert not strategy.selector.classes
    assert "2 clients told their labels and do not agree" in caplog.text
    assert "NOBODY" not in caplog.text
    # What was told is kept over a restart, and used when more have come.
    grid.present |= late
    more = FedCote(**options)
    train(more, grid, rounds=2)
    assert more.selector.classes == 4 and not more.directory.undecided
    counts = np.reshape(more.selector.state()["core"]["counts"], (-1, 4))
    told = dict(zip(more.selector.clients, counts, strict=True))
    np.testing.assert_array_equal(told[str(1 - hostile)], LABELS[1 - hostile])


def test_labels_that_wait_are_used_when_it_is_said_how_many_there_are(tmp_path):
    """Regression: what was told before a restart with classes= was lost."""
    options = dict(FEW, state_file=tmp_path / "state.json")
    grid = Answers(LABELS)
    grid.answers = {0: {"name": "0", "labels": [7]}}
    grid.present -= set(grid.nodes[2:])
    train(FedCote(**options), grid, rounds=1)
    strategy = FedCote(**options, classes=4)
    train(strategy, grid, rounds=2)
    assert not strategy.directory.undecided
    counts = np.reshape(strategy.selector.state()["core"]["counts"], (-1, 4))
    told = dict(zip(strategy.selector.clients, counts, strict=True))
    np.testing.assert_array_equal(told["1"], LABELS[1])


def test_labels_that_wait_go_with_the_name(tmp_path):
    """Regression: a client that got its name later left a ghost with the labels."""
    strategy, grid = FedCote(**FEW), Answers(LABELS)
    grid.answers = {0: {"name": "1", "labels": [7]}}
    late = set(grid.nodes[2:])
    grid.present -= late
    train(strategy, grid, rounds=1)
    # The one that had the name leaves.
    holder = next(n for n, name in strategy.directory.names.items() if name == "1")
    grid.present.discard(holder)
    grid.present |= late
    train(strategy, grid, rounds=2)
    assert strategy.selector.classes == 4
    assert set(strategy.selector.clients) == set("12345")


def test_the_only_answer_decides_for_nobody_else():
    """Regression: one client that answers while the others start decided the number of classes."""
    strategy, grid = FedCote(**FEW), Answers(LABELS)
    grid.mute = {str(client) for client in range(1, 6)}
    grid.answers = {0: {"name": "0", "labels": [7]}}
    train(strategy, grid, rounds=1)
    assert not strategy.selector.classes
    grid.mute = set()
    train(strategy, grid, rounds=2)
    assert strategy.selector.classes == 4


def test_a_given_number_of_classes_is_kept_to():
    grid = Answers(LABELS)
    grid.answers = {client: {"name": str(client), "labels": [1, 2]} for client in range(5)}
    strategy = FedCote(**FEW, classes=4)
    train(strategy, grid, rounds=1)
    assert strategy.selector.classes == 4  # of the only client that told four
    for wrong in (0, 5000):
        with pytest.raises(ValueError, match="classes"):
            FedCote(classes=wrong)


def in_groups(grid, groups):
    """The answers of clients that say which group they are in."""
    told = lambda client: {"name": str(client), "labels": grid.labels[client]}  # noqa: E731
    return {client: told(client) | {"group": group} for client, group in groups.items()}


def test_clients_say_which_group_they_fail_with(tmp_path, caplog):
    options = dict(FEW, state_file=tmp_path / "state.json")
    down = {"ap": 0.4, "cell": 0.3}
    strategy, grid = FedCote(**options, groups=down), Answers(LABELS)
    grid.answers = in_groups(grid, {0: "ap", 1: "ap", 2: "cell", 3: "cellar"})
    for client in range(6):
        strategy.selector.set_failure(str(client), 0.45 + client / 20)
    train(strategy, grid, rounds=2)
    assert "client 3 says it is in group cellar, which is none of groups=" in caplog.text
    group = ["ap", "ap", "cell", None, None, None]

    def expected(strategy, down):
        """What these clients lead to, by the function that is told everything at once."""
        found, names = strategy.selector.solution(), [str(client) for client in range(6)]
        assert found.ids == tuple(names)
        up = np.array([1 - down.get(name, 0.0) for name in group])
        own = np.maximum(0.0, 1 - (1 - np.array(found.failure)) / up)
        drawn = dict(selected=4, uploads="per-client")
        known = fedcote.evaluate(LABELS, own, found.selection, group=group, groups=down, **drawn)
        alone = fedcote.evaluate(LABELS, known.failure, found.selection, **drawn)
        # A group of one is a client that fails more often.
        together = any(name and group.count(name) > 1 for name in group)
        difference = np.abs(known.appearance - alone.appearance).max()
        assert difference > 1e-5 if together else difference < 1e-12
        assert not found.warnings and not known.warnings
        np.testing.assert_allclose(found.appearance, known.appearance, atol=1e-9)

    train(strategy, grid, rounds=3)
    expected(strategy, down)
    # After a restart with another measurement, nobody is asked again.
    grid.queries.clear()
    again = FedCote(**options, groups=down | {"ap": 0.1})
    train(again, grid, rounds=4)
    assert again.selector.groups == {"ap": 0.1, "cell": 0.3} and not grid.queries
    expected(again, again.selector.groups)
    # A group that a client named earlier is known from now on.
    more = FedCote(**options, groups=again.selector.groups | {"cellar": 0.2})
    train(more, grid, rounds=5)
    group[3] = "cellar"
    expected(more, more.selector.groups)
    assert not grid.queries
    # Another node with the name of a client that is gone may be elsewhere.
    grid.present.discard(grid.nodes[0])
    grid.nodes.append(grid.nodes[-1] + 1)
    grid.present.add(grid.nodes[-1])
    grid.names.append("0")
    grid.labels.append(grid.labels[0])
    grid.answers[6] = {"name": "0", "labels": grid.labels[0], "group": "nowhere"}
    train(more, grid, rounds=6)
    group[0] = None
    expected(more, more.selector.groups)
    for lost in (None, {"ap": 0.1, "cell": 0.3}):
        with pytest.raises(ValueError, match="state: was saved with group '(ap|cellar)', which"):
            train(FedCote(**options, groups=lost), grid, rounds=7)


def test_groups_are_refused_where_they_change_nothing():
    with pytest.raises(ValueError, match="groups: 'ap' must be down with a probability"):
        FedCote(groups={"ap": 2})
    for aggregation in ("memory", "control"):
        with pytest.raises(ValueError, match='groups: are for aim="appearance"'):
            FedCote(aggregation=aggregation, groups={"ap": 0.2})
        FedCote(aggregation=aggregation, aim="appearance", groups={"ap": 0.2})


def test_groups_that_would_mislead_are_not_taken():
    strategy, grid = FedCote(**FEW, groups={"ap": 0.5}), Answers(LABELS)
    grid.answers = in_groups(grid, {0: "two\nlines", 1: "x" * 300, 2: "ap"})
    train(strategy, grid, rounds=1)
    assert {"0", "1"}.isdisjoint(strategy.selector.clients) and "2" in strategy.selector.clients


def test_a_connected_clients_name_cannot_be_taken_over():
    """Regression: a second node with a client's name got its draws, memory and labels."""
    strategy = FedCote(**FEW, aggregation="memory")
    grid = FakeGrid(LABELS)
    thief, old = grid.nodes[5], grid.nodes[2]
    grid.present.discard(thief)
    train(strategy, grid, rounds=2)
    grid.names[5] = "2"
    grid.present.add(thief)
    grid.asked.clear()
    strategy.begin(30)
    nodes = strategy.directory.nodes(grid, grid.present)
    assert nodes["2"] == old and nodes[f"node-{thief}"] == thief
    train(strategy, grid, rounds=4)
    assert strategy.directory.names[old] == "2"
    # The one that had the name leaves, as when a client was restarted: now it is the other's.
    saved = strategy.directory.state()
    strategy.directory.restore(saved)
    grid.present.discard(old)
    result = train(strategy, grid, rounds=3)
    assert strategy.directory.nodes(grid, grid.present)["2"] == thief
    assert f"node-{thief}" not in strategy.selector.clients
    assert f"node-{thief}" not in strategy.memory.updates
    assert np.isfinite(result.arrays["w"].numpy()).all()


def test_the_grid_is_asked_for_its_nodes_once_a_round():
    """Regression: it was asked three times, for those who left, for the long gone, and for the draw."""
    asked = []

    class Counted(FakeGrid):
        def get_node_ids(self):
            asked.append(len(self.asked))
            return super().get_node_ids()

    train(FedCote(**FEW), Counted(LABELS), rounds=3)
    assert len(asked) == len(set(asked)) == 3


@pytest.mark.parametrize("name", ["node-12", "x" * 300, "two\nlines", "\x1b[31m"])
def test_names_that_would_mislead_are_not_taken(name):
    strategy, grid = FedCote(**FEW), Answers(LABELS)
    grid.answers = {3: {"name": name, "labels": [1, 1, 1, 1]}}
    train(strategy, grid, rounds=1)
    assert name not in strategy.selector.clients
    assert f"node-{grid.nodes[3]}" in strategy.directory.nodes(grid, grid.present)


def test_when_nobody_tells_labels_a_warning_says_why(caplog):
    """Regression: an app-wide fixedclipping_mod refused every query, and training went on silently."""
    strategy, grid = FedCote(**FEW), Answers(LABELS)
    grid.answers = {client: ValueError("fixedclipping_mod is designed to work with a single ArrayRecord")
                    for client in range(6)}  # fmt: skip
    with caplog.at_level(logging.INFO, logger="flwr"):
        train(strategy, grid, rounds=1)
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert any("NOBODY TOLD ITS LABELS" in w and "@app.train(mods=[…])" in w for w in warned)
    assert any("6 clients do not tell their labels: fixedclipping_mod" in w for w in warned)
    assert strategy.history[0]["arrived"]


def test_mods_of_training_alone_leave_the_query_alone():
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.clientapp.mod import fixedclipping_mod

    class Apps(FakeGrid):
        def __init__(self, labels):
            super().__init__(labels)
            self.app = ClientApp()
            self.app.query("label_histogram")(
                lambda message, context: FakeGrid._query(
                    self, message, self.nodes.index(context.node_id)
                )
            )
            self.app.train(mods=[fixedclipping_mod])(
                lambda message, context: FakeGrid._train(
                    self, message, self.nodes.index(context.node_id)
                )
            )

        def _train(self, message, client):
            context = Context(1, self.nodes[client], {}, RecordDict(), {})
            return self.app(message, context)

        _query = _train

    strategy = FedCote(**FEW, clip=3.0, noise_multiplier=1e-9, max_share=1.0)
    # Without the array of no dimensions, which the mods of Flower 1.21 cannot handle.
    arrays = ArrayRecord({"w": Array(np.zeros(4, np.float32))})
    strategy.start(Apps(LABELS), arrays, num_rounds=1, timeout=30)
    assert strategy.selector.classes == 4
    assert strategy.history[0]["arrived"] and not strategy.history[0]["failed"]


def odd_metrics():
    return {
        "nan-weight": {"num-examples": float("nan"), "accuracy": 1.0},
        "negative-weight": {"num-examples": -5, "accuracy": 1.0},
        "no-weight": {"accuracy": 1.0},
        "list-weight": {"num-examples": [1, 2], "accuracy": 1.0},
        "other-keys": {"num-examples": 10, "loss": 1.0},
        "list": {"num-examples": 10, "accuracy": [1.0, 2.0]},
        "nan": {"num-examples": 10, "accuracy": float("nan")},
        "infinite": {"num-examples": 10, "accuracy": float("inf")},
        "nothing": None,
        "two": "two",
        "error": "error",
    }


@pytest.mark.parametrize("odd", odd_metrics())
def test_one_odd_evaluate_reply_does_not_end_the_federation(odd):
    """Regression: 7 of 10 such replies left start as exceptions, or made the mean NaN."""

    class Evaluating(FakeGrid):
        def _train(self, message, client):
            if message.metadata.message_type != "evaluate":
                return super()._train(message, client)
            metrics = {"num-examples": 10, "accuracy": 0.5}
            if client == 2:
                metrics = odd_metrics()[odd]
            if metrics == "error":
                return Message(Error(2, "Traceback\n" + "x" * 5000), reply_to=message)
            records = {} if metrics is None else {"metrics": MetricRecord(metrics)} if metrics != "two" else {
                "a": MetricRecord({"num-examples": 1}), "b": MetricRecord({"num-examples": 1}),
            }  # fmt: skip
            return Message(RecordDict(records), reply_to=message)

    result = train(FedCote(selected=4, seed=3), Evaluating(LABELS), rounds=2)
    assert {r: m["accuracy"] for r, m in result.evaluate_metrics_clientapp.items()} == {
        1: 0.5,
        2: 0.5,
    }


def test_a_silent_client_is_counted_every_time():
    """Regression: silence was skipped at the next draw, however late: 89 of 710 wrongly, and the
    estimate was 0.73 for a client that fails four times out of five.
    """
    generator = np.random.default_rng(1)
    asked = {True: 0, False: 0}

    def behave(name, round_):
        if name != "3":
            return None
        silent = generator.random() < 0.8
        asked[silent] += 1
        return "silent" if silent else None

    strategy = FedCote(
        selected=4, seed=3, fraction_evaluate=0.0, threshold=0.99,
        estimator={"kind": "beta", "retention": 1.0},
    )  # fmt: skip
    seen = []
    observe = strategy.selector.observe
    strategy.selector.observe = lambda name, arrived: (
        seen.append((name, arrived)),
        observe(name, arrived),
    )
    train(strategy, FakeGrid(LABELS, behave), rounds=1000)
    assert seen.count(("3", False)) == asked[True] > 400
    assert seen.count(("3", True)) == asked[False]
    total = asked[True] + asked[False]
    deviation = np.sqrt(0.8 * 0.2 / total)
    assert abs(strategy.selector.failure("3") - 0.8) < 5 * deviation


RAY = """<class 'ray.exceptions.RayTaskError(ClientAppException)'>:<'ray::ClientAppActor.run() (pid=1)
  File "a.py", line 1, in run
    raise ConnectionError("the upload was lost")
ConnectionError: the upload was lost

The above exception was the direct cause of the following exception:

ray::ClientAppActor.run() (pid=1)
flwr.client.client_app.ClientAppException:
Exception ConnectionError occurred. Message: the upload was lost'>
"""


def test_a_failure_is_one_line(caplog):
    """Regression: a traceback of 1,291 characters for each failure on Ray."""
    line = "Exception ConnectionError occurred. Message: the upload was lost"
    assert short(RAY) == line
    assert len(short("y" * 5000)) == 200
    assert short(None) == short("\n \n") == "no reason given"
    assert short("a\x1b[31mb") == "a[31mb"

    class Tracebacks(FakeGrid):
        def _train(self, message, client):
            return (
                Message(Error(2, RAY), reply_to=message)
                if client == 1
                else super()._train(message, client)
            )

    strategy = FedCote(**{**FEW, "selected": 12})
    with caplog.at_level(logging.INFO, logger="flwr"):
        train(strategy, Tracebacks(LABELS), rounds=3)
    assert not any("\n" in record.getMessage().strip() for record in caplog.records
                   if "fedcote" in record.getMessage())  # fmt: skip
    reasons = {report["failed"]["1"] for report in strategy.history if "1" in report["failed"]}
    assert reasons == {f"error 2: {line}"}


def test_arguments_may_stand_in_the_order_of_fedavg():
    """Regression: FedCote(0.5) was a TypeError where FedAvg(0.5) works."""
    ours, theirs = FedCote(0.5, 0.25, 3, 4, 5), FedAvg(0.5, 0.25, 3, 4, 5)
    for name, value in vars(theirs).items():
        assert getattr(ours, name) == value


def test_a_key_that_the_app_does_not_know_is_the_servers_mistake(caplog):
    """Regression: all clients were blamed, and the model never changed, without a word."""

    class Strict(FakeGrid):
        def _train(self, message, client):
            try:
                message.content["arrays"]
            except KeyError as missing:
                return Message(Error(2, f"KeyError: 'weights' {missing}"), reply_to=message)
            return super()._train(message, client)

    strategy = FedCote(**FEW, arrayrecord_key="weights", max_attempts=1)
    with caplog.at_level(logging.ERROR, logger="flwr"):
        train(strategy, Strict(LABELS), rounds=2)
    assert (strategy.selector.failures() == 0.5).all()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(said) == 1 and "arrayrecord_key=" in said[0]


def test_states_beside_each_other_do_not_share_files(tmp_path):
    """Regression: fed.v1 and fed.v2 shared a model file, and resuming one gave the other's model."""
    models = {}
    for name, seed in (("fed.v1", 1), ("fed.v2", 5)):
        strategy = FedCote(**{**FEW, "seed": seed}, state_file=tmp_path / name)
        models[name] = train(strategy, FakeGrid(LABELS), rounds=3).arrays["w"].numpy()
    for name, seed in (("fed.v1", 1), ("fed.v2", 5)):
        again = FedCote(**{**FEW, "seed": seed}, state_file=tmp_path / name)
        np.testing.assert_array_equal(
            train(again, FakeGrid(LABELS), rounds=3).arrays["w"].numpy(), models[name]
        )
    assert (models["fed.v1"] != models["fed.v2"]).any()


@pytest.mark.parametrize("how", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("aggregation", ["mean", "memory", "control"])
def test_strategies_can_be_copied(how, aggregation):
    """Regression: FedCote could be neither pickled nor copied."""
    behave = lambda name, round_: 2 if (int(name) + round_) % 3 == 0 else None  # noqa: E731
    strategy = FedCote(**FEW, aggregation=aggregation, server_optimizer="adam")
    first = train(strategy, FakeGrid(LABELS, behave), rounds=3)
    other = how(strategy)
    for one in (strategy, other):
        one.begin(30)
    assert other.history == strategy.history
    messages = [
        one.configure_train(4, first.arrays, ConfigRecord(), FakeGrid(LABELS))
        for one in (strategy, other)
    ]
    assert [m.metadata.dst_node_id for m in messages[0]] == [
        m.metadata.dst_node_id for m in messages[1]
    ]
    models = []
    for one, sent in zip((strategy, other), messages, strict=True):
        arrays, _ = one.aggregate_train(4, FakeGrid(LABELS).send_and_receive(sent))
        models.append(arrays["w"].numpy())
    np.testing.assert_array_equal(*models)
