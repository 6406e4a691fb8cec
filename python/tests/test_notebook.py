"""What a notebook shows: figures, tables, frames, a bar; and results that compare, copy and pickle."""

import io
import pickle
import pydoc
import sys

import numpy as np
import pytest

import fedcote
from fedcote._progress import Bar, Watch, watch

SMALL = {"rounds": 4, "seeds": [1, 2], "schemes": ["fedavg", "ideal"], "evaluate_every": 1}


@pytest.fixture(scope="module")
def result():
    return fedcote.simulate("quickstart", SMALL)


def test_figures_are_the_reports(result, tmp_path):
    figure = result.plot()
    assert figure._repr_svg_().startswith("<svg") and "accuracy" in figure.svg
    assert {"accuracy", "tail", "train-loss", "test-loss"} <= set(result.figures)
    figure.save(tmp_path / "accuracy.svg")
    assert (tmp_path / "accuracy.svg").read_text(encoding="utf-8") == figure.svg
    with pytest.raises(ValueError, match="no figure 'colour'; there are: .*accuracy"):
        result.plot("colour")
    shown = result._repr_html_()
    assert "<table>" in shown and "fedavg" in shown and "<svg" in shown


def test_results_pickle(result):
    again = pickle.loads(pickle.dumps(result))
    assert again.summary == result.summary and again.figures == result.figures
    for name, column in result.rounds.items():
        np.testing.assert_array_equal(again.rounds[name], column)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_the_library_that_is_asked_for(result, library):
    pytest.importorskip(library)
    assert type(result.frame(library)).__module__.startswith(library)
    found = fedcote.select([[1, 2], [2, 1]], [0.1, 0.2], 3)
    frame = found.frame(library)
    assert type(frame).__module__.startswith(library) and len(frame) == 2
    assert list(frame.columns) == ["id", "weight", "failure", "selection", "appearance", "eligible"]


def test_a_library_that_is_missing_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="install polars"):
        result.frame("polars")
    with pytest.raises(ValueError, match='expected "pandas" or "polars"'):
        result.frame("numpy")


def test_selections_compare():
    """Regression: `==` was an error about the truth of arrays."""
    one = fedcote.select([[1, 2], [2, 1]], [0.1, 0.2], 3)
    same = fedcote.select([[1, 2], [2, 1]], [0.1, 0.2], 3)
    other = fedcote.select([[1, 2], [2, 1]], [0.1, 0.3], 3)
    assert one == same and one != other and one != 3
    assert pickle.loads(pickle.dumps(one)) == one


def test_help_shows_the_fields():
    for kind in (fedcote.Selection, fedcote.Evaluation, fedcote.Simulation):
        text = pydoc.plain(pydoc.render_doc(kind))
        assert "Attributes" in text
    assert "The residual that certifies" in pydoc.plain(pydoc.render_doc(fedcote.Selection))


def test_the_bar_counts_rounds(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    bar = Bar(10)
    bar.update(1, None)
    bar.update(9, "fedavg seed 1: 12.34 %")
    bar.close()
    assert "10/10 rounds" in written.getvalue() and "12.34 %" in written.getvalue()
    assert type(watch(10, None)) is Watch and type(watch(10, True)) is Bar


def test_a_bar_is_shown_while_it_runs(capsys):
    fedcote.simulate("quickstart", SMALL, progress=True)
    assert "16/16 rounds" in capsys.readouterr().err


def test_what_is_interrupted_without_a_folder_is_kept(capsys):
    from test_task import TOY, Toy

    class Stops(Toy):
        stops = True

        def metadata(self):
            return "stops"

        def train(self, model, job):
            if self.stops and job.round == 5:
                raise KeyboardInterrupt
            return super().train(model, job)

    task = Stops()
    with pytest.raises(fedcote.TaskError) as raised:
        fedcote.simulate(TOY, task=task)
    assert isinstance(raised.value.__cause__, KeyboardInterrupt)
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("To continue, add: out=") and said.endswith(", resume=True")
    task.stops = False
    folder = said.split("'")[1]
    found = fedcote.simulate(TOY, task=task, out=folder, resume=True)
    assert found.rounds["round"].tolist() == [1, 2, 3, 4, 5, 6]
    import shutil

    shutil.rmtree(folder)
