"""Data for `fedcote.torch.Task`: read once or when needed, odd samples, labels from wherever they are."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from test_torch import CLASSES, FEATURES, job, linear, make, same, samples  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import Dataset, Subset, TensorDataset  # noqa: E402

import fedcote.torch  # noqa: E402


class Pairs(Dataset):
    """A data set that is not tensors, and counts how often it is read."""

    def __init__(self, count=60, jitter=0.0, ragged=False):
        self.inputs, self.labels = samples(count)
        self.jitter, self.ragged, self.reads = jitter, ragged, 0

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, at):
        if not 0 <= at < len(self):
            raise IndexError(at)
        self.reads += 1
        moved = self.inputs[at] + self.jitter * torch.randn(FEATURES).numpy()
        length = FEATURES - at % 2 if self.ragged else FEATURES
        return torch.tensor(moved[:length], dtype=torch.float32), int(self.labels[at])


def test_data_that_fit_are_read_once():
    data = Pairs()
    task = fedcote.torch.Task(linear, data, data, clients=4, device="cpu")
    reads = data.reads
    start = task.initial(1)
    same(task.train(start, job()), make().train(start, job()))
    assert data.reads == reads
    fetched = fedcote.torch.Task(linear, data, data, clients=4, device="cpu", preload=False)
    same(fetched.train(start, job()), make().train(start, job()))
    same(fetched.train_many(start, [job()])[0], make().train(start, job()))
    assert data.reads > reads


def test_random_data_are_read_anew_and_repeat_with_the_seed():
    data = Pairs(jitter=0.1)
    task = fedcote.torch.Task(linear, data, data, clients=4, device="cpu")
    assert task._local.data.tensors is None
    start = task.initial(1)
    first, again = task.train(start, job()), task.train(start, job())
    same(first, again)
    other = task.train(start, job(seed=77))
    assert not np.array_equal(first["weight"], other["weight"])


def test_samples_of_several_lengths_go_through_collate():
    def pad(batch):
        inputs = [torch.nn.functional.pad(one, (0, FEATURES - len(one))) for one, _ in batch]
        return torch.stack(inputs), torch.tensor([label for _, label in batch])

    data = Pairs(ragged=True)
    task = fedcote.torch.Task(linear, data, data, clients=4, collate=pad, device="cpu")
    after = task.train_many(task.initial(1), [job(0), job(1)])
    assert all(np.isfinite(one["weight"]).all() for one in after)
    with pytest.raises(ValueError, match="train: the samples do not make two tensors"):
        fedcote.torch.Task(linear, data, data, clients=4, preload=True, device="cpu")


def test_inputs_may_be_dictionaries():
    class Named(Pairs):
        def __getitem__(self, at):
            inputs, label = super().__getitem__(at)
            return {"left": inputs[:2], "right": inputs[2:]}, label

    class Joined(nn.Linear):
        def forward(self, inputs):
            return super().forward(torch.cat([inputs["left"], inputs["right"]], dim=-1))

    data = Named()
    for batched in (True, False):
        task = fedcote.torch.Task(
            lambda: Joined(FEATURES, CLASSES), data, data, clients=4, batched=batched, device="cpu"
        )
        start = task.initial(1)
        plain = make(batched=batched).train_many(start, [job(0), job(1)])
        for one, two in zip(task.train_many(start, [job(0), job(1)]), plain, strict=True):
            same(one, two, 1e-7)


def test_labels_come_from_wherever_they_are():
    inputs, targets = (torch.tensor(one) for one in samples())
    inputs = inputs.float()
    counts = make().labels
    assert counts.shape == (4, CLASSES) and counts.sum() == 60
    subset = Subset(TensorDataset(inputs, targets), range(60))
    assert (fedcote.torch.Task(linear, subset, subset, clients=4).labels == counts).all()
    listed = Pairs()
    listed.targets = targets.tolist()
    reads = listed.reads
    task = fedcote.torch.Task(linear, listed, Pairs(), clients=4, preload=False)
    assert listed.reads == reads and (task.labels == counts).all()
    other = make(labels=[0] * 60)
    assert other.labels.tolist() == [[15]] * 4


def test_regression_needs_labels_for_selection():
    data = samples()[0], samples()[0][:, :1]
    mean = nn.functional.mse_loss
    with pytest.raises(ValueError, match="train: targets: not one class.*labels="):
        fedcote.torch.Task(lambda: nn.Linear(FEATURES, 1), data, data, clients=4, loss=mean)
    task = fedcote.torch.Task(
        lambda: nn.Linear(FEATURES, 1),
        data,
        data,
        clients=4,
        loss=mean,
        metrics={},
        labels=samples()[1],
    )
    start = task.initial(1)
    assert list(task.evaluate(start)) == ["loss"]
    after = task.train(start, job(steps=50))
    assert task.loss(after, 0) < task.loss(start, 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((samples()[0],), "train: a tuple must be inputs and targets"),
        (iter([]), "train: expected a map-style data set"),
        ([], "train: has no samples"),
        ([1, 2, 3], "train: a sample must be a pair"),
    ],
)
def test_refused_data(data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fedcote.torch.Task(linear, data, samples(), clients=1)
