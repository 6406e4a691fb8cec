"""Which node is which client: names and label histograms, asked for once."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from ._selector import Selector
from .client import RECORD

log = logging.getLogger("flwr")

QUERY = "query.label_histogram"


def message(content: RecordDict, node: int, kind: str, timeout: float | None) -> Message:
    """A message that does not live longer than somebody waits for the reply."""
    # A time to live of 0 would mean twelve hours.
    ttl = None if timeout is None else max(1.0, float(timeout))
    return Message(content, node, kind, ttl=ttl)


class Directory:
    """The clients' names by node. Nodes change when a client restarts, names do not."""

    def __init__(self, selector: Selector, timeout: float, attempts: int) -> None:
        self.selector = selector
        self.timeout = timeout
        self.attempts = attempts
        self.names: dict[int, str] = {}
        self.asked: dict[int, int] = {}

    def nodes(self, grid: Grid, at_least: int) -> dict[str, int]:
        """The nodes that can be asked now, by the clients' names; waits for enough of them."""
        while len(present := list(grid.get_node_ids())) < max(1, at_least):
            log.info("fedcote: %d nodes of %d are here", len(present), at_least)
            time.sleep(1)
        unknown = [
            node
            for node in sorted(present)
            if node not in self.names and self.asked.get(node, 0) < self.attempts
        ]
        if unknown:
            self._introduce(grid, unknown)
        nodes = {f"node-{node}": node for node in present if node not in self.names}
        # Of two nodes with one name the later is the one that was restarted.
        here = set(present)
        nodes.update({name: node for node, name in self.names.items() if node in here})
        return nodes

    def _introduce(self, grid: Grid, unknown: list[int]) -> None:
        """Asks nodes for their names and label histograms."""
        messages = [message(RecordDict(), node, QUERY, self.timeout) for node in unknown]
        replies = list(grid.send_and_receive(messages, timeout=self.timeout))
        nodes = {sent.metadata.message_id: sent.metadata.dst_node_id for sent in messages}
        for node in unknown:
            self.asked[node] = self.asked.get(node, 0) + 1
        for reply in replies:
            node = nodes.get(reply.metadata.reply_to_message_id, -1)
            if node < 0:
                continue
            try:
                name = self._learn(node, reply)
            except Exception as problem:  # a client may answer anything
                log.warning("fedcote: node %d does not tell its labels: %s", node, problem)
                continue
            if name in self.names.values():
                log.info("fedcote: client %s is now node %d", name, node)
            self.names[node] = name
        told = sum(node in self.names for node in unknown)
        log.info("fedcote: %d of %d newcomers told their labels", told, len(unknown))

    def _learn(self, node: int, reply: Message) -> str:
        if reply.has_error():
            raise ValueError(reply.error.reason)
        answer: Any = reply.content[RECORD]
        name = str(answer.get("name", f"node-{node}"))
        labels = answer["labels"]
        if sum(labels):  # noise may have left nothing
            self.selector.set_labels(name, labels)
        return name

    def state(self) -> dict[str, Any]:
        """The directory as data that JSON can hold."""
        return {
            "names": {str(node): name for node, name in self.names.items()},
            "asked": {str(node): times for node, times in self.asked.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved :meth:`state`."""
        self.names = {int(node): str(name) for node, name in state["names"].items()}
        self.asked = {int(node): int(times) for node, times in state["asked"].items()}
