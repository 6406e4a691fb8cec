"""A strategy's state on disk: one JSON file that names a file of arrays, replaced as a whole."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write(file: Path, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes state and arrays. Whoever reads finds the old state or the new one, never a mixture."""
    previous = _arrays_file(file)
    name = f"{file.stem}.round-{state['round']}.npz"
    file.parent.mkdir(parents=True, exist_ok=True)
    with _replacing(file.with_name(name)) as stream:
        numbered: dict[str, Any] = {
            f"array-{index}": array for index, array in enumerate(arrays.values())
        }
        np.savez(stream, **numbered)
    document = {**state, "arrays": name, "array_names": list(arrays)}
    with _replacing(file) as stream:
        stream.write(json.dumps(document).encode())
    if previous is not None and previous.name != name:
        previous.unlink(missing_ok=True)


def read(file: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """State and arrays; ``None`` when there is no such file."""
    try:
        state = json.loads(file.read_bytes())
        names = state["array_names"]
        with np.load(file.with_name(state["arrays"]), allow_pickle=False) as saved:
            arrays = {name: saved[f"array-{index}"] for index, name in enumerate(names)}
    except FileNotFoundError as missing:
        if Path(missing.filename) == file:
            return None
        raise ValueError(f"{file}: names {missing.filename}, which does not exist") from None
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(
            f"{file}: is no state of a federation ({problem}); move it away to start afresh"
        ) from None
    return state, arrays


def _arrays_file(file: Path) -> Path | None:
    try:
        return file.with_name(json.loads(file.read_bytes())["arrays"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
