"""Whole comparisons of schemes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from . import _fedcote, _progress, _scheme, _task
from ._scheme import Scheme
from ._task import Task

#: As many as the command takes.
_MOST_THREADS = 1024


@dataclass(frozen=True)
class Figure:
    """A figure: shown by notebooks, saved as SVG."""

    #: What to see in it.
    caption: str
    #: The drawing.
    svg: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to an SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, eq=False)
class Simulation:
    """What a comparison came to.

    Attributes
    ----------
    rounds
        One entry per scheme, seed and round, as columns: draws, arrivals, attempts, divergences, costs (``seconds`` on
        the simulated clock, ``bytes_up``, ``bytes_down``, ``joules``), and, where the
        model was evaluated, losses, accuracy and what else the task reports (elsewhere NaN). A run that diverged
        ends with the round before.
    summary
        Mean and deviation over seeds of every scheme, as ``fedcote run --json`` prints them.
    figures
        The figures of the report, by name.
    """

    rounds: dict[str, NDArray[Any]]
    summary: dict[str, Any]
    figures: dict[str, Figure] = field(default_factory=dict, repr=False)
    #: The table of the report as HTML.
    table: str = field(default="", repr=False)

    def plot(self, name: str = "accuracy") -> Figure:
        """A figure of the report: ``"accuracy"`` over rounds (the default), ``"tail"``, ``"train-loss"``,
        ``"test-loss"``, ``"labels"``, ``"clients"``, ``"arrivals"`` and others in ``figures``."""
        if name not in self.figures:
            known = ", ".join(self.figures) or "none"
            raise ValueError(f"plot: there is no figure {name!r}; there are: {known}")
        return self.figures[name]

    def differences(self, measure: str = "tail_accuracy") -> dict[str, dict[str, Any]]:
        """How much each scheme differs from the one that all are compared with (``against``), seed by seed: ``mean``,
        the 95 % interval of the mean (``low``, ``high``; absent with one seed), the seeds at which it is ``above`` and
        ``below``, and whether the interval leaves out 0 (``separable``). Measures are the names in ``summary``."""
        schemes = self.summary["schemes"]
        found = {s["name"]: s.get("differences", {}).get(measure) for s in schemes}
        if len(schemes) > 1 and not any(found.values()):
            known = ", ".join(sorted({name for s in schemes for name in s.get("differences", {})}))
            raise ValueError(f"differences: there is none in {measure!r}; there are: {known}")
        return {name: difference for name, difference in found.items() if difference}

    def frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """The rounds as a data frame of pandas or polars; by default of what is installed, pandas first."""
        return frame(self.rounds, library)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the rounds to a Parquet file, by polars, or by pandas with pyarrow."""
        try:
            self.frame("polars").write_parquet(os.fspath(path))
        except ImportError:
            try:
                self.frame("pandas").to_parquet(os.fspath(path))
            except ImportError as error:
                raise ImportError("to_parquet: install polars, or pandas with pyarrow") from error

    def __repr__(self) -> str:
        names = ", ".join(scheme["name"] for scheme in self.summary["schemes"])
        return f"<Simulation of {names}: {len(self.rounds['round'])} rounds>"

    def _repr_html_(self) -> str:
        shown = [self.table]
        if "accuracy" in self.figures:
            shown.append(self.figures["accuracy"].svg)
        return "\n".join(shown)


