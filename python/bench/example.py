"""The federation of `examples/flower` in one process: every strategy, without SuperLink and SuperNodes.

    python python/bench/example.py --rounds 80 --steps 5 --rate 0.03

Prints mean and deviation of the test accuracy over the second half of the rounds, and the round in
which control (with the safety rule, and corrected always) has reached the best that memory had in
all of them.
"""

import argparse
import functools
import logging
import statistics
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/flower"
sys.path[:0] = [str(EXAMPLE), str(Path(__file__).resolve().parents[1] / "tests")]

from app import task  # noqa: E402
from app.server import AGGREGATIONS, strategy_named  # noqa: E402
from example_grid import ExampleGrid, settings  # noqa: E402
from flwr.app import ArrayRecord, MetricRecord  # noqa: E402

import fedcote  # noqa: E402


def main():
    config = settings()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--failures", default=config["failure-rates"])
    parser.add_argument("--seed", type=int, default=config["seed"])
    options = parser.parse_args()
    config |= {
        "local-steps": options.steps,
        "rate": options.rate,
        "failure-rates": options.failures,
        "seed": options.seed,
    }
    logging.getLogger("flwr").setLevel(logging.ERROR)
    task.client_data = functools.lru_cache(task.client_data)
    data = fedcote.mnist()
    best = {}
    always = "fedcote-control, always"
    for name in ("fedavg", *AGGREGATIONS, always):
        accuracies = []
        config["correction"] = "1.0" if name == always else "auto"

        def evaluate(round_, arrays):
            if round_:
                model = arrays.to_numpy_ndarrays()
                accuracies.append(100 * task.accuracy(model, data.test_images, data.test_labels))  # noqa: B023
            return MetricRecord({})

        strategy = strategy_named(name.split(",")[0], config)
        strategy.start(
            ExampleGrid(options.clients, config),
            ArrayRecord(task.initial_model(int(config["seed"]))),
            num_rounds=options.rounds,
            evaluate_fn=evaluate,
        )
        best[name] = [max(accuracies[: round_ + 1]) for round_ in range(options.rounds)]
        last = accuracies[len(accuracies) // 2 :]
        print(f"{name:23} {statistics.mean(last):5.1f} ± {statistics.stdev(last):4.1f}", flush=True)
        if "control" in name:
            wanted = best["fedcote-memory"][-1]
            first = best["fedcote-memory"].index(wanted) + 1
            reached = [accuracy >= wanted for accuracy in best[name]]
            sent = [report["round"] for report in strategy.history if report["correction"]]
            print(
                f"  reaches memory's best, {wanted:.1f} in round {first}, "
                + (f"in round {reached.index(True) + 1}" if any(reached) else "in no round")
                + (
                    f"; corrections in rounds {sent[0]} to {sent[-1]}"
                    if sent
                    else "; no corrections"
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
