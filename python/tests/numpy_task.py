"""The built-in softmax regression and perceptron, written as a task in NumPy: an oracle for the built-in ones, and
the other way round."""

import numpy as np

CLASSES, SIDE = 5, 6


def samples(seed, count):
    """Images of a few classes with noise, and their labels."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).uniform(40, 215, (CLASSES, SIDE * SIDE))
    labels = random.integers(CLASSES, size=count)
    images = centres[labels] + random.normal(0, 60, (count, SIDE * SIDE))
    return np.clip(images, 0, 255).astype(np.uint8), labels.astype(np.uint8)


def write(folder):
    """The same samples as IDX files, for the built-in task."""
    folder.mkdir()
    for name, (images, labels) in {"train": samples(1, 600), "t10k": samples(2, 200)}.items():
        shape = np.array([len(images), SIDE, SIDE], dtype=">u4").tobytes()
        (folder / f"{name}-images-idx3-ubyte").write_bytes(
            b"\0\0\x08\x03" + shape + images.tobytes()
        )
        count = np.array([len(labels)], dtype=">u4").tobytes()
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(
            b"\0\0\x08\x01" + count + labels.tobytes()
        )


class NumpyTask:
    """Dense layers with ReLU between them; without hidden layers softmax regression."""

    def __init__(self, owned, start):
        (images, labels), (test, self.test_labels) = samples(1, 600), samples(2, 200)
        mean, deviation = images.mean() / 255, images.std() / 255
        self.inputs, self.targets = (images / 255 - mean) / deviation, labels
        self.test = (test / 255 - mean) / deviation
        self.parts = [
            np.flatnonzero(labels == label) for label in owned
        ]  # each client has one label
        self.labels = [np.bincount(labels[part], minlength=CLASSES) for part in self.parts]
        self.start = start

    def metadata(self):
        return "numpy task, version 1"

    def initial(self, seed):
        return self.start

    def layers(self, model):
        names = sorted({name.split(".")[0] for name in model})
        return [(model[f"{name}.weight"], model[f"{name}.bias"]) for name in names]

    def passed(self, layers, inputs):
        """What comes out of each layer, the inputs first."""
        outputs = [inputs]
        for at, (weight, bias) in enumerate(layers):
            value = outputs[-1] @ weight + bias
            outputs.append(np.maximum(value, 0) if at + 1 < len(layers) else value)
        return outputs

    def gradient(self, model, inputs, targets):
        layers = self.layers(model)
        outputs = self.passed(layers, inputs)
        slope = np.exp(outputs[-1] - outputs[-1].max(axis=1, keepdims=True))
        slope /= slope.sum(axis=1, keepdims=True)
        slope[np.arange(len(targets)), targets] -= 1
        slope /= len(targets)
        found = {}
        for at in reversed(range(len(layers))):
            found[f"layer{at + 1}.weight"] = outputs[at].T @ slope
            found[f"layer{at + 1}.bias"] = slope.sum(axis=0)
            slope = (slope @ layers[at][0].T) * (outputs[at] > 0)
        return found

    def train(self, model, job):
        part = self.parts[job.client]
        model = {name: array.astype(np.float64) for name, array in model.items()}
        for batch in job.batches(len(part)):
            chosen = part[batch]
            slopes = self.gradient(model, self.inputs[chosen], self.targets[chosen])
            for name, slope in slopes.items():
                slope = slope + job.proximal * (model[name] - job.anchor[name])
                if job.correction is not None:
                    slope = slope + job.correction[name]
                model[name] = model[name] - job.rate * slope
        return model

    def judged(self, model, inputs, targets):
        logits = self.passed(self.layers(model), inputs)[-1].astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(targets)), targets]
        return (logits.argmax(axis=1) == targets).mean(), losses.mean()

    def loss(self, model, client):
        part = self.parts[client]
        return self.judged(model, self.inputs[part], self.targets[part])[1]

    def evaluate(self, model):
        accuracy, loss = self.judged(model, self.test, self.test_labels)
        return {"accuracy": accuracy, "loss": loss, "norm": np.linalg.norm(model["layer1.weight"])}
