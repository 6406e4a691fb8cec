"""Which node is which client: names and label histograms, asked for once."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from ._report import short
from ._selector import MAX_CLASSES, Selector
from .client import RECORD

log = logging.getLogger("flwr")

QUERY = "query.label_histogram"

#: Nodes that are gone and still known by name. A client that comes back as another node says its name.
MOST_GONE = 10_000

#: The longest name of a client.
LONGEST_NAME = 200


def message(content: RecordDict, node: int, kind: str, timeout: float | None) -> Message:
    """A message that does not live longer than somebody waits for the reply."""
    # A time to live of 0 would mean twelve hours.
    ttl = None if timeout is None else max(1.0, float(timeout))
    return Message(content, node, kind, ttl=ttl)


def fallback(node: int) -> str:
    """What a node is called that has not told its name, or whose name is taken."""
    return f"node-{node}"


class Answer(NamedTuple):
    """What a client tells of itself."""

    name: str
    labels: list[float]
    group: str | None


class Directory:
    """The clients' names by node. Nodes change when a client restarts, names do not."""

    def __init__(
        self,
        selector: Selector,
        timeout: float,
        attempts: int,
        classes: int | None = None,
        newcomer_timeout: float = 10.0,
    ) -> None:
        if classes is not None and not 1 <= classes <= MAX_CLASSES:
            raise ValueError(f"classes: must be from 1 to {MAX_CLASSES}, is {classes}")
        if not newcomer_timeout > 0.0:
            raise ValueError(f"newcomer_timeout: must be positive, is {newcomer_timeout}")
        self.selector = selector
        self.timeout = timeout
        #: How long clients that come later are waited for at most, in seconds: one that is silent on
        #: purpose must not hold up every round for the time that the first ones get.
        self.newcomer_timeout = newcomer_timeout
        self.attempts = attempts
        self.classes = classes
        self.names: dict[int, str] = {}
        self.asked: dict[int, int] = {}
        #: Nodes that gave a name which another connected node has.
        self.claims: dict[int, str] = {}
        #: The groups that clients say they are in, by name, whether the selector knows these or not.
        self.groups: dict[str, str] = {}
        #: Labels that wait until enough clients agree on how many there are, by name.
        self.undecided: dict[str, list[float]] = {}
        #: How many did not agree when it was told last.
        self._warned = 0

    def present(self, grid: Grid, at_least: int) -> set[int]:
        """The nodes that are connected; waits for enough of them."""
        while len(here := set(grid.get_node_ids())) < max(1, at_least):
            log.info("fedcote: %d nodes of %d are here", len(here), at_least)
            time.sleep(1)
        return here

    def nodes(self, grid: Grid, here: set[int]) -> dict[str, int]:
        """The nodes that can be asked now, of those that are connected, by the clients' names."""
        unknown = [
            node
            for node in sorted(here)
            if node not in self.names and self.asked.get(node, 0) < self.attempts
        ]
        if unknown:
            self._introduce(grid, unknown, here)
        self._decide(alone=len(here) == 1)
        nodes = {fallback(node): node for node in sorted(here) if node not in self.names}
        nodes.update({name: node for node, name in self.names.items() if node in here})
        return nodes

    def retired(self, here: set[int]) -> list[str]:
        """Gives nodes the names that they claimed, once those who had them are gone.

        Returns what these nodes were called until now.
        """
        free = []
        held = self._held(here)
        for node, name in list(self.claims.items()):
            if node in here and name not in held:
                held.add(name)
                del self.claims[node]
                free.append(self.names[node])
                if (labels := self.undecided.pop(self.names[node], None)) is not None:
                    self.undecided[name] = labels
                if (group := self.groups.pop(self.names[node], None)) is not None:
                    self.groups[name] = group
                self.names[node] = name
                self.join(name)
                log.info("fedcote: client %s is now node %d", name, node)
        return free

    def pruned(self, here: set[int]) -> list[str]:
        """Forgets nodes that are long gone; returns the names that no node has any more."""
        gone = [node for node in self.names if node not in here]
        # In the order in which they came, and forgotten in that order: when others come by the
        # thousand, the names of early ones that are away go first.
        for node in gone[: max(0, len(gone) - MOST_GONE)]:
            self.claims.pop(node, None)
        free = {self.names.pop(node) for node in gone[: max(0, len(gone) - MOST_GONE)]}
        free -= set(self.names.values())
        for name in free:
            self.groups.pop(name, None)
            self.undecided.pop(name, None)
        absent = [node for node in self.asked if node not in here and node not in self.names]
        for node in absent:
            del self.asked[node]
        return sorted(free)

    def _held(self, here: set[int]) -> set[str]:
        """The names of connected nodes."""
        return {name for node, name in self.names.items() if node in here}

    def _introduce(self, grid: Grid, unknown: list[int], here: set[int]) -> None:
        """Asks nodes for their names and label histograms."""
        timeout = min(self.timeout, self.newcomer_timeout) if self.names else self.timeout
        messages = [message(RecordDict(), node, QUERY, timeout) for node in unknown]
        replies = list(grid.send_and_receive(messages, timeout=timeout))
        nodes = {sent.metadata.message_id: sent.metadata.dst_node_id for sent in messages}
        for node in unknown:
            self.asked[node] = self.asked.get(node, 0) + 1
        answers: dict[int, Answer] = {}
        reasons: Counter[str] = Counter()
        for reply in replies:
            node = nodes.get(reply.metadata.reply_to_message_id, -1)
            if node < 0:
                continue
            try:
                answers[node] = _answer(node, reply)
            except Exception as problem:  # a client may answer anything
                reasons[short(str(problem))] += 1
                log.debug("fedcote: node %d does not tell its labels: %s", node, problem)
        self._learn(answers, here)
        log.info("fedcote: %d of %d newcomers told their labels", len(answers), len(unknown))
        for reason, times in reasons.most_common(3):
            log.warning("fedcote: %d clients do not tell their labels: %s", times, reason)
        if not answers and not self.undecided and not self.selector.classes:
            log.warning(
                "fedcote: NOBODY TOLD ITS LABELS: only failures are corrected for, and names are "
                'lost at restarts. Does the ClientApp have @app.query("label_histogram")? Mods of '
                "the whole app (ClientApp(mods=[…])) may refuse queries: give them to "
                "@app.train(mods=[…])"
            )

    def _learn(self, answers: Mapping[int, Answer], here: set[int]) -> None:
        """Takes note of names, and of labels until it is known how many there are."""
        held, known = self._held(here), set(self.names.values())
        for node in sorted(answers):
            name, labels, group = answers[node]
            if name in held:
                self.claims[node] = name
                log.warning(
                    "fedcote: node %d calls itself %s, as another node does, which is connected: it "
                    "is called %s until that one leaves; give every client a name of its own",
                    node, name, fallback(node),
                )  # fmt: skip
                name = fallback(node)
            elif name in known:
                log.info("fedcote: client %s is now node %d", name, node)
            self.names[node] = name
            held.add(name)
            if group is not None:
                self.groups[name] = group
            self.join(name)
            self.undecided[name] = labels

    def _decide(self, alone: bool) -> None:
        """Uses the labels that were told, once it is known how many there are."""
        told = self.undecided
        classes = self.classes or self.selector.classes or _agreed(told, alone)
        if classes:
            self.undecided = {}
            for name, labels in told.items():
                self._label(name, labels, classes)
        elif told and len(told) != self._warned:
            self._warned = len(told)
            log.warning(
                "fedcote: %d clients told their labels and do not agree on how many there are: none "
                "is used until more have come; say it by classes=",
                len(told),
            )

    def _label(self, name: str, labels: list[float], classes: int) -> None:
        """Takes note of a client's labels, if they can be used."""
        if len(labels) != classes:
            log.warning(
                "fedcote: client %s has %d classes, most have %d: its labels are not used%s",
                name, len(labels), classes,
                "" if self.classes else "; say how many there are by classes=",
            )  # fmt: skip
        elif sum(labels):  # noise may have left nothing
            self.selector.set_labels(name, labels)

    def join(self, name: str) -> None:
        """Puts a client into the group that it says it is in; one that says nothing stays where it is."""
        group = self.groups.get(name)
        if group is None:
            return
        known = group in self.selector.groups
        self.selector.set_group(name, group if known else None)
        if not known:
            log.warning(
                "fedcote: client %s says it is in group %s, which is none of groups=: it is taken to "
                "fail on its own",
                name, group,
            )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """The directory as data that JSON can hold."""
        return {
            "names": {str(node): name for node, name in self.names.items()},
            "asked": {str(node): times for node, times in self.asked.items()},
            "claims": {str(node): name for node, name in self.claims.items()},
            "groups": dict(self.groups),
            "undecided": dict(self.undecided),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved :meth:`state`."""
        self.names = {int(node): str(name) for node, name in state["names"].items()}
        self.asked = {int(node): int(times) for node, times in state["asked"].items()}
        self.claims = {int(node): str(name) for node, name in state.get("claims", {}).items()}
        self.groups = {str(name): str(group) for name, group in state.get("groups", {}).items()}
        self.undecided = {
            str(name): [float(count) for count in labels]
            for name, labels in state.get("undecided", {}).items()
        }


def _agreed(told: Mapping[str, list[float]], alone: bool) -> int:
    """How many labels there are, by what more than half of the clients say that told theirs; 0 if no
    number has so many, or a single one while others are there: none decides for all.
    """
    for classes, clients in Counter(map(len, told.values())).most_common(1):
        if 2 * clients > len(told) and (clients > 1 or alone):
            return classes
    return 0


def _answer(node: int, reply: Message) -> Answer:
    """What a client tells, as far as it can be used."""
    if reply.has_error():
        raise ValueError(reply.error.reason)
    answer: Any = reply.content[RECORD]
    name = str(answer.get("name", fallback(node)))
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(f"its name is not printable, or longer than {LONGEST_NAME} characters")
    if name.startswith("node-") and name != fallback(node):
        raise ValueError("names that begin with node- are those of nodes without a name")
    labels = [float(count) for count in answer["labels"]]
    if not 1 <= len(labels) <= MAX_CLASSES:
        raise ValueError(f"its labels have {len(labels)} classes, not 1 to {MAX_CLASSES}")
    if not all(count == 0 or (math.isfinite(count) and 1e-9 <= count <= 2**53) for count in labels):
        raise ValueError("its labels are no counts")
    group = answer.get("group")
    if group is not None and (len(str(group)) > LONGEST_NAME or not str(group).isprintable()):
        raise ValueError(f"its group is not printable, or longer than {LONGEST_NAME} characters")
    return Answer(name, labels, None if group is None else str(group))
