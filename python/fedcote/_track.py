"""Runs of a comparison in experiment trackers."""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import _fedcote

Tool = Literal["mlflow", "wandb"]


@dataclass(frozen=True)
class _Run:
    """A run as it is told to a tracker."""

    scheme: str
    seed: int
    #: Its scenario, all values spelt out.
    config: Path
    #: Of each round: its number, and the numbers that it has.
    rounds: list[tuple[int, dict[str, float]]]

    @property
    def name(self) -> str:
        return f"{self.scheme}, seed {self.seed}"


def track(
    folder: str | os.PathLike[str], tool: Tool, *, project: str | None = None, **options: Any
) -> list[str]:
    """Replays the runs of a folder into MLflow or Weights & Biases, and returns the ids they got there.

    One run there for each scheme and seed here, with scheme, seed and configuration, and the numbers of
    every round as metrics with the round as their step. Called again, it makes new runs.

    Parameters
    ----------
    folder
        What :func:`simulate` was given as ``out``, or ``fedcote run`` as ``--out``; also of a comparison under way.
    tool
        ``"mlflow"`` or ``"wandb"``, which must be installed. Where runs go is the tool's own matter:
        ``MLFLOW_TRACKING_URI``, ``WANDB_MODE=offline`` and the like.
    project
        The name of MLflow's experiment or of the project in Weights & Biases; by default the folder's name.
    options
        For ``mlflow.MlflowClient``, or for ``wandb.init``.
    """
    writers = {"mlflow": _mlflow, "wandb": _wandb}
    if tool not in writers:
        raise ValueError(f'track: expected "mlflow" or "wandb", is {tool!r}')
    place = Path(folder)
    runs = list(_runs(place))
    if not runs:
        raise ValueError(f"track: {place}: no runs; give the folder of a comparison")
    try:
        library = importlib.import_module(tool)
    except ImportError as error:
        raise ImportError(f"track: install {tool}: pip install {tool}") from error
    return writers[tool](library, project or place.resolve().name, runs, options)


def _runs(folder: Path) -> Iterator[_Run]:
    for metrics in sorted(folder.glob("*/*/metrics.jsonl")):
        scheme, seed = metrics.parent.parent.name, metrics.parent.name
        if not seed.isdecimal():
            continue
        columns = dict(_fedcote.rounds(folder, [(scheme, int(seed))]))
        numbers = columns.pop("round")
        del columns["scheme"], columns["seed"]
        rounds = [
            (int(number), {name: float(column[at]) for name, column in columns.items()
                           if math.isfinite(column[at])})
            for at, number in enumerate(numbers)
        ]  # fmt: skip
        yield _Run(scheme, int(seed), metrics.parent / "config.toml", rounds)


def _mlflow(mlflow: Any, project: str, runs: list[_Run], options: Mapping[str, Any]) -> list[str]:
    from mlflow.entities import Metric, Param

    client = mlflow.MlflowClient(**options)
    known = client.get_experiment_by_name(project)
    experiment = client.create_experiment(project) if known is None else known.experiment_id
    ids = []
    for run in runs:
        made = client.create_run(experiment, run_name=run.name).info.run_id
        client.log_batch(made, params=[Param("scheme", run.scheme), Param("seed", str(run.seed))])
        now = int(1000 * time.time())
        metrics = [
            Metric(name, value, now, number)
            for number, values in run.rounds
            for name, value in values.items()
        ]
        # MLflow takes at most a thousand at once.
        for start in range(0, len(metrics), 1000):
            client.log_batch(made, metrics=metrics[start : start + 1000])
        if run.config.exists():
            client.log_artifact(made, str(run.config))
        client.set_terminated(made)
        ids.append(made)
    return ids


def _wandb(wandb: Any, project: str, runs: list[_Run], options: Mapping[str, Any]) -> list[str]:
    ids = []
    for run in runs:
        config = {"scheme": run.scheme, "seed": run.seed}
        if run.config.exists():
            config["config.toml"] = run.config.read_text(encoding="utf-8")
        made = wandb.init(
            **{"project": project, "name": run.name, "group": run.scheme, **options}, config=config
        )
        for number, values in run.rounds:
            made.log(values, step=number)
        made.finish()
        ids.append(str(made.id))
    return ids
