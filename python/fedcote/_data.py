"""The data set that travels with the package."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _fedcote


class Mnist(NamedTuple):
    """MNIST as bytes: images ``(n, 28, 28)`` from 0 to 255, labels from 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def mnist() -> Mnist:
    """The 60,000 training and 10,000 test images of MNIST, embedded in the package.

    >>> import fedcote
    >>> data = fedcote.mnist()
    >>> data.train_images.shape, data.test_labels.shape
    ((60000, 28, 28), (10000,))
    """
    train, test = _fedcote.mnist()
    return Mnist(*train, *test)
