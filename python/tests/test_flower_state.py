"""The state file of the Flower strategy under accidents and attacks."""

import json
import os

import pytest

pytest.importorskip("flwr")

from fake_grid import FIRST_NODE, FakeGrid, initial  # noqa: E402

from fedcote import _directory, _state  # noqa: E402
from fedcote.flower import FedCote  # noqa: E402

LABELS = [[9, 1, 0], [0, 8, 2], [3, 3, 3], [0, 0, 7]]
FEW = dict(selected=4, seed=3, fraction_evaluate=0.0)


def train(strategy, grid=None, rounds=2):
    return strategy.start(grid or FakeGrid(LABELS), initial(), num_rounds=rounds, timeout=30)


def test_what_a_kill_leaves_is_swept(tmp_path):
    """Regression: temporary files and arrays that no state names stayed for ever."""
    file = tmp_path / "fed"
    train(FedCote(**FEW, state_file=file), rounds=1)
    left = [
        ".fed.abcd1234.part",
        "fed.round-7.npz",
        "fed.calm.round-2.npz",
        "fed.update-" + "0" * 24 + ".round-9.npz",
    ]
    others = [
        "fed.v2.round-7.npz",
        ".fed.v2.abcd1234.part",
        "fed.txt",
        "fed.calm2",
        "fed.calm2.round-1.npz",
    ]
    for name in left + others:
        (tmp_path / name).write_bytes(b"x")
    train(FedCote(**FEW, state_file=file))
    names = {path.name for path in tmp_path.iterdir()}
    assert not names & set(left)
    assert {"fed", "fed.round-2.npz"} <= names
    assert set(others) <= names


@pytest.mark.parametrize("moved", ["after an accident", "after the last round"])
def test_the_arrays_of_a_state_that_was_moved_away_stay(tmp_path, moved):
    """Regression: "move the state away" was the advice, and the next run swept the model it names."""
    file, away = tmp_path / "fed", tmp_path / "away"
    options = dict(**FEW, aggregation="memory", state_file=file)
    train(FedCote(**options), rounds=3)
    sound = file.read_bytes()
    if moved == "after an accident":
        file.write_bytes(sound[:-9])
        with pytest.raises(ValueError, match=r"move .*fed and its fed\.\*\.npz away"):
            train(FedCote(**options))
    file.rename(away)
    arrays = {path.name: path.read_bytes() for path in tmp_path.glob("*.npz")}
    with pytest.raises(ValueError, match=r"fed: does not exist, but fed\.\S+\.npz does"):
        train(FedCote(**options))
    # Nor are they swept by a run that lost its state on the way.
    _state.write(file, {"round": 9}, {}, {})
    assert arrays.items() <= {p.name: p.read_bytes() for p in tmp_path.glob("*.npz")}.items()
    file.write_bytes(sound)
    train(FedCote(**options), rounds=4)


@pytest.mark.parametrize("altered", ['{"arrays": "x"}', "[", '{"arrays": "fed.V.round-2.npz"}'])
def test_arrays_beside_a_state_that_cannot_be_understood_stay(tmp_path, altered):
    """Regression: it was taken for no state, and the next write swept the arrays of the one on disk."""
    file, arrays = tmp_path / "fed", tmp_path / "fed.round-2.npz"
    train(FedCote(**FEW, state_file=file))
    file.write_text(altered)
    _state.write(file, {"round": 9}, {}, {})
    assert arrays.exists()


def test_a_kill_before_the_first_state_does_not_stop_the_next_start(tmp_path):
    for name in (
        "fed.round-1.npz",
        "fed.update-" + "0" * 24 + ".round-1.npz",
        "fed.v2.round-7.npz",
    ):
        (tmp_path / name).write_bytes(b"x")
    train(FedCote(**FEW, state_file=tmp_path / "fed"))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["fed", "fed.round-2.npz", "fed.v2.round-7.npz"]


def test_an_altered_state_is_refused_by_its_checksum(tmp_path):
    """Regression: a number altered in the JSON went unnoticed."""
    file = tmp_path / "state.json"
    train(FedCote(**FEW, state_file=file))
    state = json.loads(file.read_text())
    state["round"] = 1
    file.write_text(json.dumps(state))
    with pytest.raises(ValueError, match=r"state\.json: .*checksum does not match"):
        train(FedCote(**FEW, state_file=file))
    # Early versions had none.
    state["round"] = 2
    del state["checksum"]
    file.write_text(json.dumps(state))
    train(FedCote(**FEW, state_file=file), rounds=3)


