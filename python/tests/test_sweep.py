"""Sweeps, paired differences, and event files, as Python sees them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import fedcote

SMALL = {
    "rounds": 12,
    "seeds": [1, 2, 3],
    "schemes": ["fedavg", "fedcote"],
    "evaluate_every": 4,
    "data.set": "synthetic",
    "data.samples": 400,
}


def test_a_sweep_has_points_figures_and_a_frame(tmp_path: Path) -> None:
    found = fedcote.simulate(
        "quickstart", SMALL, sweep={"network.outdoor_excess_loss_db": [0, 26]}, out=tmp_path / "out"
    )
    assert [point["settings"] for point in found.points] == [
        {"network.outdoor_excess_loss_db": 0},
        {"network.outdoor_excess_loss_db": 26},
    ]
    assert "<svg" in found.plot().svg and "Sweep of network.outdoor_excess_loss_db" in repr(found)
    with pytest.raises(ValueError, match="there is no figure 'x'"):
        found.plot("x")
    assert (tmp_path / "out/outdoor_excess_loss_db=26/fedcote/3/finished.json").is_file()
    # The same as a comparison of its own.
    alone = fedcote.simulate("quickstart", {**SMALL, "network.outdoor_excess_loss_db": 26})
    for one, other in zip(found.points[1]["schemes"], alone.summary["schemes"], strict=True):
        assert one["tail_accuracy"] == other["tail_accuracy"]
        assert one.get("differences") == other.get("differences")
    with pytest.raises(ValueError, match="seeds: is no setting to sweep"):
        fedcote.simulate("quickstart", SMALL, sweep={"seeds": [1, 2]})


def test_differences_are_paired_by_seed() -> None:
    found = fedcote.simulate("quickstart", {**SMALL, "against": "fedavg"})
    difference = found.differences()["fedcote"]
    last = {}
    for scheme, seed, value in zip(
        found.rounds["scheme"], found.rounds["seed"], found.rounds["test_accuracy"], strict=True
    ):
        if not math.isnan(value):
            last[str(scheme), int(seed)] = float(value)
    pairs = [last["fedcote", seed] - last["fedavg", seed] for seed in (1, 2, 3)]
    mean = sum(pairs) / 3
    deviation = math.sqrt(sum((pair - mean) ** 2 for pair in pairs) / 2)
    found_last = found.differences("test_accuracy")["fedcote"]
    assert found_last["mean"] == pytest.approx(mean)
    # The 0.975 quantile of Student's t with two degrees of freedom.
    assert found_last["high"] - mean == pytest.approx(4.302652729749462 * deviation / math.sqrt(3))
    assert difference["seeds"] == 3 and difference["above"] + difference["below"] <= 3
    with pytest.raises(ValueError, match="tail_accuracy"):
        found.differences("nothing")


def test_tensorboard_reads_every_scalar_back(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    out = tmp_path / "out"
    settings = [
        word for key, value in SMALL.items() for word in ("--set", f"{key}={json.dumps(value)}")
    ]
    words = ["run", "--json", "--tensorboard", "--out", str(out), *settings]
    subprocess.run([sys.executable, "-m", "fedcote", *words], check=True, stdout=subprocess.DEVNULL)
    for scheme in ("fedavg", "fedcote"):
        for seed in (1, 2, 3):
            folder = out / scheme / str(seed)
            expected = {}
            for line in (folder / "metrics.jsonl").read_text().splitlines():
                report = json.loads(line)
                number = report.pop("round")
                for name, value in report.items():
                    if name in ("selected", "arrived"):
                        expected[name, number] = float(sum(count for _, count in value))
                    elif name == "scores":
                        for score, inner in value.items():
                            if inner is not None:
                                expected[f"scores/{score}", number] = inner
                    elif isinstance(value, int | float):
                        expected[name, number] = float(value)
            (path,) = folder.glob("*tfevents*")
            read = {}
            for event in loader.LegacyEventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    read[value.tag, event.step] = value.simple_value
            assert set(read) == set(expected)
            for key, value in expected.items():
                assert read[key] == pytest.approx(value, rel=1e-6), key
            assert ("test_accuracy", 12) in read
