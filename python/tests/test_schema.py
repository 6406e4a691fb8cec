"""The JSON schema of scenario files: valid itself, and right about files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")
tomllib = pytest.importorskip("tomllib")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def validator() -> Any:
    words = [sys.executable, "-m", "fedcote", "schema"]
    schema = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def blocks() -> list[tuple[str, str]]:
    found = []
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        for at, text in enumerate(
            re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.S | re.M)
        ):
            found.append((f"{page.relative_to(ROOT)} {at + 1}", text))
    return found


def test_presets_and_the_examples_of_all_pages_are_valid(validator: Any) -> None:
    presets = sorted((ROOT / "crates/fedcote-sim/scenarios").glob("*.toml"))
    files = [(path.name, path.read_text()) for path in presets] + blocks()
    assert len(presets) >= 5 and len(files) > 15
    for name, text in files:
        errors = [error.message for error in validator.iter_errors(tomllib.loads(text))]
        assert not errors, f"{name}: {errors}"


def test_what_the_program_prints_is_valid(validator: Any) -> None:
    words = [sys.executable, "-m", "fedcote", "run", "--print-config"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert not list(validator.iter_errors(tomllib.loads(printed)))


@pytest.mark.parametrize(
    "wrong",
    [
        "rounds = 'many'",
        "rounds = -1",
        "round = 3",
        "schemes = 'fedavg'",
        "seeds = [1.5]",
        "selected = 'some'",
        "[data]\nset = 'minst'",
        "[data]\nunbalance = 'much'",
        "[training]\nlocal_steps = [1, 2, 3]",
        "[network]\nkind = 'radoi'",
        "[network]\nestimator = 'gamma'",
        "[network]\nestimator = { kind = 'beta', rounds = 3 }",
        "[network.stragglers]\nwhat = 1",
        "[scheme.fedcote]\ndraws = 'odd'",
        "[scheme.fedcote]\nnothing = 1",
        "[sweep]\nrounds = 3",
        "[nothing]",
    ],
)
def test_wrong_files_are_not(validator: Any, wrong: str) -> None:
    assert list(validator.iter_errors(tomllib.loads(wrong)))
