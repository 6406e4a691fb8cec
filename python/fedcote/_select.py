"""Selection probabilities, and what given ones lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _check, _fedcote
from ._simulate import frame

#: How the problem is solved.
Method: TypeAlias = Literal["exact", "gradient"]
#: How clients are drawn.
Draws: TypeAlias = Literal["independent", "systematic"]
#: How uploads are sent.
Uploads: TypeAlias = Literal["per-draw", "per-client"]
#: What the selection aims at.
Aim: TypeAlias = Literal["appearance", "freshness"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What selection probabilities lead to. Arrays have one entry per client.

    Attributes
    ----------
    ids
        Names of the clients.
    selected
        Draws per round, K.
    weights
        Share of all samples, p.
    failure
        Failure probability of an upload, ε.
    selection
        Selection probability, s.
    appearance
        Effective appearance: the share in the aggregate, on average over draws and failures.
    label_divergence
        χ² between the labels of the aggregate and those of all samples.
    weight_divergence
        χ² between appearance and weights.
    expected_arrivals
        Draws per round whose upload arrives, on average.
    warnings
        What deserves attention, one line each.
    """

    ids: tuple[str, ...]
    selected: int
    weights: NDArray[np.float64]
    failure: NDArray[np.float64]
    selection: NDArray[np.float64]
    appearance: NDArray[np.float64]
    label_divergence: float
    weight_divergence: float
    expected_arrivals: float
    warnings: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [each.name for each in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """The entries per client as a data frame of pandas or polars; by default of what is installed."""
        return frame(self.columns(), library)

    def columns(self) -> dict[str, Any]:
        """The entries per client as columns, ready for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        return {
            "id": list(self.ids),
            "weight": self.weights,
            "failure": self.failure,
            "selection": self.selection,
            "appearance": self.appearance,
        }

    def to_dict(self) -> dict[str, Any]:
        """The document that ``fedcote evaluate --json`` and ``fedcote select --json`` print."""
        columns = {
            name: column if isinstance(column, list) else column.tolist()
            for name, column in self.columns().items()
        }
        rows = zip(*columns.values(), strict=True)
        return {
            "selected": self.selected,
            "label_divergence": self.label_divergence,
            "weight_divergence": self.weight_divergence,
            "expected_arrivals": self.expected_arrivals,
            "warnings": list(self.warnings),
            "clients": [dict(zip(columns, row, strict=True)) for row in rows],
        }

    def __repr__(self) -> str:
        more = f", {len(self.warnings)} warning(s)" if self.warnings else ""
        return (
            f"<{type(self).__name__} of {len(self.ids)} clients, selected={self.selected}, "
            f"label_divergence={self.label_divergence:.3g}, "
            f"expected_arrivals={self.expected_arrivals:.3g}{more}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Evaluation):
    """Selection probabilities with a certificate of optimality: an :class:`Evaluation` with more attributes.

    Attributes
    ----------
    eligible
        Who may be selected.
    target
        The appearance aimed at.
    optimality
        The residual that certifies the optimum.
    method
        ``"exact"`` or ``"gradient"``.
    """

    eligible: NDArray[np.bool_]
    target: NDArray[np.float64]
    optimality: float
    method: Method

    def columns(self) -> dict[str, Any]:
        return {**super().columns(), "eligible": self.eligible}

    def to_dict(self) -> dict[str, Any]:
        return {"method": self.method, **super().to_dict(), "optimality": self.optimality}


def choices(
    method: str,
    kappa: float,
    efficiency: float,
    k_apx: int | None,
    threshold: float,
    coverage: bool,
    draws: str,
    uploads: str,
    aim: str,
) -> dict[str, Any]:
    """The options of the solver, as the Rust half takes them."""
    return {
        "method": method,
        "kappa": float(kappa),
        "efficiency": float(efficiency),
        "k_apx": None if k_apx is None else _check.count("k_apx", k_apx),
        "threshold": float(threshold),
        "coverage": bool(coverage),
        "draws": draws,
        "uploads": uploads,
        "aim": aim,
    }


def _clients(
    labels: Any, failure: Any, ids: Sequence[Any] | None
) -> tuple[np.ndarray, np.ndarray, list[str] | None]:
    """Label counts, failure probabilities and names, from arrays or from a data frame."""
    if hasattr(labels, "columns") and hasattr(labels, "__getitem__"):
        frame, names = labels, list(labels.columns)
        found = [name for name in names if str(name).startswith("label_")]
        expected = [f"label_{label}" for label in range(len(found))]
        if not found or set(found) != set(expected):
            raise ValueError("labels: a frame needs the columns label_0, label_1, …, without a gap")
        labels = np.column_stack([np.asarray(frame[name], dtype=np.float64) for name in expected])
        if failure is None:
            if "failure" not in names:
                raise ValueError("failure: a frame needs the column failure, or pass failure=")
            failure = np.asarray(frame["failure"])
        if ids is None and "id" in names:
            ids = list(frame["id"])
    if failure is None:
        raise ValueError("failure: is missing; pass one probability per client")
    text = None if ids is None else [str(name) for name in ids]
    return _check.matrix("labels", labels), _check.vector("failure", failure), text


def _groups(
    frame: Any, group: Sequence[Any] | None, groups: Mapping[Any, float] | None, clients: int
) -> tuple[list[float], list[int | None]] | None:
    """How often each group is down, and the group of each client."""
    if group is None and "group" in getattr(frame, "columns", ()):
        group = list(frame["group"])
    if group is None and groups is None:
        return None
    if group is None:
        raise ValueError("group: is missing; pass the group of each client, or None")
    if len(group) != clients:
        raise ValueError(f"group: expected {clients} values, found {len(group)}")
    names = list(groups or {})

    def place(client: int, name: Any) -> int | None:
        if name is None or name == "" or name != name:  # a frame has NaN for nothing
            return None
        if name not in names:
            known = ", ".join(map(str, names)) or "none"
            raise ValueError(f"group: client {client + 1} is in {name!r}; groups has {known}")
        return names.index(name)

    of = [place(client, name) for client, name in enumerate(group)]
    return [float((groups or {})[name]) for name in names], of


def _names(ids: list[str] | None, clients: int) -> tuple[str, ...]:
    return tuple(ids or map(str, range(1, clients + 1)))


def _order(labels: Any, clients: int, draws: str) -> list[int]:
    """The order of systematic draws: by dominant label, then its share, then the client's number."""
    if draws != "systematic":
        return []
    if labels is None:
        raise ValueError("labels: systematic draws need the clients' label counts")
    counts = _check.matrix("labels", labels)
    if len(counts) != clients:
        raise ValueError(f"labels: expected {clients} rows, found {len(counts)}")
    dominant = counts.argmax(axis=1)
    share = counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1e-300)
    order: list[int] = np.lexsort((np.arange(clients), -share, dominant)).tolist()
    return order


