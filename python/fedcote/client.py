"""The client's side of :class:`fedcote.flower.FedCote`: how many samples of each label it holds.

A client that cannot install the package can carry a copy of this file; only noise for privacy
(``epsilon``) needs the package. In the ClientApp::

    from fedcote.client import label_histogram

    @app.query("label_histogram")
    def histogram(message, context):
        return label_histogram(message, context, labels=my_labels, classes=10)
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

#: The key of the record that carries the answer.
RECORD = "fedcote"


def counts(labels: Iterable[Any], classes: int) -> list[int]:
    """How often each label from 0 to ``classes - 1`` occurs.

    >>> counts([0, 2, 2], classes=3)
    [1, 0, 2]
    """
    found = [0] * classes
    for label in labels:
        label = int(label)
        if not 0 <= label < classes:
            raise ValueError(f"labels: must be from 0 to {classes - 1}, found {label}")
        found[label] += 1
    return found


def noisy(exact: Iterable[int], epsilon: float, source: random.Random | None = None) -> list[int]:
    """Counts with two-sided geometric noise: ε-differentially private for one sample more or less.

    The library's mechanism, which is exact: no logarithm whose rounding favours some values.
    Negative results become 0, which costs no privacy. ``source`` gives the seed of the noise, by
    default the operating system. ``epsilon`` is from 1e-9 to 100.

    >>> sum(abs(count - 1000) < 30 for count in noisy([1000] * 100, epsilon=1.0))
    100
    """
    from fedcote import _fedcote

    seed = (source or random.SystemRandom()).randbytes(32)
    return _fedcote.protect([int(count) for count in exact], float(epsilon), seed)


def label_histogram(
    message: Any,
    context: Any,
    *,
    labels: Iterable[Any] | None = None,
    classes: int | None = None,
    histogram: Iterable[int] | None = None,
    name: str | None = None,
    epsilon: float | None = None,
) -> Any:
    """The reply to the query: this client's stable name, and its label counts.

    Parameters
    ----------
    message, context
        As the ClientApp's function got them.
    labels, classes
        The labels of this client's samples, and how many classes there are; or
    histogram
        the counts themselves.
    name
        What this client is called, the same after a restart. Default: ``client-name`` or else
        ``partition-id`` of the node's configuration (``flower-supernode --node-config``);
        without any of these the node's id, which changes at every restart.
    epsilon
        Add noise to the counts for ε-differential privacy. It is drawn once and kept in the
        context's state, so that asking repeatedly tells nothing more.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    if name is None:
        name = context.node_config.get("client-name", context.node_config.get("partition-id"))
    if RECORD in context.state:
        answer = list(context.state[RECORD]["labels"])
    else:
        if histogram is None:
            if labels is None or classes is None:
                raise ValueError("label_histogram: pass labels and classes, or histogram")
            histogram = counts(labels, classes)
        answer = [int(count) for count in histogram]
        if epsilon is not None:
            answer = noisy(answer, epsilon)
            context.state[RECORD] = ConfigRecord({"labels": answer})
    record = ConfigRecord({"labels": answer})
    if name is not None:
        record["name"] = str(name)
    return Message(RecordDict({RECORD: record}), reply_to=message)
