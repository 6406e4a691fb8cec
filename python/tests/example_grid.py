"""The clients of `examples/flower` in this process, without SuperLink and SuperNodes."""

import sys
from pathlib import Path

import fake_grid
from flwr.app import Context, Error, Message, RecordDict

try:
    import tomllib
except ImportError:  # Python 3.10, for which Flower brings it
    import tomli as tomllib

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/flower"
sys.path.insert(0, str(EXAMPLE))

from app import client  # noqa: E402


def settings():
    """The example's own."""
    return tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]


class ExampleGrid(fake_grid.FakeGrid):
    """Hands messages to the example's ClientApp."""

    def __init__(self, clients, config):
        super().__init__([[0]] * clients)
        self.contexts = [
            Context(
                run_id=1,
                node_id=node,
                node_config={"partition-id": number, "num-partitions": clients},
                state=RecordDict(),
                run_config=config,
            )
            for number, node in enumerate(self.nodes)
        ]

    def _train(self, message, number):
        try:
            return client.app(message, self.contexts[number])
        except ConnectionError as lost:
            return Message(Error(2, str(lost)), reply_to=message)

    _query = _train
