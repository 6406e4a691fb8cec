"""Wireless uplinks that fail."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _check, _fedcote


def outage(margin_db: Any, sigma_db: Any) -> Any:
    """The probability that shadowing uses up the margin of a link, Φ(−margin/σ).

    Numbers or arrays, broadcast against each other.

    >>> import fedcote
    >>> fedcote.outage(0.0, 4.0)
    0.5
    >>> fedcote.outage([0.0, 4.0, 8.0], 4.0).round(4)
    array([0.5   , 0.1587, 0.0228])
    """
    margin, sigma = np.broadcast_arrays(
        np.asarray(margin_db, dtype=np.float64), np.asarray(sigma_db, dtype=np.float64)
    )
    found = _fedcote.outage(np.ravel(margin), np.ravel(sigma)).reshape(margin.shape)
    return found if found.ndim else float(found)


class Network:
    """Who fails when. Without further keys, the wireless cell of the paper.

    Parameters
    ----------
    clients
        How many there are.
    model_parameters
        How many numbers an upload has; default: those of the paper's MNIST network.
    seed
        Where clients stand, how they move, which attempts fail.
    base
        The folder where a relative ``file`` is looked for.
    **config
        The keys of a scenario's ``[network]`` table.

    Everything is a function of configuration, seed, round and client.

    >>> import fedcote
    >>> network = fedcote.Network(20, outdoor_excess_loss_db=22.0)
    >>> network.rate_bps
    7635200.0
    >>> network.failures(0).shape
    (20,)
    >>> fedcote.Network(3, kind="fixed", failure=[0.1, 0.2, 1.0]).arrives(0, 2)
    False
    """

    def __init__(
        self,
        clients: int,
        model_parameters: int = 23_860,
        seed: int = 1,
        base: str | os.PathLike[str] = ".",
        **config: Any,
    ) -> None:
        #: What it is made of, also by whoever gets it in a pickle.
        self._made_of = (
            json.dumps(config, default=_plain),
            _check.count("clients", clients),
            _check.count("model_parameters", model_parameters),
            _check.seed(seed),
            os.path.abspath(base),
        )
        self._network = _fedcote.Network(*self._made_of)

    def __getstate__(self) -> tuple[str, int, int, int, str]:
        return self._made_of

    def __setstate__(self, made_of: tuple[str, int, int, int, str]) -> None:
        self._made_of, self._network = made_of, _fedcote.Network(*made_of)

    def __repr__(self) -> str:
        kind = json.loads(self._made_of[0]).get("kind", "radio")
        return f"<Network of {self.clients} clients, {kind}>"

    @property
    def clients(self) -> int:
        """The number of clients."""
        return self._network.clients

    @property
    def rate_bps(self) -> float:
        """The rate at which a model must be uploaded, in bits per second."""
        return self._network.rate_bps

    @property
    def moves(self) -> bool:
        """Whether failures differ from round to round."""
        return self._network.moves

    def failures(self, round: int = 0) -> np.ndarray:
        """Each client's probability that an upload fails in this round."""
        return self._network.failures(round)

    def arrives(self, round: int, client: int, copy: int = 0, attempt: int = 0) -> bool:
        """Whether this very upload arrives: the same arguments, the same answer."""
        return self._network.arrives(round, client, copy, attempt)

    def positions(self, round: int = 0) -> list[dict[str, Any]]:
        """Where everybody is, one row per client, ready for a data frame; empty without places."""
        return self._network.positions(round)


def _plain(value: Any) -> Any:
    """NumPy values and paths in JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"network: {value!r} is no value of a configuration")
