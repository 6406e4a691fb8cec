"""FedCote as a strategy for Flower, in place of ``FedAvg``.

In a ServerApp::

    from fedcote.flower import FedCote

    strategy = FedCote(aggregation="memory", selected=10, seed=1, state_file="/srv/state.json")
    result = strategy.start(grid, initial_arrays, num_rounds=100, timeout=120)

and :mod:`fedcote.client` in the ClientApp.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

try:
    from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Result
except ImportError as missing:
    raise ImportError(
        "fedcote.flower needs Flower 1.21 or later, the extra `flower`: pip install 'flwr>=1.21'"
    ) from missing

from ._control import Control
from ._directory import Directory
from ._memory import Memory
from ._optimizer import Adam, Momentum, ServerOptimizer, Yogi
from ._options import optimizer_of, privacy_of, refuse_mixture
from ._resumable import Resumable
from ._round import Bounds
from ._select import Aim, Draws, Method
from ._selector import Estimator, Selector
from ._wireless import WirelessGrid, wireless_mod

__all__ = ["Adam", "Aggregation", "FedCote", "Momentum", "WirelessGrid", "Yogi", "wireless_mod"]

log = logging.getLogger("flwr")

#: What becomes of updates.
Aggregation: TypeAlias = Literal["mean", "memory", "control"]

#: Errors that blame the whole app and not the client that met them: the app does not load (1),
#: a mod's precondition fails (6), the app's bundle is invalid (7).
APP_ERRORS = frozenset({1, 6, 7})


class FedCote(Resumable):
    """Federated averaging over clients that are selected so that failures do not bias the model.

    Parameters
    ----------
    selected
        Draws per round, K. Default: as many as ``FedAvg`` would sample, by ``fraction_train`` and
        ``min_train_nodes``.
    seed
        Same seed, same clients, same failures: same draws.
    aggregation
        ``"mean"``: the average of what arrives, as in the paper. ``"memory"``: the server
        remembers each client's latest update, and the model steps by all of them, whoever
        arrives, for clients × model size of memory. ``"control"``: memory, and each client is sent
        a correction of its local training, so that it does not drift towards its own labels;
        clients apply it with :class:`fedcote.client.Correction`, and are treated as uncorrected
        where they do not.
    correction
        By what corrections are multiplied, from 0 to 1, for control only; with 0, control is
        memory. ``"auto"``: 1 at first, for clients that report the length of their training; 0 once
        corrected training is unstable, as with deep networks: the server then goes back to the last
        model at which it was calm, or to the first. Once it is 1 again, when clients gain little
        on their own data in a round.
    server_rate
        What the model's step is multiplied by, for memory and control only.
    server_optimizer
        ``"adam"``, ``"yogi"``, ``"momentum"``, or an object such as ``Adam(eta=0.1)``: a step of
        that optimiser towards the aggregate, as of Flower's ``FedAdam``, ``FedYogi`` and
        ``FedAvgM``, in place of the aggregate itself.
    noise_multiplier
        Differential privacy of the model with respect to all updates of one client, together with
        ``clip``: Gaussian noise of so many times the sensitivity, see :meth:`epsilon`. For mean
        and memory.
    max_share
        With ``noise_multiplier``: the share in a step that one client may have at most, from which
        the sensitivity follows. Default: twice an equal share.
    aim
        What selection is for: ``"appearance"``, that the labels of what arrives are right (the
        default of the mean), or ``"freshness"``, that what is remembered does not grow old (the
        default of memory and control, and for them only).
    draws
        ``"independent"`` (as in the paper; the default of the mean) or ``"systematic"`` (a
        round's labels vary less; the default of memory and control).
    forget_after
        What is remembered of a client that has been away for more rounds than this is dropped.
    threshold
        Clients that fail more often are left out: 0.95 for memory and control, 0.85 for the mean.
    groups
        Clients that fail together, behind an access point, relay or cell: how often each group is
        down, ``{"ap": 0.2}``. It is part of the failures that are estimated. For
        ``aim="appearance"``. Clients say which one they are in (``label_histogram(group=…)``, or
        ``client-group`` in the node's configuration), or
        ``strategy.selector.set_group("phone-7", "ap")`` does.
    estimator, method, coverage, kappa, efficiency
        See :class:`fedcote.Selector`.
    state_file
        Where to keep estimates, draws, model and memory after every round. A run that starts with
        an existing file continues where the file ends.
    query_timeout
        How long to wait for clients' label histograms, in seconds. Clients that join later are
        asked when they are first seen.
    newcomer_timeout
        How long to wait for those that join later, at most, in seconds: the round waits for them,
        so that one that is silent on purpose must not hold up every round. More where starting a
        ClientApp takes longer, as on small devices that load PyTorch.
    query_attempts
        How often a client that does not tell its labels is asked.
    classes
        How many labels there are. Default: what more than half of the clients say that have told
        theirs; until a number has so many, no labels are used.
    max_attempts
        How often to draw in a round in which nothing arrives.
    max_norm
        A bound on the Euclidean norm of an update, the difference of what a client returns from
        what it was sent (for control, without the correction): a longer one is rejected and
        counts as a failure. Default: none.
    clip
        The same, but a longer update is scaled down to the bound and counts as arrived.
    ignored_errors
        Codes of errors that say nothing about the client, and do not count as its failures.
    *fedavg, **fedavg_options
        Everything that ``FedAvg`` takes, in its order or by name.

    A client that is drawn several times gets one message; in a mean its update then weighs as much
    as its draws. Updates that are not finite, or do not fit the model, are rejected and count as
    failures. Metrics of clients are averaged as ``FedAvg`` does, by ``weighted_by_key``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuses mixtures with strategies that would silently not run, or leave this one out."""
        super().__init_subclass__(**options)
        refuse_mixture(cls, FedCote)

    def __init__(
        self,
        *fedavg: Any,
        selected: int | None = None,
        seed: int = 0,
        aggregation: Aggregation = "mean",
        correction: float | Literal["auto"] = "auto",
        server_rate: float = 1.0,
        server_optimizer: Literal["adam", "yogi", "momentum"] | ServerOptimizer | None = None,
        noise_multiplier: float | None = None,
        max_share: float | None = None,
        aim: Aim | None = None,
        draws: Draws | None = None,
        forget_after: int = 50,
        groups: Mapping[str, float] | None = None,
        estimator: Estimator | Mapping[str, Any] = "beta",
        method: Method = "exact",
        threshold: float | None = None,
        coverage: bool = True,
        kappa: float = 1000.0,
        efficiency: float = 0.0,
        state_file: str | Path | None = None,
        query_timeout: float = 60.0,
        newcomer_timeout: float = 10.0,
        query_attempts: int = 3,
        classes: int | None = None,
        max_attempts: int = 3,
        max_norm: float | None = None,
        clip: float | None = None,
        ignored_errors: Iterable[int] = APP_ERRORS,
        **fedavg_options: Any,
    ) -> None:
        super().__init__(*fedavg, **fedavg_options)
        if selected is not None and selected < 1:
            raise ValueError(f"selected: must be from 1 to 1000000000, is {selected}")
        if max_attempts < 1:
            raise ValueError(f"max_attempts: must be at least 1, is {max_attempts}")
        if aggregation not in ("mean", "memory", "control"):
            raise ValueError(
                f"aggregation: expected one of mean, memory, control, is {aggregation!r}"
            )
        if aggregation != "control" and correction != "auto":
            raise ValueError('correction: is for aggregation="control"')
        #: Everyone's latest update, if the server remembers.
        self.memory = None
        if aggregation == "mean":
            if aim == "freshness":
                raise ValueError(
                    'aim: "freshness" is for a server that remembers: aggregation="memory"'
                )
            if server_rate != 1.0:
                raise ValueError('server_rate: is for aggregation="memory" and "control"')
        else:
            aim, draws = aim or "freshness", draws or "systematic"
            self.memory = (
                Memory(forget_after, server_rate)
                if aggregation == "memory"
                else Control(forget_after, server_rate, correction)
            )
        if groups and aim == "freshness":
            raise ValueError(
                'groups: are for aim="appearance"; for "freshness" whom to ask follows from failures '
                "alone"
            )
        self.optimizer = optimizer_of(server_optimizer, server_rate)
        self.privacy = privacy_of(noise_multiplier, max_share, clip, max_norm, aggregation)
        if threshold is None:
            # Who is remembered may come rarely.
            threshold = 0.85 if aggregation == "mean" else 0.95
        self.selected = selected
        self.aggregation = aggregation
        self.selector = Selector(
            seed,
            estimator=estimator,
            aim=aim or "appearance",
            draws=draws,
            uploads="per-client",
            groups=groups,
            method=method,
            threshold=threshold,
            coverage=coverage,
            kappa=kappa,
            efficiency=efficiency,
        )
        self.state_file = None if state_file is None else Path(state_file)
        self.directory = Directory(
            self.selector, query_timeout, query_attempts, classes, newcomer_timeout
        )
        self.max_attempts = max_attempts
        self.bounds = Bounds(max_norm, clip)
        self.ignored_errors = frozenset(ignored_errors)
        #: What happened, a dictionary per round.
        self.history = []
        self._warned = set()
        self._done = 0
        self._begun = False
        self._timeout = 3600.0
        self._round = None

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """As ``FedAvg.start``; with a state file, the rounds that are left."""
        self._done = 0  # unless a file says otherwise; estimates stay
        if self.memory is not None:
            self.memory.clear()
        if self.optimizer is not None:
            self.optimizer.clear()
        arrays = self._load(initial_arrays) or initial_arrays
        done = self._done
        if done:
            log.info("fedcote: %s: going on after round %d", self.state_file, done)
        if done >= num_rounds:
            log.warning(
                "fedcote: all %d rounds are done; move the state file and its .npz files away",
                num_rounds,
            )

        def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
            return evaluate_fn(done + server_round, arrays) if evaluate_fn else None

        self.begin(timeout)
        try:
            result = super().start(
                grid,
                arrays,
                max(0, num_rounds - done),
                timeout,
                train_config,
                evaluate_config,
                evaluate if evaluate_fn else None,
            )
        finally:
            self._begun = False
        if not result.arrays:
            result.arrays = arrays
        for metrics in (
            result.train_metrics_clientapp,
            result.evaluate_metrics_clientapp,
            result.evaluate_metrics_serverapp,
        ):
            shifted = {done + number: record for number, record in metrics.items()}
            metrics.clear()
            metrics.update(shifted)
        return result

    def begin(self, timeout: float | None = 3600.0) -> None:
        """Allows a loop of your own to call :meth:`configure_train` and :meth:`aggregate_train`.

        :meth:`start` does so by itself. ``timeout`` is how long replies are waited for.
        """
        self._timeout, self._begun = timeout, True

    def observe_signal(self, client: str, margin_db: float) -> None:
        """Tells the margin of a client's link in this round, for ``estimator="signal"``.

        Of clients that were drawn after they were, and before their replies are aggregated; of others
        at any time.
        """
        self.selector.observe_signal(client, margin_db)

    def observe_transmissions(self, client: str, failed: int, arrived: bool) -> None:
        """Tells how an upload was transmitted, for ``estimator="retransmissions"``."""
        self.selector.observe_transmissions(client, failed, arrived)

    def summary(self) -> None:
        """Logs the strategy's settings."""
        log.info("\t├──> FedCote: %s draws per round", self.selected or "as many as FedAvg's")
        kept = "nothing" if self.memory is None else "each client's latest update"
        log.info("\t│\t├── remembers: %s", kept)
        if self.aggregation == "control":
            log.info("\t│\t├── sends corrections of local training")
        if self.optimizer is not None:
            log.info("\t│\t├── server optimiser: %r", self.optimizer)
        if self.privacy is not None:
            log.info(
                "\t│\t├── differential privacy: noise multiplier %g, clip %g",
                self.privacy.noise_multiplier,
                self.privacy.clip,
            )
        log.info("\t│\t└── state file: %s", self.state_file or "none")
        super().summary()