def appearance(
    selection: Any,
    failure: Any,
    selected: int,
    *,
    draws: Draws = "independent",
    uploads: Uploads = "per-draw",
    labels: Any = None,
) -> NDArray[np.float64]:
    """The effective appearance: the share of each client in the aggregate, on average.

    ``selected`` clients are drawn with probabilities ``selection``, their uploads fail with
    probabilities ``failure``, and what arrives is averaged; when nothing arrives, uploads are
    repeated. Computed exactly, not sampled.

    Parameters
    ----------
    selection, failure
        Probabilities, one per client; ``selection`` sums to one.
    selected
        Draws per round, K.
    draws
        ``"independent"`` (with replacement) or ``"systematic"`` (evenly spaced points on the
        clients in the order of their labels, which ``labels`` must then give).
    uploads
        ``"per-draw"`` (every draw of a client uploads on its own) or ``"per-client"`` (one
        upload carries all draws of a client).

    By hand, for two clients and two draws, 0.25 + 2 · 0.25 · (1 − ½ · ½) = 0.625:

    >>> import fedcote
    >>> fedcote.appearance([0.5, 0.5], [0.0, 0.5], 2)
    array([0.625, 0.375])
    """
    selection = _check.vector("selection", selection)
    return _fedcote.appearance(
        selection,
        _check.vector("failure", failure),
        _check.count("selected", selected),
        draws,
        uploads,
        _order(labels, len(selection), draws),
    )


