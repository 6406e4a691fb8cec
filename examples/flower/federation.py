"""Starts a whole federation on this computer: a SuperLink, SuperNodes, and a run of an app.

    python federation.py                       six clients; FedAvg, then FedCote with memory, with control
    python federation.py --set num-server-rounds=10 --set selected=12

Everything talks over 127.0.0.1, on ports that are free, and is stopped at the end, or by Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, below those that systems choose themselves: no connection takes one before Flower does."""
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", random.randrange(20_000, 32_768)))
                found.append(one.getsockname()[1])
    return found


class Federation:
    """A SuperLink and so many SuperNodes, until the end of the ``with`` block."""

    def __init__(self, clients: int, folder: str | Path) -> None:
        self.clients, self.folder = clients, Path(folder)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            # The parents start their children by name.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": str(self.folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            # Small matrices: one thread a client is fastest.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def __enter__(self) -> Federation:
        link, *nodes = free_ports(1 + self.clients)
        home = self.folder / "flwr"
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "local"\n[superlink.local]\n'
            f'address = "127.0.0.1:{link}"\ninsecure = true\n'
        )
        self.start(
            "superlink", "flower-superlink", "--insecure", "--host", "127.0.0.1",
            "--port", str(link), "--isolation", "subprocess",
        )  # fmt: skip
        wait_for(link)
        for client, port in enumerate(nodes):
            self.start(
                f"supernode-{client}", "flower-supernode", "--insecure",
                "--superlink", f"127.0.0.1:{link}", "--host", "127.0.0.1", "--port", str(port),
                "--node-config", f"partition-id={client} num-partitions={self.clients}",
                "--isolation", "subprocess",
            )  # fmt: skip
        return self

    def __exit__(self, *error: object) -> None:
        for ask in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            running = [process for process in self.processes if process.poll() is None]
            for process in running:
                process.send_signal(ask)
            deadline = time.monotonic() + 10
            for process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.1, deadline - time.monotonic()))
        for process in self.processes:  # children that outlived their parent
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for number in self._left():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)

    def _left(self) -> Iterator[int]:
        """Processes of this federation that left their group: its folder is in their environment."""
        mark = f"FLWR_HOME={self.environment['FLWR_HOME']}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)

    def start(self, name: str, *command: str) -> None:
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                command,
                env=self.environment,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        self.processes.append(process)

    def run(
        self,
        app: str | Path,
        config: dict[str, Any],
        seconds: float = 3600,
        until: Callable[[], bool] = lambda: False,
        stream: bool = False,
    ) -> str:
        """Runs an app, waits until it is over or ``until`` says so, and returns how that ended.

        With ``stream`` the ServerApp's log is printed as it is written.
        """
        settings = " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())
        flwr = ["flwr", "run", str(app), "local", "--format", "json"]
        if settings:
            flwr += ["--run-config", settings]
        run = str(self._ask(flwr)["run-id"])
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            # The log ends with the run. Asking for its state again and again would keep a core busy.
            # It begins at the beginning: once is enough.
            shown, stream = None if stream else subprocess.DEVNULL, False
            log = subprocess.Popen(
                ["flwr", "log", run, "local", "--stream"],
                env=self.environment,
                stdout=shown,
                stderr=shown,
            )
            self.processes.append(log)
            while log.poll() is None and time.monotonic() < deadline:
                time.sleep(0.5)
                if until():
                    log.terminate()
                    return "abandoned"
            listed = self._ask(["flwr", "list", "local", "--format", "json"])["runs"]
            status: str = next(one["status"] for one in listed if str(one["run-id"]) == run)
            if status.startswith("finished"):
                return status
            time.sleep(1)
        raise TimeoutError(f"run {run} did not end within {seconds} s")

    def _ask(self, command: list[str]) -> dict[str, Any]:
        for attempt in range(10):
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
            answer: dict[str, Any] = {}
            with contextlib.suppress(ValueError):
                answer = json.loads(done.stdout)
                if answer.get("success", True):
                    return answer
                if attempt == 2:  # an answer, again and again the same: waiting does not help
                    break
            time.sleep(attempt)
        said = str(answer.get("error-message") or done.stdout + done.stderr)
        raise RuntimeError(f"{' '.join(command[:2])}: {' '.join(said.split())}")


def wait_for(port: int, seconds: float = 300) -> None:
    """Waits until somebody listens."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise TimeoutError(f"nobody listens on port {port}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="of the app's configuration"
    )
    arguments = parser.parse_args()
    config = {key: _value(value) for key, _, value in (one.partition("=") for one in arguments.set)}
    with (
        tempfile.TemporaryDirectory() as folder,
        Federation(arguments.clients, folder) as federation,
    ):
        result = Path(folder) / "result.json"
        print(f"federation: {arguments.clients} clients are starting; logs in {folder}", flush=True)
        status = federation.run(HERE, {"result-file": str(result), **config}, 3600, stream=True)
        if status != "finished:completed":
            sys.exit(f"federation: the run ended as {status}; the reason is in the log above")
        print()
        print(result.with_suffix(".txt").read_text(), end="")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("federation: interrupted, everything is stopped")
    except (RuntimeError, TimeoutError) as error:
        sys.exit(f"federation: {error}")