@pytest.mark.parametrize(
    "name", ["../x.npz", "/etc/passwd", "state.json", "x.round-1.npz", 3, None]
)
def test_a_state_names_files_of_its_own_only(tmp_path, name):
    file = tmp_path / "state.json"
    train(FedCote(**FEW, state_file=file))
    state = json.loads(file.read_text())
    state["arrays"] = name
    del state["checksum"]
    file.write_text(json.dumps(state))
    with pytest.raises(ValueError, match=r"state\.json: "):
        train(FedCote(**FEW, state_file=file))


def test_damaged_states_are_value_errors(tmp_path):
    """Regression: a folder, or brackets by the thousand, left as other exceptions."""
    file = tmp_path / "state.json"
    for contents in [b"[" * 100_000, b"\xff\xfe", b"NaN", b'{"updates": 3}', b"null"]:
        file.write_bytes(contents)
        with pytest.raises(ValueError, match=r"state\.json: "):
            train(FedCote(**FEW, state_file=file))
    file.unlink()
    file.mkdir()
    with pytest.raises(ValueError, match=r"state\.json: cannot be read"):
        train(FedCote(**FEW, state_file=file))


def test_the_folder_is_flushed_before_old_files_go(tmp_path, monkeypatch):
    """Regression: after a power cut the old state could name files that were gone."""
    events = []
    flush, unlink = _state._flush_folder, type(tmp_path).unlink
    monkeypatch.setattr(
        _state, "_flush_folder", lambda folder: (events.append("flush"), flush(folder))
    )
    monkeypatch.setattr(
        type(tmp_path), "unlink", lambda path, **o: (events.append("unlink"), unlink(path, **o))
    )
    train(FedCote(**FEW, state_file=tmp_path / "fed"), rounds=3)
    assert events == ["flush", "flush", "unlink", "flush", "unlink"]


def test_names_that_are_long_gone_are_forgotten(monkeypatch):
    """Regression: names of clients that come once each were kept for ever."""
    monkeypatch.setattr(_directory, "MOST_GONE", 3)

    class Passing(FakeGrid):
        def get_node_ids(self):
            if len(self.asked) > 4:
                for place in range(2, len(self.nodes)):
                    self.nodes[place] += 1000
                    self.names[place] = f"{self.nodes[place]}"
                self.present = set(self.nodes)
            return super().get_node_ids()

    strategy = FedCote(**FEW, aggregation="memory")
    train(strategy, Passing(LABELS), rounds=12)
    assert len(strategy.directory.names) <= 4 + 3 + 2
    assert len(strategy.selector.clients) <= 4 + 3 + 2
    assert {"0", "1"} <= set(strategy.directory.names.values())


def test_a_silent_newcomer_does_not_hold_up_rounds_for_long():
    """Regression: each newcomer that did not answer delayed a round by query_timeout, a minute."""
    waited = []

    class Waiting(FakeGrid):
        def send_and_receive(self, messages, *, timeout=None):
            messages = list(messages)
            if messages and messages[0].metadata.message_type.startswith("query"):
                waited.append(timeout)
            return super().send_and_receive(messages, timeout=timeout)

    grid = Waiting(LABELS)
    late = FIRST_NODE + 7 * 3
    grid.present.discard(late)
    grid.mute.add("3")
    strategy = FedCote(**FEW, query_timeout=60.0)
    strategy.begin(30)
    train(strategy, grid, rounds=1)
    grid.present.add(late)
    train(strategy, grid, rounds=4)
    assert waited == [60.0, 10.0, 10.0, 10.0]
    grid.present.discard(late)
    patient = FedCote(**FEW, newcomer_timeout=45.0)
    patient.begin(30)
    train(patient, grid, rounds=1)
    grid.present.add(late)
    train(patient, grid, rounds=2)
    assert waited[4] == 60.0 and set(waited[5:]) == {45.0}
    with pytest.raises(ValueError, match="newcomer_timeout: must be positive, is 0"):
        FedCote(newcomer_timeout=0)


def test_state_files_keep_their_folder(tmp_path):
    file = tmp_path / "new" / "fed"
    train(FedCote(**FEW, state_file=file))
    assert sorted(os.listdir(file.parent)) == ["fed", "fed.round-2.npz"]
