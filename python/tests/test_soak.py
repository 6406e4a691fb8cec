"""A short form of the federations of ``cargo xtask soak``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_server_that_is_killed_again_and_again_is_its_undisturbed_twin():
    # A process of its own: it forks, and must not inherit threads.
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("soak.py"))]
    done = subprocess.run([*command, "60", "1", "8"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [int(row[1]) for row in rows] == [60, 20, 20, 20]
    assert sum(int(row[3]) for row in rows) >= 4, done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_strategy_that_is_refused_ends_its_process():
    """Regression: the child went on as its parent when its strategy could not be made."""
    script = """
import os, soak
try:
    process, _ = soak.play([], 1, {"aggregation": "unheard of"}, 1)
finally:
    os.write(1, b"parent\\n")
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) + 40)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=Path(__file__).parent, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (41, "parent\n"), done.stderr
    assert "unheard of" in done.stderr
