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
from typing import Any

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import FedAvg, Result
except ImportError as missing:
    raise ImportError(
        "fedcote.flower needs Flower 1.21 or later, the extra `flower`: pip install 'flwr>=1.21'"
    ) from missing

from . import _state
from ._aggregate import view
from ._control import GAINS, SHUT, Control
from ._directory import Directory, message
from ._memory import Arrays, Memory
from ._optimizer import Adam, Momentum, ServerOptimizer, Yogi
from ._options import optimizer_of, privacy_of, refuse_mixture
from ._report import client_metrics, report, round_metrics, short
from ._round import Bounds, Outcome, Round, check_update, next_model, record
from ._selector import Selector
from ._wireless import ATTEMPT, WirelessGrid, wireless_mod
from .client import CORRECTION

__all__ = ["Adam", "FedCote", "Momentum", "WirelessGrid", "Yogi", "wireless_mod"]

log = logging.getLogger("flwr")

#: Errors that blame the whole app and not the client that met them: the app does not load (1),
#: a mod's precondition fails (6), the app's bundle is invalid (7).
APP_ERRORS = frozenset({1, 6, 7})


class FedCote(FedAvg):
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
    estimator, method, coverage, kappa, efficiency
        See :class:`fedcote.Selector`.
    state_file
        Where to keep estimates, draws, model and memory after every round. A run that starts with
        an existing file continues where the file ends.
    query_timeout
        How long to wait for clients' label histograms, in seconds. Clients that join later are
        asked when they are first seen.
    query_attempts
        How often a client that does not tell its labels is asked.
    classes
        How many labels there are. Default: what most of the first clients say.
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
        aggregation: str = "mean",
        correction: float | str = "auto",
        server_rate: float = 1.0,
        server_optimizer: str | ServerOptimizer | None = None,
        noise_multiplier: float | None = None,
        max_share: float | None = None,
        aim: str | None = None,
        draws: str | None = None,
        forget_after: int = 50,
        estimator: str | Mapping[str, Any] = "beta",
        method: str = "exact",
        threshold: float | None = None,
        coverage: bool = True,
        kappa: float = 1000.0,
        efficiency: float = 0.0,
        state_file: str | Path | None = None,
        query_timeout: float = 60.0,
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
        self.memory: Memory | None = None
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
            method=method,
            threshold=threshold,
            coverage=coverage,
            kappa=kappa,
            efficiency=efficiency,
        )
        self.state_file = None if state_file is None else Path(state_file)
        self.directory = Directory(self.selector, query_timeout, query_attempts, classes)
        self.max_attempts = max_attempts
        self.bounds = Bounds(max_norm, clip)
        self.ignored_errors = frozenset(ignored_errors)
        #: What happened, a dictionary per round.
        self.history: list[dict[str, Any]] = []
        self._warned: set[str] = set()
        self._done = 0
        self._begun = False
        self._timeout: float | None = 3600.0
        self._round: Round | None = None

    # ------------------------------------------------------------------ start and state

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
            log.warning("fedcote: all %d rounds are done; move the state file away", num_rounds)

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

    def epsilon(self, delta: float = 1e-5) -> float:
        """ε of the (ε, δ)-differential privacy of all models released so far.

        For the client that it is largest for, compared with updates of zero in place of all of its
        updates; with any other updates in their place it is as of twice as many sensitivities.
        """
        if self.privacy is None:
            raise ValueError("epsilon: without noise_multiplier there is no differential privacy")
        return self.privacy.epsilon(delta)

    def observe_signal(self, client: str, margin_db: float) -> None:
        """Tells the margin of a client's link in this round, for ``estimator="signal"``."""
        self.selector.observe_signal(client, margin_db)

    def observe_transmissions(self, client: str, failed: int, arrived: bool) -> None:
        """Tells how an upload was transmitted, for ``estimator="retransmissions"``."""
        self.selector.observe_transmissions(client, failed, arrived)

    def state(self) -> dict[str, Any]:
        """Everything but the model and the updates in memory, as data that JSON can hold."""
        return {
            "round": self._done,
            "aggregation": self.aggregation,
            "selector": self.selector.state(),
            "directory": self.directory.state(),
            "memory": None if self.memory is None else self.memory.state(),
            "optimizer": None if self.optimizer is None else self.optimizer.state(),
            "privacy": None if self.privacy is None else self.privacy.state(),
            "history": self.history[-100:],
        }

    def restore(
        self,
        state: Mapping[str, Any],
        updates: Mapping[str, Arrays] | None = None,
        calm: Arrays | None = None,
        moments: Mapping[str, Arrays] | None = None,
    ) -> None:
        """Goes on from a saved :meth:`state`; the options must be those it was saved with.

        ``updates`` is what ``memory.updates`` was then; without it nothing is remembered. ``calm``
        is the model in ``memory.calm``, if there was one, ``moments`` the optimiser's arrays.
        """
        try:
            if state["aggregation"] != self.aggregation:
                raise ValueError(
                    f"state: was saved with aggregation {state['aggregation']!r}, this is "
                    f"{self.aggregation!r}; use the same, or start again from nothing"
                )
            saved, ours = state["selector"]["core"], self.selector.state()["core"]
            for part in ("seed", "choices", "kind"):
                if saved[part] != ours[part]:
                    raise ValueError(
                        f"state: was saved with {part} {saved[part]}, this is {ours[part]}; "
                        "use the same options, or start again from nothing"
                    )
            self.selector.restore(state["selector"])
            self.directory.restore(state["directory"])
            if self.memory is not None:
                self.memory.clear()
                if updates is not None and isinstance(self.memory, Control):
                    self.memory.restore(state["memory"], updates, calm)
                elif updates is not None:
                    self.memory.restore(state["memory"], updates)
            for part, ours_now in (("optimizer", self.optimizer), ("privacy", self.privacy)):
                if (state.get(part) is None) != (ours_now is None):
                    raise ValueError(
                        f"state: was saved {'with' if ours_now is None else 'without'} {part}; use "
                        "the same options, or start again from nothing"
                    )
            if self.optimizer is not None:
                self.optimizer.restore(state["optimizer"], moments or {})
            if self.privacy is not None:
                self.privacy.restore(state["privacy"])
            self.history = list(state["history"])
            self._done = int(state["round"])
        except (KeyError, TypeError, AttributeError) as problem:
            raise ValueError(f"state: {problem!r} is missing or wrong") from None

    def _load(self, initial: ArrayRecord) -> ArrayRecord | None:
        found = None if self.state_file is None else _state.read(self.state_file)
        if found is None:
            return None
        state, arrays, updates, calm, moments = found
        shapes = {name: tuple(array.shape) for name, array in initial.items()}
        for found_arrays in (arrays, *updates.values(), *([] if calm is None else [calm])):
            if {name: array.shape for name, array in found_arrays.items()} != shapes:
                raise ValueError(f"{self.state_file}: holds another model; move it away")
        self.restore(state, updates, calm, moments)
        return ArrayRecord({name: Array(array) for name, array in arrays.items()})

    def _save(self, arrays: ArrayRecord) -> None:
        if self.state_file is not None:
            model = {name: array.numpy() for name, array in arrays.items()}
            updates, calm = {}, None
            if self.memory is not None:
                rounds = self.memory.rounds
                updates = {name: (rounds[name], kept) for name, kept in self.memory.updates.items()}
            if isinstance(self.memory, Control):
                calm = self.memory.calm
            moments = {} if self.optimizer is None else self.optimizer.arrays
            _state.write(self.state_file, self.state(), model, updates, calm, moments)

    # ------------------------------------------------------------------ training

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Asks newcomers for their labels, draws clients, and makes one message for each."""
        if self.fraction_train == 0.0:
            return []
        if not self._begun:
            raise RuntimeError(
                "FedCote: another strategy, or a loop of your own, calls configure_train. Flower's "
                "DifferentialPrivacy… wrappers lose their guarantee around FedCote: use "
                "FedCote(clip=…, noise_multiplier=…) without a wrapper. Otherwise call "
                "strategy.start, or in a loop of your own strategy.begin(timeout) first"
            )
        config["server-round"] = self._done + 1
        self._round = Round(grid, arrays, config)
        return self._draw(self._round, again=False)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Averages what arrived, takes note of who failed, and draws again if nothing arrived."""
        current = self._round
        if current is None:
            return None, None
        model, contents = self._judge(current, list(replies))
        while not current.arrived() and current.attempts < self.max_attempts:
            log.warning("fedcote: nothing arrived, drawing again")
            messages = self._draw(current, again=True)
            replies = current.grid.send_and_receive(messages, timeout=self._timeout)
            model, contents = self._judge(current, list(replies))
        self._round = None
        self._done += 1
        self.history.append(
            report(current, self._done, self.selector, self.memory, self.privacy is not None)
        )
        self._save(current.arrays if model is None else model)
        metrics = client_metrics(contents, self.weighted_by_key, self.train_metrics_aggr_fn)
        if self.privacy is not None:
            metrics["fedcote-epsilon"] = self.epsilon()
        metrics.update(round_metrics(self.history[-1]))
        return model, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As ``FedAvg``; no client is asked when ``fraction_evaluate`` is 0, in every version."""
        if self.fraction_evaluate == 0.0:
            return []
        return super().configure_evaluate(self._done, arrays, config, grid)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """As ``FedAvg``, of the replies that fit together: clients may answer anything."""
        contents = []
        for reply in replies:
            if reply.has_error():
                reason = short(reply.error.reason)
                log.info("fedcote: evaluation failed: error %d: %s", reply.error.code, reason)
            else:
                contents.append(reply.content)
        found = client_metrics(contents, self.weighted_by_key, self.evaluate_metrics_aggr_fn)
        return found or None

    def _draw(self, current: Round, again: bool) -> list[Message]:
        """Draws clients for a round and makes their messages."""
        for name in self.directory.retired(current.grid):
            self._forget(name)
        nodes = self.directory.nodes(current.grid, self.min_available_nodes)
        selected = self.selected or max(int(len(nodes) * self.fraction_train), self.min_train_nodes)
        remembered: Iterable[str] = ()
        if self.memory is not None:
            self.memory.meet(nodes, self._done + 1)
            remembered = self.memory.updates
        drawn = self.selector.select(nodes, selected, again=again, remembered=remembered)
        found = self.selector.solution()
        if found is not None:
            current.wanted = found.label_divergence
            if self.memory is not None:
                current.target = dict(zip(found.ids, found.target.tolist(), strict=True))
            for warning in set(found.warnings) - self._warned:
                self._warned.add(warning)
                log.warning("fedcote: %s", warning)
        current.clients = len(nodes)
        current.config[ATTEMPT] = current.attempts
        if self.privacy is not None:
            # What Flower's fixedclipping_mod asks for.
            current.config["clipping_norm"] = self.privacy.clip
        current.attempts += 1
        current.drawn = {str(name): count for name, count in drawn}
        current.outcomes, current.corrections, current.corrected = {}, {}, {}
        if isinstance(self.memory, Control):
            model = {key: view(array.data) for key, array in current.arrays.items()}
            found_ones = self.memory.corrections(current.drawn, model, current.target)
            current.corrections = {name: record(arrays) for name, arrays in found_ones.items()}
            current.scale = self.memory.scale
        messages = []
        for name in current.drawn:
            content = RecordDict(
                {self.arrayrecord_key: current.arrays, self.configrecord_key: current.config}
            )
            if name in current.corrections:
                content[CORRECTION] = current.corrections[name]
            messages.append(message(content, nodes[name], "train", self._timeout))
        current.sent = dict(zip(current.drawn, messages, strict=True))
        log.info("fedcote: drew %d of %d clients (%d draws)", len(drawn), len(nodes), selected)
        return messages

    def _judge(
        self, current: Round, replies: list[Message]
    ) -> tuple[ArrayRecord | None, list[RecordDict]]:
        """Finds out what became of every message, tells the selector, and makes the next model."""
        by_message = {sent.metadata.message_id: name for name, sent in current.sent.items()}
        updates: dict[str, RecordDict] = {}
        for reply in replies:
            name = by_message.get(reply.metadata.reply_to_message_id)
            if name is None:
                continue
            if reply.has_error():
                code, reason = reply.error.code, reply.error.reason
                counts = code not in self.ignored_errors
                current.outcomes[name] = Outcome(False, f"error {code}: {short(reason)}", counts)
                log.debug("fedcote: client %s failed: error %d: %s", name, code, reason)
                continue
            # With privacy an odd update counts as one of zero: who takes part must not tell.
            problem = check_update(reply.content, current.arrays) if self.privacy is None else None
            current.outcomes[name] = Outcome(problem is None, problem or "arrived")
            if problem is None:
                updates[name] = reply.content
        self._excuse(current)
        model = next_model(
            updates, current, self.bounds, self.memory, self._done + 1, self.privacy, self.optimizer
        )
        for name in current.sent:
            # Every silence counts: the probability that is wanted is that of an answer in time.
            current.outcomes.setdefault(name, Outcome(False, "no reply in time"))
        for name, reason in current.zeroed.items():
            log.warning("fedcote: the update of client %s counts as zero: %s", name, reason)
        for name, outcome in current.outcomes.items():
            if outcome.counts:
                self.selector.observe(name, outcome.arrived)
            if not outcome.arrived:
                current.failed[name] = outcome.reason
                log.info("fedcote: client %s failed: %s", name, outcome.reason)
        if isinstance(self.memory, Control):
            self._tell(current, self.memory)
        ignoring = sorted((current.corrections.keys() & updates.keys()) - current.corrected.keys())
        if ignoring and "corrections" not in self._warned:
            self._warned.add("corrections")
            log.warning(
                "fedcote: clients that do not confirm the correction, and count as uncorrected: "
                "%s; see fedcote.client.Correction",
                ", ".join(ignoring),
            )
        arrived = current.arrived()
        return model, [updates[name] for name in arrived]

    def _excuse(self, current: Round) -> None:
        """Does not blame clients for a record that the app does not know under its name."""
        failed = [one for one in current.outcomes.values() if not one.arrived]
        for key in (self.arrayrecord_key, self.configrecord_key):
            unknown = [
                one for one in failed if "KeyError" in one.reason and repr(key) in one.reason
            ]
            if unknown and len(unknown) == len(current.outcomes):
                for outcome in unknown:
                    outcome.counts = False
                if key not in self._warned:
                    self._warned.add(key)
                    log.error(
                        "fedcote: no ClientApp finds the record %r in its message (%s): pass "
                        "arrayrecord_key= and configrecord_key= as the ClientApp reads them",
                        key, unknown[0].reason,
                    )  # fmt: skip

    def _forget(self, name: str) -> None:
        """Forgets a client that turned out to be another."""
        if self.memory is not None:
            self.memory.drop(name)
        if name in self.selector.clients:
            self.selector.forget(name)

    def _tell(self, current: Round, memory: Control) -> None:
        """Logs when corrections begin and end, and why they cannot begin."""
        if memory.scale > current.scale:
            log.info("fedcote: clients gain little on their own data: corrections begin again")
        elif memory.scale < current.scale:
            log.warning(
                "fedcote: corrected training is unstable (the updates of clients change by more "
                "than %g nat from one to the next): back to the last calm model, without "
                "corrections",
                SHUT,
            )
        silent = memory.safety.silent >= GAINS and not memory.safety.told
        if silent and "lengths" not in self._warned:
            self._warned.add("lengths")
            log.warning(
                "fedcote: no client reports the length of its training: no corrections, memory "
                "alone; reply with fedcote.client.Correction"
            )

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