@dataclass(frozen=True, eq=False)
class Sweep:
    """What a grid of comparisons came to.

    Attributes
    ----------
    summary
        The combinations of values with their summaries, as ``fedcote run --sweep … --json`` prints them.
    figures
        A figure of every measure against the keys that are swept, by name.
    """

    summary: dict[str, Any]
    figures: dict[str, Figure] = field(default_factory=dict, repr=False)
    #: The table of the report as HTML.
    table: str = field(default="", repr=False)

    @property
    def points(self) -> list[dict[str, Any]]:
        """One entry per combination: ``settings``, ``folder``, ``schemes`` as in :attr:`Simulation.summary`."""
        points: list[dict[str, Any]] = self.summary["points"]
        return points

    def plot(self, name: str = "tail_accuracy") -> Figure:
        """A figure: of ``"tail_accuracy"`` (the default), ``"train_loss"`` and others in ``figures``."""
        if name not in self.figures:
            known = ", ".join(self.figures) or "none"
            raise ValueError(f"plot: there is no figure {name!r}; there are: {known}")
        return self.figures[name]

    def frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """A row per combination and scheme: the settings, and mean (``NAME``) and deviation (``NAME_std``) of every
        measure, as a data frame of pandas or polars."""
        rows = [(point, scheme) for point in self.points for scheme in point["schemes"]]
        columns: dict[str, list[Any]] = {
            key: [point["settings"][key] for point, _ in rows] for key in self.summary["keys"]
        }
        columns["scheme"] = [scheme["name"] for _, scheme in rows]
        spread = {k for _, scheme in rows for k, v in scheme.items() if _is_spread(v)}
        for name in sorted(spread):
            values = [scheme[name] or {} for _, scheme in rows]
            columns[name] = [value.get("mean", float("nan")) for value in values]
            columns[f"{name}_std"] = [value.get("std", float("nan")) for value in values]
        return frame(columns, library)

    def __repr__(self) -> str:
        return f"<Sweep of {', '.join(self.summary['keys'])}: {len(self.points)} settings>"

    def _repr_html_(self) -> str:
        shown = [self.table]
        if self.figures:
            shown.append(next(iter(self.figures.values())).svg)
        return "\n".join(shown)


def _is_spread(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"mean", "std"}


def frame(columns: Mapping[str, Any], library: str | None) -> Any:
    """A data frame of this library, or of the first that is installed."""
    if library not in (None, "pandas", "polars"):
        raise ValueError(f'frame: expected "pandas" or "polars", is {library!r}')
    for name in ("pandas", "polars") if library is None else (library,):
        try:
            return importlib.import_module(name).DataFrame(dict(columns))
        except ImportError:
            continue
    wanted = library or "pandas or polars"
    raise ImportError(f"frame: install {wanted}, or use the dictionary of columns")


@overload
def simulate(
    scenario: str | os.PathLike[str] | Mapping[str, Any] = "quickstart",
    settings: Mapping[str, Any] | None = None,
    *,
    sweep: None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int = 0,
    task: Task | Callable[[int], Task] | None = None,
    schemes: Sequence[str | Scheme] | None = None,
    progress: bool | None = None,
    on: str | None = None,
    address: str | None = None,
    cpus_per_run: int = 1,
    rounds_per_task: int | None = None,
    workers: int | None = None,
) -> Simulation: ...


@overload
def simulate(
    scenario: str | os.PathLike[str] | Mapping[str, Any] = "quickstart",
    settings: Mapping[str, Any] | None = None,
    *,
    sweep: Mapping[str, Sequence[Any]],
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int = 0,
    task: Task | Callable[[int], Task] | None = None,
    schemes: Sequence[str | Scheme] | None = None,
    progress: bool | None = None,
    on: str | None = None,
    address: str | None = None,
    cpus_per_run: int = 1,
    rounds_per_task: int | None = None,
    workers: int | None = None,
) -> Sweep: ...


