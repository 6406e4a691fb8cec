"""ε of Gaussian noise, against Google's library for accounting; and what the simulator reports."""

import json
import math

import pytest

import fedcote
from fedcote._privacy import gaussian_epsilon

CASES = [(0.5, 1, 1e-5), (1.0, 1, 1e-5), (1.0, 10, 1e-6), (4.0, 100, 1e-5), (20.0, 500, 1e-7)]


@pytest.mark.parametrize(("multiplier", "releases", "delta"), CASES)
def test_epsilon_against_dp_accounting(multiplier, releases, delta):
    accounting = pytest.importorskip("dp_accounting")
    ours = gaussian_epsilon(math.sqrt(releases) / multiplier, delta)
    # The same closed form, solved by somebody else.
    theirs = accounting.get_epsilon_gaussian(multiplier / math.sqrt(releases), delta)
    assert ours == pytest.approx(theirs, rel=1e-6)
    # Another way: distributions of the privacy loss, composed numerically; pessimistic by their grid.
    from dp_accounting import pld

    event = accounting.SelfComposedDpEvent(accounting.GaussianDpEvent(multiplier), releases)
    numerical = pld.PLDAccountant().compose(event).get_epsilon(delta)
    assert ours * (1 - 1e-6) <= numerical <= ours * 1.01 + 1e-3
    # Moments are an upper bound only.
    from dp_accounting import rdp

    assert rdp.RdpAccountant().compose(event).get_epsilon(delta) >= ours


SCENARIO = """
clients = 4
selected = "all"
rounds = 6
seeds = [1]
schemes = ["fedavg"]
[data]
set = "synthetic"
samples = 200
[model]
kind = "softmax"
[network]
kind = "fixed"
failure = 0.0
[server]
clip = 0.5
noise_multiplier = 1.5
"""


def test_the_simulator_reports_the_same_epsilon(tmp_path):
    """Everyone arrives in every round with the same share: six releases of multiplier 1.5."""
    accounting = pytest.importorskip("dp_accounting")
    (tmp_path / "private.toml").write_text(SCENARIO)
    fedcote.simulate(tmp_path / "private.toml", out=tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    epsilon = summary["schemes"][0]["scores"]["epsilon"]["last"]["mean"]
    assert epsilon == pytest.approx(
        accounting.get_epsilon_gaussian(1.5 / math.sqrt(6), 1e-5), rel=1e-6
    )
