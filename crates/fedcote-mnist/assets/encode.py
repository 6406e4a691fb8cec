"""Makes the files of this folder from the four original MNIST files: `python3 encode.py FOLDER`.

Four of five bytes of the images are zero. Each image file becomes two: the lengths of its runs of zero and of
other bytes, in turn, starting with zeros (a run above 255 is 255, 0 and the rest), and the bytes that are not
zero. That is smaller than zstd alone, and decodes in half the time. Needs numpy and the zstd command.
"""

import pathlib
import subprocess
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
here = pathlib.Path(__file__).parent


def write(name, contents, level=19):
    size = f"--stream-size={len(contents)}"
    command = ["zstd", "--quiet", "--force", "--ultra", f"-{level}", size, "-o", here / f"{name}.zst"]
    subprocess.run(command, input=contents, check=True)


for name in ["train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"]:
    write(name, (folder / name).read_bytes())
for name in ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte"]:
    values = numpy.fromfile(folder / name, dtype=numpy.uint8)
    other = values != 0
    changes = numpy.flatnonzero(numpy.diff(other.astype(numpy.int8), prepend=0))
    runs = bytearray()
    for run in numpy.diff(changes, prepend=0, append=len(values)).tolist():
        while run > 255:
            runs += bytes([255, 0])
            run -= 255
        runs.append(run)
    write(f"{name}.runs", bytes(runs))
    # Higher levels save 8 % here and decode in twice the time.
    write(f"{name}.rest", values[other].tobytes(), level=3)
