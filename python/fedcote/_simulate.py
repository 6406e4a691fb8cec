"""Whole comparisons of schemes."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _fedcote


@dataclass(frozen=True)
class Simulation:
    """What a comparison came to."""

    #: One entry per scheme, seed and round, as columns: draws, arrivals, attempts, divergences,
    #: and, where the model was evaluated, losses, accuracy and what else the task reports (elsewhere
    #: NaN). A run that diverged ends with the round before.
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
        Whether to continue in a folder that has runs already.
    threads
        How many; 0 for one per core. Results do not depend on it.

    Ctrl-C interrupts after the round under way; with ``out``, ``resume=True`` then continues.

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
        summary, runs = _fedcote.simulate(
            os.fspath(scenario), text, changes, str(folder), int(threads), bool(resume)
        )
        return Simulation(_rounds(folder, runs), json.loads(summary))


def _rounds(folder: Path, runs: list[tuple[str, int]]) -> dict[str, np.ndarray]:
    return {name: np.asarray(column) for name, column in _fedcote.rounds(folder, runs).items()}


def _toml(value: Any) -> str:
    """A value as TOML: what JSON writes for numbers, text, truth values and lists of them is."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"scenario: {value!r} is not a value of a configuration")
