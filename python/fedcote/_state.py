"""A strategy's state on disk: one JSON file that names files of arrays, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._memory import Arrays


def write(
    file: Path,
    state: Mapping[str, Any],
    arrays: Arrays,
    updates: Mapping[str, tuple[int, Arrays]],
    calm: tuple[int, Arrays] | None = None,
    moments: Mapping[str, Arrays] | None = None,
) -> None:
    """Writes state, the model's arrays, remembered updates by client, the last calm model, and the
    moments of the server's optimiser.

    Updates and the calm model come with their rounds: those that the old state names are not
    written again. Whoever reads finds the old state or the new one, never a mixture.
    """
    previous = _named(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    model = f"{file.name}.round-{state['round']}.npz"
    _write_arrays(file.with_name(model), arrays)
    names = {}
    for client, (round_, update) in updates.items():
        # Clients may be called anything, files may not.
        digest = hashlib.sha256(client.encode()).hexdigest()[:24]
        names[client] = f"{file.name}.update-{digest}.round-{round_}.npz"
        if names[client] not in previous:
            _write_arrays(file.with_name(names[client]), update)
    calm_name = None
    if calm is not None:
        calm_name = f"{file.name}.calm.round-{calm[0]}.npz"
        if calm_name not in previous:
            _write_arrays(file.with_name(calm_name), calm[1])
    moment_names = {}
    for moment, values in (moments or {}).items():
        moment_names[moment] = f"{file.name}.{moment}.round-{state['round']}.npz"
        _write_arrays(file.with_name(moment_names[moment]), values)
    document = {
        **state,
        "arrays": model,
        "array_names": list(arrays),
        "updates": names,
        "calm": calm_name,
        "moments": moment_names,
        "moment_arrays": list(next(iter((moments or {}).values()), {})),
    }
    with _replacing(file) as stream:
        stream.write(json.dumps(document).encode())
    for old in previous - {model, calm_name, *names.values(), *moment_names.values()}:
        file.with_name(old).unlink(missing_ok=True)


def read(
    file: Path,
) -> tuple[dict[str, Any], Arrays, dict[str, Arrays], Arrays | None, dict[str, Arrays]] | None:
    """State, the model's arrays, remembered updates, the calm model if there is one, and moments.

    ``None`` when there is no such file.
    """
    reading = file
    try:
        state = json.loads(file.read_bytes())
        names = state["array_names"]
        files = {client: file.with_name(name) for client, name in state["updates"].items()}
        reading = file.with_name(state["arrays"])
        arrays = _read_arrays(reading, names)
        updates = {}
        for client, reading in files.items():
            updates[client] = _read_arrays(reading, names)
        calm = None
        if state.get("calm") is not None:
            reading = file.with_name(state["calm"])
            calm = _read_arrays(reading, names)
        moments = {}
        for moment, name in state.get("moments", {}).items():
            reading = file.with_name(name)
            moments[moment] = _read_arrays(reading, state["moment_arrays"])
    except FileNotFoundError:
        if reading == file:
            return None
        raise ValueError(f"{file}: names {reading}, which does not exist") from None
    except OSError:
        raise
    except Exception as problem:
        # Damaged archives fail in many ways.
        raise ValueError(
            f"{reading}: is no state of a federation, or damaged ({problem or type(problem).__name__}); "
            f"restore it from a copy, or move {file} away to start again from nothing"
        ) from None
    return state, arrays, updates, calm, moments


def _named(file: Path) -> set[str]:
    """The files that a state names."""
    try:
        state = json.loads(file.read_bytes())
        named = {state["arrays"], *state["updates"].values(), state.get("calm")}
        named.update(state.get("moments", {}).values())
        return {name for name in named if name is not None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def _write_arrays(file: Path, arrays: Arrays) -> None:
    numbered: dict[str, Any] = {
        f"array-{index}": array for index, array in enumerate(arrays.values())
    }
    with _replacing(file) as stream:
        np.savez(stream, **numbered)


def _read_arrays(file: Path, names: list[str]) -> Arrays:
    with np.load(file, allow_pickle=False) as saved:
        return {name: saved[f"array-{index}"] for index, name in enumerate(names)}


class _replacing:
    """A temporary file beside ``file`` that takes its place when all went well."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> Any:
        descriptor, self.temporary = tempfile.mkstemp(dir=self.file.parent, prefix=".fedcote-")
        self.stream = os.fdopen(descriptor, "wb")
        return self.stream

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        with self.stream:
            if kind is None:
                self.stream.flush()
                os.fsync(self.stream.fileno())
        if kind is None:
            os.replace(self.temporary, self.file)
        else:
            os.unlink(self.temporary)
