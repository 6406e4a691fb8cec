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
