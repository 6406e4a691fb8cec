"""The ServerApp: the same federation with FedAvg and with FedCote, in its three aggregations."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

import fedcote
from fedcote.flower import Aggregation, FedCote, WirelessGrid

from . import task

app = ServerApp()

AGGREGATIONS: dict[str, Aggregation] = {
    "fedcote": "mean",
    "fedcote-memory": "memory",
    "fedcote-control": "control",
}


def strategy_named(name: str, config: Mapping[str, Any]) -> FedAvg:
    """FedAvg, or FedCote in its place."""
    if name == "fedavg":
        return FedAvg(fraction_evaluate=0.0)
    if name in AGGREGATIONS:
        correction = str(config["correction"]) if name == "fedcote-control" else "auto"
        return FedCote(
            aggregation=AGGREGATIONS[name],
            correction="auto" if correction == "auto" else float(correction),
            selected=int(config["selected"]),
            query_timeout=float(config["timeout"]),
            seed=int(config["seed"]),
            state_file=str(config["state-file"]) or None,
            clip=float(config["clip"]) or None,
            noise_multiplier=float(config["noise-multiplier"]) or None,
            fraction_evaluate=0.0,
        )
    names = ", ".join(["fedavg", *AGGREGATIONS])
    raise ValueError(f"strategies: expected some of {names}, found {name!r}")


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Trains with every strategy asked for, and prints how well each did."""
    config = context.run_config
    data = fedcote.mnist()
    rounds = int(config["num-server-rounds"])
    if config["wireless"]:
        grid = WirelessGrid(grid, fedcote.Network(len(list(grid.get_node_ids())), seed=1))
    results = {}
    for name in str(config["strategies"]).split(","):
        strategy = strategy_named(name.strip(), config)
        accuracies = {}

        def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
            model = arrays.to_numpy_ndarrays()
            accuracy = task.accuracy(model, data.test_images, data.test_labels)
            accuracies[server_round] = accuracy  # noqa: B023
            print(f"{name}, round {server_round} of {rounds}: {100 * accuracy:.1f} %", flush=True)  # noqa: B023
            return MetricRecord({"accuracy": accuracy})

        strategy.start(
            grid,
            ArrayRecord(task.initial_model(int(config["seed"]))),
            num_rounds=rounds,
            timeout=float(config["timeout"]),
            evaluate_fn=evaluate,
        )
        results[name] = {"accuracy": accuracies, "history": getattr(strategy, "history", [])}
    table = "\n".join(map(line, results.items())) + "\n"
    if config["result-file"]:
        Path(str(config["result-file"])).with_suffix(".txt").write_text(table)
        Path(str(config["result-file"])).write_text(json.dumps(results))
    print(table, flush=True)


def line(result: tuple[str, dict[str, Any]]) -> str:
    """How well a strategy did."""
    name, found = result
    rounds = list(found["accuracy"].values())
    last = rounds[-max(1, len(rounds) // 2) :]
    return (
        f"{name:15} test accuracy: {100 * rounds[-1]:5.1f} % in the last round, "
        f"{100 * sum(last) / len(last):5.1f} % on average over the last {len(last)}"
    )
