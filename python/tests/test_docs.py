"""The Python blocks of the documentation run, page by page."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "python/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(<!-- test: (?P<remark>.*?) -->\n)?^```python\n(?P<code>.*?)^```$", re.M | re.S
)


def blocks():
    for page in PAGES:
        for at, found in enumerate(BLOCK.finditer(page.read_text())):
            name = f"{page.relative_to(ROOT)}-{at + 1}"
            yield pytest.param(found["code"], found["remark"] or "", id=name)


@pytest.mark.parametrize(("code", "remark"), list(blocks()))
def test_block(code, remark, tmp_path, monkeypatch):
    assert not remark.startswith("skip"), "Python blocks are short: let them run"
    for package in ("torch", "jax", "sklearn"):
        if re.search(rf"^(import|from) (fedcote\.)?{package}\b", code, re.M):
            pytest.importorskip(package)
    if "flwr" in code or "fedcote.flower" in code:
        if importlib.util.find_spec("flwr") is None:
            pytest.skip("without Flower")
        import fake_grid  # noqa: F401  (messages can be made outside a run)
    if 'on="ray"' in code and importlib.util.find_spec("ray") is None:
        pytest.skip("without Ray")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {"__name__": "block"})  # noqa: S102


def test_there_are_blocks():
    assert len(list(blocks())) >= 7
