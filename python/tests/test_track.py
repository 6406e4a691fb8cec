"""Runs in experiment trackers, and as Parquet; the trackers are the real ones, where they are installed."""

import json
import subprocess
import sys

import numpy as np
import pytest

import fedcote

SMALL = {"rounds": 3, "seeds": [1, 2], "schemes": ["fedavg", "ideal"], "evaluate_every": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "small"
    fedcote.simulate("quickstart", SMALL, out=place)
    return place


def lines(folder, scheme, seed):
    text = (folder / scheme / str(seed) / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_mlflow_gets_every_number(folder, tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "store").as_uri()
    ids = fedcote.track(folder, "mlflow", tracking_uri=uri)
    assert len(set(ids)) == 4
    client = MlflowClient(tracking_uri=uri)
    runs = [client.get_run(one) for one in ids]
    told = {(run.data.params["scheme"], run.data.params["seed"]): run for run in runs}
    assert client.get_experiment(runs[0].info.experiment_id).name == "small"
    for scheme in ("fedavg", "ideal"):
        for seed in (1, 2):
            run = told[scheme, str(seed)]
            assert run.info.status == "FINISHED" and run.info.run_name == f"{scheme}, seed {seed}"
            expected = {
                one["round"]: one["test_accuracy"]
                for one in lines(folder, scheme, seed)
                if one.get("test_accuracy") is not None
            }
            history = client.get_metric_history(run.info.run_id, "test_accuracy")
            assert {one.step: one.value for one in history} == expected and len(expected) == 2
            history = client.get_metric_history(run.info.run_id, "attempts")
            assert [one.step for one in history] == [1, 2, 3]
            assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["config.toml"]


def test_wandb_gets_every_number(folder, tmp_path):
    pytest.importorskip("wandb")
    # A process of its own: what wandb starts ends with it.
    script = (
        f"import fedcote; print(fedcote.track({str(folder)!r}, 'wandb', mode='offline', dir='.'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 4
    # Records of history hold numbers as JSON text: every accuracy stands there as it is in the folder.
    told = b"".join(file.read_bytes() for file in files)
    for scheme in ("fedavg", "ideal"):
        for seed in (1, 2):
            assert f"{scheme}, seed {seed}".encode() in told
            for one in lines(folder, scheme, seed):
                if one.get("test_accuracy") is not None:
                    assert json.dumps(one["test_accuracy"]).encode() in told


def test_what_is_wrong_is_named(folder, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match='expected "mlflow" or "wandb"'):
        fedcote.track(folder, "tensorboard")
    with pytest.raises(ValueError, match="no runs"):
        fedcote.track(tmp_path, "mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match="pip install mlflow"):
        fedcote.track(folder, "mlflow")


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_parquet(library, tmp_path, monkeypatch):
    frames = pytest.importorskip(library)
    if library == "pandas":
        pytest.importorskip("pyarrow")
        monkeypatch.setitem(sys.modules, "polars", None)
    result = fedcote.simulate("quickstart", {**SMALL, "seeds": [1]})
    result.to_parquet(tmp_path / "rounds.parquet")
    again = frames.read_parquet(tmp_path / "rounds.parquet")
    assert list(again.columns) == list(result.rounds)
    for name, column in result.rounds.items():
        np.testing.assert_array_equal(again[name].to_numpy(), column)
