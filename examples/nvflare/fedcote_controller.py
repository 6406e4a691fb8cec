"""FedCote as a workflow of NVFlare: whom to ask, who failed, and everyone's latest update."""

from typing import Any

import numpy as np
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.workflows.model_controller import ModelController

import fedcote


class FedCoteController(ModelController):
    """Draws clients by label counts and failures, and steps by all updates that are remembered.

    Clients answer the task "labels" with ``meta={"labels": counts}``, and "train" with their model.
    """

    def __init__(self, initial: str, rounds: int = 10, selected: int = 4, seed: int = 1,
                 timeout: int = 60, result: str = "") -> None:  # fmt: skip
        """``initial`` and ``result`` are files of arrays (``.npz``)."""
        super().__init__(persistor_id="", ignore_result_error=True)
        self.initial, self.result = initial, result
        self.rounds, self.selected, self.seed, self.timeout = rounds, selected, seed, timeout

    def ask(
        self, task: str, clients: list[str], model: dict[str, Any], round_: int
    ) -> dict[str, Any]:
        """The answers by client; who does not answer, or with an error, is missing."""
        data = FLModel(params_type=ParamsType.FULL, params=model, current_round=round_)
        replies = self.send_model_and_wait(task, data, targets=clients, timeout=self.timeout)
        return {reply.meta["client_name"]: reply for reply in replies}

    def run(self) -> None:
        with np.load(self.initial) as arrays:
            model = dict(arrays)
        self.selector = fedcote.Selector(self.seed, aim="freshness", threshold=0.95)
        memory = fedcote.Memory(forget_after=50)
        known: set[str] = set()
        for round_ in range(1, self.rounds + 1):
            clients = [client.name for client in self.engine.get_clients()]
            newcomers = [client for client in clients if client not in known]
            known.update(newcomers)
            for client, reply in (
                self.ask("labels", newcomers, model, round_) if newcomers else {}
            ).items():
                self.selector.set_labels(client, reply.meta["labels"])
            memory.meet(clients, round_)
            # One task for each client.
            for drawn in self.selector.attempts(
                clients, self.selected, remembered=memory.updates, distinct=True
            ):
                names = [str(client) for client, _ in drawn]
                replies = self.ask("train", names, model, round_)
                self.selector.observe_many({client: client in replies for client in names})
            for client, reply in replies.items():
                memory.remember(client, reply.params, model, round_)
            stepped, shares = memory.step(model, self.selector.weights())
            model = stepped or model
            self.info(
                f"round {round_}: {len(replies)} of {len(names)} arrived, {len(shares)} remembered"
            )
        if self.result:
            np.savez(self.result, **model)
