"""The package as a whole: documentation that runs, data, what it needs."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import fedcote

NEEDS_MORE = (
    "_fedcote", "_directory", "_round", "_options", "_report", "_wireless", "_training", "_resumable", "flower",
    "_torch_data", "_torch_local", "torch",
)  # fmt: skip
PURE = [m.name for m in pkgutil.iter_modules(fedcote.__path__) if m.name not in NEEDS_MORE]


@pytest.mark.parametrize("name", PURE)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"fedcote.{name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_mnist():
    data = fedcote.mnist()
    assert data.train_images.shape == (60000, 28, 28) and data.train_images.dtype == np.uint8
    assert np.bincount(data.train_labels).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip
    assert len(data.test_images) == len(data.test_labels) == 10000
    assert abs(data.train_images.mean() / 255 - 0.1307) < 1e-4


def test_flower_is_optional():
    """Without flwr the package imports, and `fedcote.flower` says what to install."""
    script = """
import sys
sys.modules["flwr"] = None  # as if it were not installed
import fedcote
fedcote.select([[1, 2], [2, 1]], [0.1, 0.2], 3)
try:
    import fedcote.flower
except ImportError as error:
    assert "pip install 'flwr>=1.21'" in str(error), error
else:
    raise SystemExit("imported without flwr")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_pytorch_is_optional():
    """Without PyTorch `fedcote.torch` says what to install."""
    script = """
import sys
sys.modules["torch"] = None  # as if it were not installed
try:
    import fedcote.torch
except ImportError as error:
    assert "pip install 'fedcote[torch]'" in str(error), error
else:
    raise SystemExit("imported without torch")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_public_name_has_a_docstring():
    for name in fedcote.__all__:
        if name != "__version__":
            assert getattr(fedcote, name).__doc__, name