def select(
    labels: Any,
    failure: Any = None,
    selected: int = 10,
    *,
    ids: Sequence[Any] | None = None,
    group: Sequence[Any] | None = None,
    groups: Mapping[Any, float] | None = None,
    method: Method = "exact",
    threshold: float = 0.85,
    coverage: bool = True,
    kappa: float = 1000.0,
    efficiency: float = 0.0,
    k_apx: int | None = None,
    draws: Draws = "independent",
    uploads: Uploads = "per-draw",
    aim: Aim = "appearance",
) -> Selection:
    """Selection probabilities that make the labels of the aggregate those of all samples.

    Parameters
    ----------
    labels
        Samples of each label on each client, one row per client. Or a pandas or polars frame
        with the columns ``label_0``, ``label_1``, …, and, unless given here, ``failure`` and
        ``id``.
    failure
        Each client's probability that an upload fails.
    selected
        Draws per round, K; default 10.
    ids
        Names of the clients; else 1, 2, ….
    group, groups
        Clients that fail together: the group of each client (``None`` for none), and how often
        each group is down, on top of ``failure``: ``groups={"ap": 0.2}``. The result's
        ``failure`` is that of both.
    method
        ``"exact"`` (the global optimum of a convex problem) or ``"gradient"`` (the descent of
        the paper).
    threshold
        Clients that fail more often than this are not selected; from 0 to 1, default 0.85.
    coverage
        Whether a label all whose holders are above the threshold gets its most reliable
        holders back.
    kappa
        How much more labels matter than weights (exact); default 1000.
    efficiency
        The price of a failed draw (exact): above 0, reliable clients are preferred.
    k_apx
        Solve for this many draws instead (gradient).
    draws, uploads
        How clients are drawn and uploads are sent; see :func:`appearance`.
    aim
        ``"appearance"``: the labels of what arrives are those of all samples. ``"freshness"``:
        for a server that remembers everyone's latest update and averages all of them by the
        weights ``target``, so that labels are right whoever arrives; selection then keeps the
        updates from growing old, with probabilities ∝ target / √(1 − failure).

    Raises
    ------
    ValueError
        When the request makes no sense, with the same text as the command.

    >>> import fedcote
    >>> labels = [[50, 50], [100, 0], [0, 100]]
    >>> found = fedcote.select(labels, failure=[0.1, 0.5, 0.8], selected=10)
    >>> found.appearance.round(9)      # everybody appears by weight …
    array([0.33333333, 0.33333333, 0.33333333])
    >>> bool(found.selection[2] > found.selection[1] > found.selection[0])    # … who fails is drawn more
    True
    >>> found.optimality < 1e-9
    True
    """
    frame = labels
    labels, failure, names = _clients(labels, failure, ids)
    members = _groups(frame, group, groups, len(failure))
    selected = _check.count("selected", selected)
    options = choices(method, kappa, efficiency, k_apx, threshold, coverage, draws, uploads, aim)
    found = _fedcote.select(labels, failure, selected, names, members, options)
    found["warnings"] = tuple(found["warnings"])
    return Selection(ids=_names(names, len(failure)), selected=selected, **found)


def evaluate(
    labels: Any,
    failure: Any = None,
    selection: Any = None,
    selected: int = 10,
    *,
    ids: Sequence[Any] | None = None,
    group: Sequence[Any] | None = None,
    groups: Mapping[Any, float] | None = None,
    draws: Draws = "independent",
    uploads: Uploads = "per-draw",
) -> Evaluation:
    """What the selection probabilities ``selection`` lead to; other parameters as in :func:`select`.

    >>> import fedcote
    >>> labels = [[10, 0], [0, 10]]
    >>> fedcote.evaluate(labels, [0.0, 0.5], [0.5, 0.5], selected=2).label_divergence
    0.0625
    """
    frame = labels
    labels, failure, names = _clients(labels, failure, ids)
    if selection is None:
        if "selection" not in getattr(frame, "columns", ()):
            raise ValueError("selection: is missing; pass one probability per client")
        selection = np.asarray(frame["selection"])
    selection = _check.vector("selection", selection)
    selected = _check.count("selected", selected)
    members = _groups(frame, group, groups, len(failure))
    found = _fedcote.evaluate(labels, failure, selection, selected, names, members, draws, uploads)
    found["warnings"] = tuple(found["warnings"])
    return Evaluation(
        ids=_names(names, len(failure)),
        selected=selected,
        selection=selection.copy(),
        **found,
    )
