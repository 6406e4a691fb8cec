"""A strategy's state on disk: one JSON file that names files of arrays, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._memory import Arrays

#: What arrays other than the model's are called in the names of their files: updates, calm, moments.
KIND = r"[a-z0-9_-]+"


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
    _sweep(file, previous)
    previous = previous or set()
    model = f"{file.name}.round-{state['round']}.npz"
    _write_arrays(file, model, arrays)
    names = {}
    for client, (round_, update) in updates.items():
        # Clients may be called anything, files may not.
        digest = hashlib.sha256(client.encode()).hexdigest()[:24]
        names[client] = f"{file.name}.update-{digest}.round-{round_}.npz"
        if names[client] not in previous:
            _write_arrays(file, names[client], update)
    calm_name = None
    if calm is not None:
        calm_name = f"{file.name}.calm.round-{calm[0]}.npz"
        if calm_name not in previous:
            _write_arrays(file, calm_name, calm[1])
    moment_names = {}
    for moment, values in (moments or {}).items():
        moment_names[moment] = f"{file.name}.{moment}.round-{state['round']}.npz"
        _write_arrays(file, moment_names[moment], values)
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
        stream.write(json.dumps({**document, "checksum": _checksum(document)}).encode())
    _flush_folder(file.parent)  # the new state must be there before files of the old one go
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
        if not isinstance(state, dict):
            raise ValueError("it is no object of JSON")
        sum_ = state.pop("checksum", None)  # early versions had none
        if sum_ is not None and sum_ != _checksum(state):
            raise ValueError("its checksum does not match")
        names = state["array_names"]
        files = {client: _beside(file, name) for client, name in state["updates"].items()}
        reading = _beside(file, state["arrays"])
        arrays = _read_arrays(reading, names)
        updates = {}
        for client, reading in files.items():
            updates[client] = _read_arrays(reading, names)
        calm = None
        if state.get("calm") is not None:
            reading = _beside(file, state["calm"])
            calm = _read_arrays(reading, names)
        moments = {}
        for moment, name in state.get("moments", {}).items():
            reading = _beside(file, name)
            moments[moment] = _read_arrays(reading, state["moment_arrays"])
    except FileNotFoundError:
        if reading == file:
            _refuse_arrays_alone(file)
            return None
        raise ValueError(f"{file}: names {reading}, which does not exist") from None
    except OSError as problem:
        raise ValueError(f"{reading}: cannot be read: {problem.strerror or problem}") from None
    except Exception as problem:
        # Damaged archives fail in many ways, deep documents with a RecursionError.
        raise ValueError(
            f"{reading}: is no state of a federation, or damaged ({problem or type(problem).__name__}); "
            f"restore it from a copy, or move {file} and its {file.name}.*.npz away to start again "
            "from nothing"
        ) from None
    return state, arrays, updates, calm, moments


def _named(file: Path) -> set[str] | None:
    """The files that a state names; ``None`` when there is no state, or none that can be understood."""
    try:
        state = json.loads(file.read_bytes())
        named = {state["arrays"], *state["updates"].values(), state.get("calm")}
        named.update(state.get("moments", {}).values())
        return {_beside(file, name).name for name in named if name is not None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _beside(file: Path, name: Any) -> Path:
    """A file that a state names: beside it, and one of its own."""
    if not isinstance(name, str) or not _own(file).fullmatch(name):
        raise ValueError(f"it names {name!r}, which is no file of its own")
    return file.with_name(name)


def _own(file: Path) -> re.Pattern[str]:
    """The names of a state's files of arrays."""
    return re.compile(re.escape(file.name) + rf"\.({KIND}\.)?round-[0-9]+\.npz")


def _arrays(file: Path) -> re.Pattern[str]:
    """The names of arrays that can be of this state only; their round is the last group."""
    # Not those of optimisers of one's own: `fed.mine` may be another state beside `fed`.
    kinds = r"(?:update-[0-9a-f]{24}\.|(?:calm|momentum|first|second)\.)?"
    return re.compile(re.escape(file.name) + rf"\.{kinds}round-([0-9]+)\.npz")


def _refuse_arrays_alone(file: Path) -> None:
    """Refuses to begin beside the arrays of a state that was moved away: new ones would replace them."""
    for name in sorted(os.listdir(file.parent)) if file.parent.is_dir() else ():
        found = _arrays(file).fullmatch(name)
        # A kill before the first state was there leaves arrays of round 1.
        if found and int(found[1]) > 1:
            raise ValueError(
                f"{file}: does not exist, but {name} does, arrays of such a state; restore it from a "
                f"copy, or move all its {file.name}.*.npz away too to start again from nothing"
            )


def _sweep(file: Path, named: set[str] | None) -> None:
    """Removes what a process that was killed left: temporary files, and arrays that the state does not
    name; without a state, which arrays are needed is unknown.
    """
    temporary = re.compile(rf"\.{re.escape(file.name)}\.[a-z0-9_]{{8}}\.part")
    for found in file.parent.iterdir():
        left = named is not None and found.name not in named and _arrays(file).fullmatch(found.name)
        if left or temporary.fullmatch(found.name):
            found.unlink(missing_ok=True)


def _checksum(document: Mapping[str, Any]) -> str:
    """A checksum of a document that tells accidents; the order of its keys does not count."""
    # As it reads back: whole numbers as keys are text then, pairs are lists.
    plain = json.dumps(json.loads(json.dumps(document)), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:32]


def _flush_folder(folder: Path) -> None:
    """Makes renamed files survive a power cut, where the system can flush folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _write_arrays(state: Path, name: str, arrays: Arrays) -> None:
    numbered: dict[str, Any] = {
        f"array-{index}": array for index, array in enumerate(arrays.values())
    }
    with _replacing(state, name) as stream:
        np.savez(stream, **numbered)


def _read_arrays(file: Path, names: list[str]) -> Arrays:
    with np.load(file, allow_pickle=False) as saved:
        return {name: saved[f"array-{index}"] for index, name in enumerate(names)}


class _replacing:
    """A temporary file of a state that takes its place, or that of its file ``name``."""

    def __init__(self, state: Path, name: str | None = None) -> None:
        self.state, self.file = state, state.with_name(name or state.name)

    def __enter__(self) -> Any:
        descriptor, self.temporary = tempfile.mkstemp(
            dir=self.file.parent, prefix=f".{self.state.name}.", suffix=".part"
        )
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
