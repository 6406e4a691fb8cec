"""The notebooks of `examples/notebooks`, executed by a real kernel; needs nbclient and ipykernel."""

import importlib.util
import json
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
import nbformat  # noqa: E402

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


def outputs(cell, kind):
    return [one["data"][kind] for one in cell.get("outputs", ()) if kind in one.get("data", ())]


@pytest.mark.parametrize("name", ["first-comparison", "own-pytorch-model"])
def test_notebooks_run_and_show_what_they_should(name, tmp_path):
    needs_torch = name == "own-pytorch-model"
    if needs_torch and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    stored = json.loads(text)["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in stored)
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(
        book,
        timeout=1200,
        startup_timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    # The bar has counted all rounds; a result is a table and a figure, a plot a figure.
    bars = [html for cell in code for html in outputs(cell, "text/html") if "█" in html]
    totals = ["20/20", "20/20"] if needs_torch else ["120/120"]
    assert [total in bar for bar, total in zip(bars, totals, strict=True)] == [True] * len(bars)
    results = [html for cell in code for html in outputs(cell, "text/html") if "<table" in html]
    assert len(results) == 1 and "<svg" in results[0] and "fedavg" in results[0]
    assert (
        sum(svg.startswith("<svg") for cell in code for svg in outputs(cell, "image/svg+xml")) == 1
    )
