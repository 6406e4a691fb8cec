"""Rounds of training with Flower: whom to ask, and what to make of the answers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from ._aggregate import view
from ._control import GAINS, SHUT, Control
from ._directory import Directory, message
from ._memory import Memory
from ._optimizer import ServerOptimizer
from ._privacy import Privacy
from ._report import client_metrics, report, round_metrics, short
from ._round import Bounds, Outcome, Round, check_update, next_model, record
from ._selector import Selector
from ._wireless import ATTEMPT
from .client import CORRECTION

log = logging.getLogger("flwr")


class Training(FedAvg):
    """Draws clients, judges what became of every message, and makes the next model."""

    selected: int | None
    aggregation: str
    selector: Selector
    directory: Directory
    memory: Memory | None
    optimizer: ServerOptimizer | None
    privacy: Privacy | None
    max_attempts: int
    bounds: Bounds
    ignored_errors: frozenset[int]
    history: list[dict[str, Any]]
    _warned: set[str]
    _done: int
    _begun: bool
    _timeout: float | None
    _round: Round | None

    def epsilon(self, delta: float = 1e-5) -> float:
        """ε of the (ε, δ)-differential privacy of all models released so far.

        For the client that it is largest for, compared with updates of zero in place of all of its
        updates; with any other updates in their place it is as of twice as many sensitivities.
        """
        if self.privacy is None:
            raise ValueError("epsilon: without noise_multiplier there is no differential privacy")
        return self.privacy.epsilon(delta)

    def _save(self, arrays: ArrayRecord) -> None:
        """Keeps the model and all else that the next round needs."""
        raise NotImplementedError

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
        here = self.directory.present(current.grid, self.min_available_nodes)
        for name in self.directory.retired(here) + self.directory.pruned(here):
            self._forget(name)
        nodes = self.directory.nodes(current.grid, here)
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
