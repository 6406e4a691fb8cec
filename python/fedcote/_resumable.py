"""What outlives a run of Flower: the state of the strategy, in memory and in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord

from . import _state
from ._control import Control
from ._memory import Arrays
from ._training import Training


class Resumable(Training):
    """Training that goes on from a saved state."""

    state_file: Path | None

    def state(self) -> dict[str, Any]:
        """Everything but the model and the updates in memory, as data that JSON can hold."""
        return {
            "round": self._done,
            "aggregation": self.aggregation,
            "selector": self.selector.state(),
            "directory": self.directory.state(),
            "memory": None if self.memory is None else self.memory.state(),
            "optimizer": None if self.optimizer is None else self.optimizer.state(),
            "privacy": None if self.privacy is None else self.privacy.state(),
            "history": self.history[-100:],
        }

    def restore(
        self,
        state: Mapping[str, Any],
        updates: Mapping[str, Arrays] | None = None,
        calm: Arrays | None = None,
        moments: Mapping[str, Arrays] | None = None,
    ) -> None:
        """Goes on from a saved :meth:`state`; the options must be those it was saved with.

        ``updates`` is what ``memory.updates`` was then; without it nothing is remembered. ``calm``
        is the model in ``memory.calm``, if there was one, ``moments`` the optimiser's arrays.
        """
        try:
            if state["aggregation"] != self.aggregation:
                raise ValueError(
                    f"state: was saved with aggregation {state['aggregation']!r}, this is "
                    f"{self.aggregation!r}; use the same, or start again from nothing"
                )
            saved, ours = state["selector"]["core"], self.selector.state()["core"]
            for part in ("seed", "choices", "kind"):
                if saved[part] != ours[part]:
                    raise ValueError(
                        f"state: was saved with {part} {saved[part]}, this is {ours[part]}; "
                        "use the same options, or start again from nothing"
                    )
            groups, known = self.selector.groups, state["selector"].get("groups", [])
            gone = [name for name in known if name not in groups]
            if gone:
                raise ValueError(
                    f"state: was saved with group {gone[0]!r}, which groups= has not; give it, with 0 "
                    "if it is never down, or start again from nothing"
                )
            self.selector.restore(state["selector"])
            self.selector.set_groups(groups)  # measured anew, perhaps
            self.directory.restore(state["directory"])
            for name, group in self.directory.groups.items():
                if group not in known:
                    self.directory.join(name)
            if self.memory is not None:
                self.memory.clear()
                if updates is not None and isinstance(self.memory, Control):
                    self.memory.restore(state["memory"], updates, calm)
                elif updates is not None:
                    self.memory.restore(state["memory"], updates)
            for part, ours_now in (("optimizer", self.optimizer), ("privacy", self.privacy)):
                if (state.get(part) is None) != (ours_now is None):
                    raise ValueError(
                        f"state: was saved {'with' if ours_now is None else 'without'} {part}; use "
                        "the same options, or start again from nothing"
                    )
            if self.optimizer is not None:
                self.optimizer.restore(state["optimizer"], moments or {})
            if self.privacy is not None:
                self.privacy.restore(state["privacy"])
            self.history = list(state["history"])
            self._done = int(state["round"])
        except (KeyError, TypeError, AttributeError) as problem:
            raise ValueError(f"state: {problem!r} is missing or wrong") from None

    def _load(self, initial: ArrayRecord) -> ArrayRecord | None:
        found = None if self.state_file is None else _state.read(self.state_file)
        if found is None:
            return None
        state, arrays, updates, calm, moments = found
        shapes = {name: tuple(array.shape) for name, array in initial.items()}
        for found_arrays in (arrays, *updates.values(), *([] if calm is None else [calm])):
            if {name: array.shape for name, array in found_arrays.items()} != shapes:
                raise ValueError(
                    f"{self.state_file}: holds another model; move it and its .npz files away"
                )
        self.restore(state, updates, calm, moments)
        return ArrayRecord({name: Array(array) for name, array in arrays.items()})

    def _save(self, arrays: ArrayRecord) -> None:
        if self.state_file is not None:
            model = {name: array.numpy() for name, array in arrays.items()}
            updates, calm = {}, None
            if self.memory is not None:
                rounds = self.memory.rounds
                updates = {name: (rounds[name], kept) for name, kept in self.memory.updates.items()}
            if isinstance(self.memory, Control):
                calm = self.memory.calm
            moments = {} if self.optimizer is None else self.optimizer.arrays
            _state.write(self.state_file, self.state(), model, updates, calm, moments)
