"""The data set that travels with the package, and how samples are divided among clients."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _fedcote
from ._check import count
from ._check import seed as check_seed


class Mnist(NamedTuple):
    """MNIST as bytes: images ``(n, 28, 28)`` from 0 to 255, labels from 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def mnist() -> Mnist:
    """The 60,000 training and 10,000 test images of MNIST, embedded in the package.

    >>> import fedcote
    >>> data = fedcote.mnist()
    >>> data.train_images.shape, data.test_labels.shape
    ((60000, 28, 28), (10000,))
    """
    train, test = _fedcote.mnist()
    return Mnist(*train, *test)


#: How samples are divided among clients.
Partition: TypeAlias = Literal["iid", "dirichlet", "label-pairs", "one-label", "shards"]


def partition(
    labels: ArrayLike,
    clients: int,
    kind: Partition = "iid",
    *,
    concentration: float | None = None,
    unbalance: float | None = None,
    shards_per_client: int | None = None,
    seed: int = 1,
) -> list[NDArray[np.int64]]:
    """Divides samples among clients: for each client the positions of its samples, ascending.

    Every sample goes to one client, and no client is left without.

    Parameters
    ----------
    labels
        The class of each sample, a whole number from 0.
    clients
        How many clients.
    kind
        ``"iid"``: shuffled, then dealt. ``"dirichlet"``: the label mix of each client is drawn from a
        Dirichlet distribution. ``"label-pairs"``: clients in equal blocks, two labels each;
        ``"one-label"``: one. ``"shards"``: a few pieces of the samples in the order of labels.
    concentration
        Of the Dirichlet distribution; default 0.5. Small means few labels per client.
    unbalance
        The share of the samples that goes to every other client; default 0.5. Not for shards.
    shards_per_client
        How many shards each client has; default 2.
    seed
        Of the random numbers. A scenario with this seed divides the same labels the same way.

    >>> import fedcote
    >>> [own.tolist() for own in fedcote.partition([0, 1, 2, 3, 0, 1], 2, "label-pairs")]
    [[0, 1, 4, 5], [2, 3]]
    """
    known = np.asarray(labels)
    if known.ndim != 1 or known.size == 0 or known.dtype.kind not in "iub":
        raise ValueError("labels: expected one class, a whole number, for each sample")
    if known.min() < 0 or known.max() > 65_535:
        raise ValueError("labels: must be from 0 to 65535")
    choices = {
        "partition": kind,
        "concentration": concentration,
        "unbalance": unbalance,
        "shards_per_client": shards_per_client,
    }
    given = json.dumps({name: value for name, value in choices.items() if value is not None})
    found = _fedcote.partition(
        known.astype(np.uint16),
        int(known.max()) + 1,
        count("clients", clients),
        given,
        check_seed(seed),
    )
    return [own.astype(np.int64) for own in found]
