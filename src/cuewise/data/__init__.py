"""What comes in: image sets of every kind, their index and fingerprint, decoding, and the loader."""

from cuewise.data.batches import Batch, Transform
from cuewise.data.dataset import Dataset
from cuewise.data.decode import BrokenImage, Image, SmallestCrop, decode
from cuewise.data.loader import Loader, auto_workers, fills_cores, ordered, usable_cores
from cuewise.data.noisy_labels import Noise, NoisyLabels, noisy
from cuewise.data.open import open_data
from cuewise.data.sample import Boxes, Facts, Sample, Shown, no_boxes
from cuewise.data.source import Source

__all__ = [
    "Batch",
    "Boxes",
    "BrokenImage",
    "Dataset",
    "Facts",
    "Image",
    "Loader",
    "Noise",
    "NoisyLabels",
    "Sample",
    "Shown",
    "SmallestCrop",
    "Source",
    "Transform",
    "auto_workers",
    "decode",
    "fills_cores",
    "no_boxes",
    "noisy",
    "open_data",
    "ordered",
    "usable_cores",
]
