"""The client's side of :class:`fedcote.flower.FedCote`: how many samples of each label it holds,
and the correction of its local training.

A client that cannot install the package can carry a copy of this file; only noise for privacy
(``epsilon``) needs the package. In the ClientApp::

    from fedcote.client import Correction, label_histogram

    @app.query("label_histogram")
    def histogram(message, context):
        return label_histogram(message, context, labels=my_labels, classes=10)

    @app.train()
    def train(message, context):
        correction = Correction(message, steps=len(batches))
        with correction.torch(model, optimizer):
            ...  # training as ever, in so many steps of the optimiser
        return correction.reply(RecordDict({"arrays": ..., "metrics": ...}))
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flwr.app import Message

#: The key of the record that carries the answer to the query, and the confirmation of a correction.
RECORD = "fedcote"

#: The key of the record of arrays that carries the correction.
CORRECTION = "fedcote-correction"


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
    group: str | None = None,
    epsilon: float | None = None,
    answer_file: str | os.PathLike[str] | None = None,
) -> Message:
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
    group
        The access point, relay or cell that this client is behind, and fails with, as one of the
        strategy's ``groups``. Default: ``client-group`` of the node's configuration, if there is one.
    epsilon
        Add noise to the counts for ε-differential privacy. Within a run it is drawn once and kept
        in the context's state, so that asking repeatedly tells nothing more. Every run of Flower
        has a new context: n runs draw n times, and cost n·ε together, unless there is an
    answer_file
        where the noisy answer is kept on this client's disk: all runs give that answer, and cost ε
        together. Remove it when the data has changed; the next answer costs another ε. Each client
        needs a file of its own: it holds the client's name, and is refused by one of another name.
        For ``epsilon`` only.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    if name is None:
        name = context.node_config.get("client-name", context.node_config.get("partition-id"))
    name = None if name is None else str(name)
    if group is None:
        group = context.node_config.get("client-group")
    if answer_file is not None and epsilon is None:
        raise ValueError("answer_file: is for answers with noise; pass epsilon")
    if RECORD in context.state:
        answer = list(context.state[RECORD]["labels"])
    elif answer_file is not None and os.path.exists(answer_file):
        answer = _kept(answer_file, float(epsilon or 0.0), name)
        context.state[RECORD] = ConfigRecord({"labels": answer})
    else:
        if histogram is None:
            if labels is None or classes is None:
                raise ValueError("label_histogram: pass labels and classes, or histogram")
            histogram = counts(labels, classes)
        answer = [int(count) for count in histogram]
        if epsilon is not None:
            answer = noisy(answer, epsilon)
            if answer_file is not None:
                # Before anybody hears of it: what is told twice must be the same.
                _keep(answer_file, answer, float(epsilon), name)
            context.state[RECORD] = ConfigRecord({"labels": answer})
    record = ConfigRecord({"labels": answer})
    if name is not None:
        record["name"] = name
    if group is not None:
        record["group"] = str(group)
    return Message(RecordDict({RECORD: record}), reply_to=message)


def _keep(
    file: str | os.PathLike[str], answer: list[int], epsilon: float, name: str | None
) -> None:
    """Writes a noisy answer to a file of this user's, as a whole."""
    temporary = f"{os.fspath(file)}.{os.getpid()}.part"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        kept = {"labels": answer, "epsilon": epsilon}
        json.dump(kept if name is None else {**kept, "name": name}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, file)


def _kept(file: str | os.PathLike[str], epsilon: float, name: str | None) -> list[int]:
    """The answer in a file; a damaged one is refused, since a new answer would cost privacy."""
    try:
        with open(file, encoding="utf-8") as stream:
            kept = json.load(stream)
        answer, drawn_with = [int(count) for count in kept["labels"]], float(kept["epsilon"])
        owner = kept.get("name", name)  # who had no name wrote none
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise ValueError(
            f"{os.fspath(file)}: is no answer, or damaged; remove it to draw a new one, which "
            "costs another epsilon"
        ) from None
    if name is not None and owner != name:
        raise ValueError(
            f"{os.fspath(file)}: is the answer of client {owner!r}, this is {name!r}; give each "
            "client an answer_file of its own"
        )
    if drawn_with > epsilon:
        raise ValueError(
            f"{os.fspath(file)}: was drawn with epsilon {drawn_with}, which is less private than "
            f"{epsilon}; it has been told, so that removing it takes nothing back"
        )
    return answer


