"""Runs on a cluster of Ray: a task per stretch of rounds, from the bytes of a state to bytes that the driver writes."""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from . import _fedcote, _task

#: Seconds between two looks at how many processors the cluster has.
LOOK = 2.0

#: Seconds to wait for an answer before it is seen whether the user pressed Ctrl-C.
MOMENT = 0.2

#: Seconds to wait for a cluster to be reached.
PATIENCE = 10.0


class Cluster:
    """Computes stretches of runs on a cluster of Ray.

    Ray repeats what is lost with a node, without bound. What the work itself refuses, or an error in it, is an answer
    and never repeated.
    """

    def __init__(
        self,
        address: str | None = None,
        cpus_per_run: int = 1,
        rounds_per_task: int | None = None,
        tasks: Any = None,
        schemes: Mapping[str, Any] | None = None,
    ) -> None:
        if cpus_per_run < 1:
            raise ValueError(f"cpus_per_run: {cpus_per_run} is not a whole number of 1 or more")
        if rounds_per_task is not None and rounds_per_task < 1:
            raise ValueError(
                f"rounds_per_task: {rounds_per_task} is not a whole number of 1 or more"
            )
        self.rounds = rounds_per_task
        self._cpus = cpus_per_run
        self._ray = connect(address)
        options = {"num_cpus": cpus_per_run, "max_retries": -1, "retry_exceptions": False}
        self._task = self._ray.remote(**options)(_stretch())
        self._own = self._ray.put((tasks, dict(schemes or {})))
        #: Tells workers that the same scenario comes with other code of the user's.
        self._mark = "" if tasks is None and not schemes else f"# {uuid.uuid4()}\n"
        self._pending: dict[Any, tuple[int, tuple[Any, ...]]] = {}
        self._room = 0
        self._looked = 0.0
        if self.room() == 0:
            most = max((node.get("CPU", 0) for node in self._nodes()), default=0)
            raise ValueError(
                f"cpus_per_run: {cpus_per_run} processors, but no node of the cluster has more than {most:g}"
            )

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def room(self) -> int:
        """How many stretches to have on the way: two for each that can be computed at the same time, so that no
        processor waits for the driver, and a cluster that can grow does."""
        now = time.monotonic()
        if self._room == 0 or now - self._looked > LOOK:
            slots = sum(int(node.get("CPU", 0) // self._cpus) for node in self._nodes())
            self._room, self._looked = 2 * slots, now
        return self._room

    def submit(
        self, number: int, scenario: str, scheme: str, seed: int, state: bytes | None, rounds: int
    ) -> None:
        """Sends a stretch; its answer comes under this number."""
        self._send(number, (self._cpus, self._mark + scenario, scheme, seed, state, rounds))

    def _send(self, number: int, arguments: tuple[Any, ...]) -> None:
        reference = self._task.remote(_fedcote.__version__, arguments, self._own)
        self._pending[reference] = number, arguments

    def wait(self) -> list[tuple[int, bytes]]:
        """What is done after a moment."""
        pending = list(self._pending)
        ready, _ = self._ray.wait(pending, num_returns=1, timeout=MOMENT)
        if ready:
            ready, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        done = []
        for reference in ready:
            number, arguments = self._pending.pop(reference)
            try:
                result = self._ray.get(reference)
            except self._ray.exceptions.ObjectLostError:
                # The node that had the answer is gone: a stretch is the same the second time.
                self._send(number, arguments)
                continue
            except self._ray.exceptions.RayError as error:
                raise RuntimeError(f"Ray: {last_line(error)}") from None
            if isinstance(result, bytes):
                done.append((number, result))
                continue
            kind, reason = result
            raise {"refused": ValueError, "task": _task.TaskError}.get(kind, RuntimeError)(reason)
        return done

    def cancel(self) -> None:
        """Forgets all that was sent."""
        for reference in self._pending:
            self._ray.cancel(reference, force=True)
        self._pending.clear()


def _stretch() -> Callable[..., bytes | tuple[str, str]]:
    # A function inside another is sent as code, not by its name: it can tell that its own package is missing.
    def stretch(
        version: str, arguments: tuple[Any, ...], own: tuple[Any, Any]
    ) -> bytes | tuple[str, str]:
        import ray

        util: Any = ray.util
        node = f"node {util.get_node_ip_address()}"
        try:
            from fedcote import _fedcote as found
            from fedcote._task import TaskError
        except ImportError as error:
            return "refused", f"{node}: {error}; install fedcote there"
        if found.__version__ != version:
            versions = f"fedcote {found.__version__}, the driver has {version}"
            return "refused", f"{node}: has {versions}; install the same version everywhere"
        try:
            return bytes(found.stretch(*(*arguments, *own)))
        except Exception as error:
            kinds = {ValueError: "refused", TaskError: "task"}
            kind = next((kind for type, kind in kinds.items() if isinstance(error, type)), "failed")
            return kind, f"{node}: {' '.join(str(error).split()) or type(error).__name__}"

    return stretch


def last_line(error: BaseException) -> str:
    """The end of what Ray tells at length."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def connect(address: str | None) -> Any:
    """Ray, connected with the cluster at an address: ``auto`` for one that runs on this machine, ``local`` for one
    that ends with this process. A connection that this process has already is kept."""
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise ValueError(
            "Ray is not installed; install it with: pip install 'fedcote[ray]'"
        ) from None
    if ray.is_initialized():
        return ray
    address = address or "auto"
    _reachable(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
    try:
        ray.init(address=address, **options)
    except Exception as error:
        raise ValueError(_nobody(address, str(error).splitlines()[0])) from None
    return ray


def _nobody(address: str, reason: str) -> str:
    start = "start one with `ray start --head`, or use the address `local` for this machine alone"
    return f"no Ray cluster at `{address}` ({reason.rstrip('.')}); {start}"


def _reachable(address: str) -> None:
    """Sees whether anybody listens at HOST:PORT: Ray itself tries for a long time and tells it at length."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ValueError(_nobody(address, str(error))) from None