def simulate(
    scenario: str | os.PathLike[str] | Mapping[str, Any] = "quickstart",
    settings: Mapping[str, Any] | None = None,
    *,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int = 0,
    task: Task | Callable[[int], Task] | None = None,
    schemes: Sequence[str | Scheme] | None = None,
    progress: bool | None = None,
    on: str | None = None,
    address: str | None = None,
    cpus_per_run: int = 1,
    rounds_per_task: int | None = None,
    workers: int | None = None,
) -> Simulation | Sweep:
    """Runs every scheme of a scenario with every seed.

    Parameters
    ----------
    scenario
        A preset's name, a TOML file, or the same as nested dictionaries.
    settings
        Changes to it, by dotted names, as ``{"rounds": 10, "network.kind": "perfect"}``.
    sweep
        Keys with several values each, as ``{"network.outdoor_excess_loss_db": [0, 10, 20]}``: the comparison is run with
        every combination, and a :class:`Sweep` is returned.
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
    schemes
        What is compared instead of the scenario's schemes: names, and objects of your own (:class:`Scheme`).
    progress
        Whether to show a bar; by default in a terminal and in a notebook.
    on
        ``"ray"`` to compute on a cluster of Ray (``pip install 'fedcote[ray]'``) instead of threads. The folder
        stays here and is the same.
    address
        The cluster: ``"HOST:PORT"``, ``"auto"`` (the default) for one that this machine belongs to, ``"local"``
        to start one. A connection that this process has already is used instead.
    cpus_per_run
        Processors that a run, or one of the ``workers``, gets on the cluster.
    rounds_per_task
        Rounds that one task of the cluster computes, and that are lost with a node; by default
        ``checkpoint_every`` of the scenario.
    workers
        For a slow ``task`` of your own: instead of whole runs, the clients of each round train on so many
        workers of the cluster, and the rest happens here.

    Ctrl-C finishes the round under way and saves; ``resume=True`` with the same ``out`` then continues.
    Without ``out`` the error says which folder that is. The second Ctrl-C does not wait for the round. An
    exception in the code of a task or scheme is a :class:`TaskError` with that exception as its cause.

    >>> import fedcote
    >>> settings = {"rounds": 2, "seeds": [1], "schemes": ["fedavg"], "evaluate_every": 1}
    >>> found = fedcote.simulate("quickstart", settings)
    >>> found.rounds["round"].tolist(), len(found.summary["schemes"])
    ([1, 2], 1)
    """
    name, text = os.fspath(scenario) if not isinstance(scenario, Mapping) else "scenario", None
    if isinstance(scenario, Mapping):
        text = json.dumps(scenario, default=_plain)
    listed, own = _scheme.settings(schemes) if schemes is not None else ({}, {})
    changed = {**(settings or {}), **listed}
    changes = [f"{key}={_toml(value)}" for key, value in changed.items()]
    changes += [f"sweep.{key}={_toml(list(values))}" for key, values in (sweep or {}).items()]
    tasks = None if task is None else _task.tasks(task)
    if not 0 <= int(threads) <= _MOST_THREADS:
        raise ValueError(f"threads: must be from 0 to {_MOST_THREADS}, is {threads}")
    threads = 1 if (tasks is not None or own) and threads == 0 else int(threads)
    if on not in (None, "ray"):
        raise ValueError(f'on: {on!r} is not known; "ray" is')
    if on is None and (address, cpus_per_run, rounds_per_task, workers) != (None, 1, None, None):
        raise ValueError('address, cpus_per_run, rounds_per_task and workers belong to on="ray"')
    if workers is not None and (tasks is None or rounds_per_task is not None or workers < 1):
        raise ValueError("workers: 1 or more, for a task of your own, without rounds_per_task")
    if workers is not None and getattr(task, "batched", False):
        raise ValueError(
            "workers: they train clients one by one, with other bits than this task, which trains "
            "those of a round at once; make it with batched=False"
        )
    planned = _fedcote.planned(name, text, changes)
    cluster, crew = None, None
    if workers is not None and tasks is not None:
        from . import _actors

        crew = _actors.Crew(tasks.make, workers, cpus_per_run, address)
        tasks = _actors.spread(tasks, crew)
    elif on is not None:
        from . import _ray

        cluster = _ray.Cluster(address, cpus_per_run, rounds_per_task, tasks, own)
    watch = _progress.watch(planned, progress)
    folder = Path(tempfile.mkdtemp(prefix="fedcote-") if out is None else out)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        summary, runs = _fedcote.simulate(
            name, text, changes, str(folder), threads, bool(resume), tasks, own, cluster, watch
        )
        table, figures = _fedcote.figures(str(folder))
        drawn = {name: Figure(caption, svg) for name, caption, svg in figures}
        found: Simulation | Sweep
        if runs:
            found = Simulation(_rounds(folder, runs), json.loads(summary), drawn, table)
        else:
            found = Sweep(json.loads(summary), drawn, table)
        if out is not None:
            _fedcote.report(str(folder))
    except (KeyboardInterrupt, _task.TaskError):
        # Whoever gave no folder does not lose the rounds either.
        if out is None and any(folder.glob("**/checkpoint")):
            print(f"To continue, add: out={str(folder)!r}, resume=True", file=sys.stderr)
            out = folder
        raise
    finally:
        watch.close()
        if crew is not None:
            crew.close()
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
    return found


def _rounds(folder: Path, runs: list[tuple[str, int]]) -> dict[str, NDArray[Any]]:
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
