"""A simulated wireless network under any Flower app, so that failures can be tried before they happen.

Both ways lose the same uploads: those for which :meth:`fedcote.Network.arrives` says no, by the
round and attempt that the message names and the client's number. Clients train all the same, as
they do where uploads are really lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flwr.app import Context, Error, Message
from flwr.serverapp import Grid

from ._network import Network

#: In the configuration of a training message: how often its round was drawn before, from 0.
ATTEMPT = "fedcote-attempt"

#: The error of an upload that is lost: Flower's code for a reply that is not available.
LOST, REASON = 4, "the upload was lost"


def _arrives(network: Network, message: Message, client: int) -> bool:
    """Whether the reply to this message arrives; only training is lost."""
    if message.metadata.message_type.partition(".")[0] != "train":
        return True
    told: dict[str, Any] = {}
    for config in message.content.config_records.values():
        told.update(config)
    if "server-round" not in told:
        raise ValueError("wireless: the message does not name its round, as server-round")
    if not 0 <= client < network.clients:
        raise ValueError(
            f"wireless: client {client} is none of the {network.clients} of the network"
        )
    # Flower counts rounds from 1.
    round_ = max(0, int(told["server-round"]) - 1)
    return network.arrives(round_, client, 0, int(told.get(ATTEMPT, 0)))


def wireless_mod(
    network: Network, client_key: str = "partition-id"
) -> Callable[[Message, Context, Callable[[Message, Context], Message]], Message]:
    """A mod for a ClientApp that loses uploads as the network does.

    ``ClientApp(mods=[wireless_mod(fedcote.Network(20, seed=1))])``, or only
    ``@app.train(mods=[…])``. ``client_key`` is the key of the node's configuration that has the
    client's number, from 0.
    """

    def mod(
        message: Message, context: Context, call_next: Callable[[Message, Context], Message]
    ) -> Message:
        arrives = True
        if message.metadata.message_type.partition(".")[0] == "train":
            if client_key not in context.node_config:
                raise ValueError(
                    f"wireless_mod: the node's configuration has no {client_key}: start it with "
                    f"--node-config '{client_key}=0', a number for each client"
                )
            arrives = _arrives(network, message, int(context.node_config[client_key]))
        reply = call_next(message, context)
        return reply if arrives else Message(Error(LOST, REASON), reply_to=message)

    return mod


class WirelessGrid(Grid):
    """A grid that loses uploads as the network does: ``strategy.start(WirelessGrid(grid, network), …)``.

    Parameters
    ----------
    grid
        The grid that the ServerApp got.
    network
        Who fails when.
    clients
        The number of each node, from 0. Default: in the order of their ids when they are first
        seen, which is another one in every run; to compare runs, use :func:`wireless_mod`.
    """

    def __init__(
        self, grid: Grid, network: Network, clients: Mapping[int, int] | None = None
    ) -> None:
        self._grid, self._network = grid, network
        self._clients = None if clients is None else dict(clients)
        self._seen: dict[int, int] = {}
        #: Messages of which the reply is lost.
        self._lost: dict[str, Message] = {}

    def _number(self, node: int) -> int:
        if self._clients is not None:
            if node not in self._clients:
                raise ValueError(f"wireless: clients= has no number for node {node}")
            return self._clients[node]
        if node not in self._seen:
            for new in sorted({*self._grid.get_node_ids(), node} - self._seen.keys()):
                self._seen[new] = len(self._seen)
        return self._seen[node]

    def _lose(self, messages: list[Message]) -> list[Message]:
        """The messages whose replies are lost."""
        return [
            message
            for message in messages
            if not _arrives(self._network, message, self._number(message.metadata.dst_node_id))
        ]

    def _replies(self, replies: Iterable[Message]) -> list[Message]:
        found = []
        for reply in replies:
            lost = self._lost.pop(reply.metadata.reply_to_message_id, None)
            failed = lost is not None and not reply.has_error()
            found.append(Message(Error(LOST, REASON), reply_to=lost) if failed and lost else reply)
        return found

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """As of the grid; lost replies are errors."""
        messages = list(messages)
        lost = self._lose(messages)
        replies = self._grid.send_and_receive(messages, timeout=timeout)
        # Messages have their ids once they were sent.
        self._lost.update({message.metadata.message_id: message for message in lost})
        return self._replies(replies)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """As of the grid."""
        messages = list(messages)
        lost = {id(message) for message in self._lose(messages)}
        ids = list(self._grid.push_messages(messages))
        pairs = zip(messages, ids, strict=True)
        self._lost.update({key: message for message, key in pairs if id(message) in lost})
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """As of the grid; lost replies are errors."""
        return self._replies(self._grid.pull_messages(message_ids))

    def get_node_ids(self) -> Iterable[int]:
        """As of the grid."""
        return self._grid.get_node_ids()

    def set_run(self, *args: Any, **kwargs: Any) -> Any:
        """As of the grid."""
        return self._grid.set_run(*args, **kwargs)

    @property
    def run(self) -> Any:
        """As of the grid."""
        return self._grid.run

    def create_message(self, *args: Any, **kwargs: Any) -> Any:
        """As of the grid."""
        return self._grid.create_message(*args, **kwargs)
