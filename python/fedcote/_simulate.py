"""Whole comparisons of schemes."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _fedcote

#: What is told of a round, apart from scheme, seed and round itself.
_ALWAYS = ("attempts",)
_COUNTS = ("selected", "arrived")
_SOMETIMES = (
    "label_divergence_wanted",
    "label_divergence_realised",
    "train_loss",
    "test_loss",
    "test_accuracy",
)


@dataclass(frozen=True)
class Simulation:
    """What a comparison came to."""

    #: One entry per scheme, seed and round, as columns: draws, arrivals, attempts, divergences,
    #: and, where the model was evaluated, losses and accuracy (elsewhere NaN). A run that diverged
    #: ends with the round before.
    rounds: dict[str, np.ndarray]
    #: Mean and deviation over seeds of every scheme, as ``fedcote run --json`` prints them.
    summary: dict[str, Any]

    def frame(self) -> Any:
        """The rounds as a data frame of pandas, or else of polars."""
        for library in ("pandas", "polars"):
            try:
                return importlib.import_module(library).DataFrame(self.rounds)
            except ImportError:
                continue
        raise ImportError("frame: install pandas or polars, or use rounds, a dictionary of columns")

    def __repr__(self) -> str:
        names = ", ".join(scheme["name"] for scheme in self.summary["schemes"])
        return f"<Simulation of {names}: {len(self.rounds['round'])} rounds>"


def simulate(
    scenario: str | os.PathLike[str] | Mapping[str, Any] = "quickstart",
    settings: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int = 0,
) -> Simulation:
    """Runs every scheme of a scenario with every seed.

    Parameters
    ----------
    scenario
        A preset's name, a TOML file, or the same as nested dictionaries.
    settings
        Changes to it, by dotted names, as ``{"rounds": 10, "network.kind": "perfect"}``.
    out
        The folder for what is written; by default nothing is kept.
    resume
        Whether to go on in a folder that has runs already.
    threads
        How many; 0 for one a core. Results do not depend on it.

    Ctrl-C interrupts after the round under way; with ``out``, ``resume=True`` then goes on.

    >>> import fedcote
    >>> settings = {"rounds": 2, "seeds": [1], "schemes": ["fedavg"], "evaluate_every": 1}
    >>> found = fedcote.simulate("quickstart", settings)
    >>> found.rounds["round"].tolist(), len(found.summary["schemes"])
    ([1, 2], 1)
    """
    text = None
    if isinstance(scenario, Mapping):
        scenario, text = "scenario", json.dumps(scenario, default=_plain)
    changes = [f"{key}={_toml(value)}" for key, value in (settings or {}).items()]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if out is None else out)
        folder.mkdir(parents=True, exist_ok=True)
        document, seeds = _fedcote.simulate(
            os.fspath(scenario), text, changes, str(folder), int(threads), bool(resume)
        )
        summary = json.loads(document)
        return Simulation(_rounds(folder, summary, seeds), summary)


def _rounds(
    folder: Path, summary: Mapping[str, Any], seeds: Iterable[int]
) -> dict[str, np.ndarray]:
    names = ("scheme", "seed", "round", *_COUNTS, *_ALWAYS, *_SOMETIMES)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for scheme in summary["schemes"]:
        for seed in sorted(seeds):
            run = folder / scheme["name"] / str(seed)
            for line in (run / "metrics.jsonl").read_text().splitlines():
                report = json.loads(line)
                if "round" not in report:  # the last line of a run that diverged
                    continue
                columns["scheme"].append(scheme["name"])
                columns["seed"].append(seed)
                columns["round"].append(report["round"])
                for name in _COUNTS:
                    columns[name].append(sum(count for _, count in report[name]))
                for name in _ALWAYS:
                    columns[name].append(report[name])
                for name in _SOMETIMES:
                    value = report.get(name)
                    columns[name].append(np.nan if value is None else value)
    return {name: np.array(column) for name, column in columns.items()}


def _toml(value: Any) -> str:
    """A value as TOML: what JSON writes for numbers, text, truth values and lists of them is."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"scenario: {value!r} is no value of a configuration")