class Correction:
    """What the server asks this client to add to its local training (``aggregation="control"``).

    Use one of :meth:`torch`, :meth:`add` and :meth:`confirm`, then :meth:`reply`. Training is not
    changed by any of them when the server sent no correction; the reply reports its length all the
    same, by which the server decides whether to send one.

    Parameters
    ----------
    message
        As the ClientApp's function got it.
    steps
        How many steps local training takes in this round.
    rate
        The learning rate, on average over the steps: the server judges by the length of training,
        the sum of the rates of all steps, when corrections help and whether they are stable. With
        :meth:`torch` the optimiser's own.

    Attributes
    ----------
    arrays
        The correction in units of updates, NumPy arrays by name: what all steps together are to
        add. Arrays that are not corrected are missing.
    """

    def __init__(self, message: Any, steps: int, rate: float | None = None) -> None:
        if steps < 1:
            raise ValueError(f"steps: must be at least 1, is {steps}")
        records = message.content.array_records
        self.arrays = {key: array.numpy() for key, array in records.get(CORRECTION, {}).items()}
        self.steps = steps
        #: The sum of the rates of all steps, as far as it is known.
        self._length = steps * rate if rate is not None else 0.0
        self._message = message
        #: The model's arrays, in the order in which they were sent.
        self._order = [key for name in records if name != CORRECTION for key in records[name]]
        self._taken = 0
        self._corrected: set[str] = set()

    def add(self, model: Any) -> None:
        """Adds one step's part to a model of NumPy arrays; to be called after each step.

        ``model`` is a dictionary with the names of the arrays sent, or a list in their order.
        """
        if not self.arrays or self._taken == self.steps:
            return
        self._taken += 1
        for name, array in self.arrays.items():
            model[name if hasattr(model, "keys") else self._order.index(name)] += array / self.steps
        self.confirm()

    @contextlib.contextmanager
    def torch(self, model: Any, optimizer: Any) -> Iterator[None]:
        """Corrects a PyTorch model after each of the optimiser's steps in the ``with`` block.

        The part is added to the parameters themselves, which is exact for every optimiser: with
        momentum or adaptive rates, too, what is added in all steps together is the correction. If
        there are fewer steps than announced, what is left is added at the end of the block; after
        the announced number nothing more is added. Parameters without gradients, and buffers, are
        not corrected.
        """
        terms = self._terms(model)
        told = self._length > 0.0

        def add(parts: int) -> None:
            self._taken += parts
            if not told:
                rate = max(float(group["lr"]) for group in optimizer.param_groups)
                self._length += parts * rate
            for parameter, term in terms:
                parameter.detach().add_(term, alpha=parts)

        hook = optimizer.register_step_post_hook(lambda *_: add(int(self._taken < self.steps)))
        try:
            yield
        finally:
            hook.remove()
        if terms:
            add(self.steps - self._taken)

    def _terms(self, model: Any) -> list[tuple[Any, Any]]:
        """Parameters, and what a step adds to each."""
        state = list(model.state_dict())
        if set(self._order) <= set(state):
            names = {name: name for name in self._order}
        elif len(self._order) == len(state):  # the arrays were sent as a list
            names = dict(zip(self._order, state, strict=True))
        else:
            raise ValueError("correction: the model's arrays are not those that were sent")
        parameters = dict(model.named_parameters(remove_duplicate=False))
        terms = {}
        for name, array in self.arrays.items():
            parameter = parameters.get(names[name])
            if parameter is not None and parameter.requires_grad:
                self._corrected.add(name)
                # Parameters that share their storage have several names, and are corrected once.
                terms[id(parameter)] = (
                    parameter,
                    parameter.detach().new_tensor(array / self.steps),
                )
        return list(terms.values())

    def confirm(self) -> None:
        """Takes note that all :attr:`arrays` are added, for training that adds them by itself."""
        self._corrected.update(self.arrays)

    def reply(self, content: Any) -> Message:
        """The reply with the given records, and what was corrected and how long training was."""
        from flwr.app import ConfigRecord, Message

        if self._corrected and self._taken and self._taken < self.steps:
            raise ValueError(
                f"correction: was added in {self._taken} of {self.steps} steps; "
                "add it after every step, or announce fewer steps"
            )
        if self._corrected and not self._length > 0.0:
            raise ValueError("rate: pass the learning rate to Correction, a positive number")
        if self._length > 0.0:
            content[RECORD] = ConfigRecord({"length": float(self._length)})
        if self._corrected:
            content[RECORD]["corrected"] = sorted(self._corrected)
        return Message(content, reply_to=self._message)
