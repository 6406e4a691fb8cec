"""Which options and mixtures of the Flower strategy work together."""

from __future__ import annotations

from flwr.serverapp.strategy import Strategy

from ._optimizer import ServerOptimizer, server_optimizer
from ._privacy import Privacy

#: The methods by which a strategy decides.
_METHODS = (
    "configure_train",
    "aggregate_train",
    "configure_evaluate",
    "aggregate_evaluate",
    "start",
)


def refuse_mixture(cls: type, ours: type) -> None:
    """Refuses mixtures with strategies that would silently not run, or leave ours out.

    A strategy of Flower's before ours decides without it, or does not take its options; any
    strategy behind ours is never asked.
    """
    behind = False
    for base in cls.__mro__:
        behind = behind or base is ours
        if ours in base.__mro__ or base in ours.__mro__ or Strategy not in base.__mro__:
            continue
        own = [name for name in _METHODS if name in vars(base)]
        foreign = base.__module__.partition(".")[0] == "flwr"
        if own and (behind or foreign):
            raise TypeError(
                f"{cls.__name__}: FedCote and {base.__name__} cannot be mixed, since both "
                f"decide {own[0]}; of {base.__name__} use the idea as an option: "
                "server_optimizer= for FedAdam, FedYogi, FedAvgM, clip= and max_norm= against "
                "false updates, start(train_config=ConfigRecord({'proximal-mu': …})) for FedProx"
            )


def optimizer_of(given: str | ServerOptimizer | None, server_rate: float) -> ServerOptimizer | None:
    """The server's optimiser, if there is one."""
    found = server_optimizer(given)
    if found is not None and server_rate != 1.0:
        raise ValueError("server_rate: the server's optimiser has a rate of its own, eta")
    return found


def privacy_of(
    noise_multiplier: float | None,
    max_share: float | None,
    clip: float | None,
    max_norm: float | None,
    aggregation: str,
) -> Privacy | None:
    """Differential privacy, if it is asked for."""
    if noise_multiplier is None:
        if max_share is not None:
            raise ValueError("max_share: is for differential privacy: pass noise_multiplier")
        return None
    if clip is None:
        raise ValueError("noise_multiplier: needs clip, the norm that an update may have")
    if max_norm is not None:
        raise ValueError(
            "max_norm: whether an update is rejected would disclose its length; with "
            "noise_multiplier use clip alone"
        )
    if aggregation == "control":
        raise ValueError(
            'noise_multiplier: corrections disclose updates without noise; use aggregation="memory"'
        )
    return Privacy(noise_multiplier, clip, max_share)
