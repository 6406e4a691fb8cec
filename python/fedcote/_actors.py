"""One run over many machines: the clients of a task train on actors of a Ray cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _ray, _task


class Worker:
    """Trains clients, on some machine. It makes the tasks that it needs, so that their data need not travel."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self._make = make
        self._tasks: dict[int, Any] = {}

    def train(self, seed: int, shared: tuple[Any, Any], job: _task.Job) -> Any:
        """The model of a client after its training; ``shared`` is the model that it starts from, and the global one
        if that is another."""
        if seed not in self._tasks:
            self._tasks[seed] = self._make(seed)
        task, (start, anchor) = self._tasks[seed], shared
        job = dataclasses.replace(job, anchor=start if anchor is None else anchor)
        if hasattr(task, "train"):
            return task.train(start, job)
        (model,) = task.train_many(start, [job])
        return model


class Crew:
    """Workers as actors. A worker that is lost with its node begins again elsewhere, and so does what it did."""

    def __init__(
        self, make: Callable[[int], Any], workers: int, cpus: int, address: str | None
    ) -> None:
        self._ray = _ray.connect(address)
        options: dict[str, Any] = {"num_cpus": cpus, "max_restarts": -1, "max_task_retries": -1}
        kind = self._ray.remote(**options)(Worker)
        shared = self._ray.put(make)
        self._workers = [kind.remote(shared) for _ in range(workers)]

    def train(self, seed: int, model: Any, jobs: Sequence[_task.Job]) -> list[Any]:
        """The models of the jobs, in their order, whoever is done first. The model is sent once per machine."""
        anchor = jobs[0].anchor
        shared = self._ray.put((model, None if _same(model, anchor) else anchor))
        free = list(self._workers)
        running: dict[Any, tuple[int, Any]] = {}
        models: list[Any] = [None] * len(jobs)
        for place, job in enumerate(jobs):
            if not free:
                free.append(self._collect(running, models))
            worker = free.pop()
            bare = dataclasses.replace(job, anchor=())
            running[worker.train.remote(seed, shared, bare)] = (place, worker)
        while running:
            self._collect(running, models)
        return models

    def _collect(self, running: dict[Any, tuple[int, Any]], models: list[Any]) -> Any:
        """Waits for a model, puts it in its place, and returns the worker, which is free again."""
        (done,), _ = self._ray.wait(list(running), num_returns=1)
        place, worker = running.pop(done)
        try:
            models[place] = self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            # What the user's code raised, as if it had been here.
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            raise RuntimeError(f"Ray: {_ray.last_line(error)}") from None
        return worker

    def close(self) -> None:
        """Ends the workers."""
        for worker in self._workers:
            self._ray.kill(worker)


class Spread:
    """A task whose clients train on a crew; all else happens here."""

    def __init__(self, task: Any, seed: int, crew: Crew) -> None:
        self.task, self._seed, self._crew = task, seed, crew
        self.initial, self.evaluate = task.initial, task.evaluate
        if hasattr(task, "loss"):
            self.loss = task.loss

    @property
    def labels(self) -> Any:
        return self.task.labels

    def train_many(self, model: Any, jobs: Sequence[_task.Job]) -> list[Any]:
        return self._crew.train(self._seed, model, jobs)


def spread(tasks: _task.Tasks, crew: Crew) -> _task.Tasks:
    """The same tasks, with their clients on a crew."""
    return _task.Tasks(lambda seed: Spread(tasks.make(seed), seed, crew), tasks.identity)


def _same(one: Any, other: Any) -> bool:
    """Whether two models of the same form have the same bits."""

    def bits(model: Any) -> list[bytes]:
        values = model.values() if hasattr(model, "values") else model
        return [np.ascontiguousarray(value).tobytes() for value in values]

    return len(one) == len(other) and bits(one) == bits(other)
