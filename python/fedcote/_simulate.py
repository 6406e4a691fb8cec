"""Whole comparisons of schemes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _fedcote, _progress, _task
from ._task import Task


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
    task: Task | Callable[[int], Task] | None = None,
    progress: bool | None = None,
) -> Simulation:
    """Runs every scheme of a scenario with every seed.

    Parameters
    ----------
    scenario
        A preset's name, a TOML file, or the same as nested dictionaries.
    settings
        Changes to it, by dotted names, as ``{"rounds": 10, "network.kind": "perfect"}``.
    out
        The folder for what is written, with a report (``report.html``); by default nothing is kept.
    resume
        Whether to continue in a folder that has runs already.
    threads
        How many; 0 for one per core. Results do not depend on it. With a ``task`` of your own 0 means 1: one
        run at a time; with more, as many runs call the task at the same time, each from a thread.
    task
        What is learnt instead of the scenario's data and model: a :class:`Task`, or a function that makes one
        for a seed.
    progress
        Whether to show a bar; by default in a terminal and in a notebook.

    Ctrl-C finishes the round under way and saves; ``resume=True`` with the same ``out`` then continues.
    Without ``out`` the error says which folder that is. The second Ctrl-C does not wait for the round. An
    exception in the code of a ``task`` is a :class:`TaskError` with that exception as its cause.

    >>> import fedcote
    >>> settings = {"rounds": 2, "seeds": [1], "schemes": ["fedavg"], "evaluate_every": 1}
    >>> found = fedcote.simulate("quickstart", settings)
    >>> found.rounds["round"].tolist(), len(found.summary["schemes"])
    ([1, 2], 1)
    """
    name, text = os.fspath(scenario) if not isinstance(scenario, Mapping) else "scenario", None
    if isinstance(scenario, Mapping):
        text = json.dumps(scenario, default=_plain)
    changes = [f"{key}={_toml(value)}" for key, value in (settings or {}).items()]
    tasks = None if task is None else _task.tasks(task)
    threads = 1 if tasks is not None and threads == 0 else int(threads)
    watch = _progress.watch(_fedcote.planned(name, text, changes), progress)
    folder = Path(tempfile.mkdtemp(prefix="fedcote-") if out is None else out)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        summary, runs = _fedcote.simulate(
            name, text, changes, str(folder), threads, bool(resume), tasks, watch
        )
        found = Simulation(_rounds(folder, runs), json.loads(summary))
        if out is not None:
            _fedcote.report(str(folder))
    except (KeyboardInterrupt, _task.TaskError):
        # Whoever gave no folder does not lose the rounds either.
        if out is None and any(folder.glob("*/*/checkpoint")):
            print(f"To continue, add: out={str(folder)!r}, resume=True", file=sys.stderr)
            out = folder
        raise
    finally:
        watch.close()
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
    return found


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
