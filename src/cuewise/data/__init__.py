"""What comes in: image sets of every kind, their index and fingerprint, decoding, and the loader."""

from cuewise.data.batches import Batch, Transform
from cuewise.data.dataset import Dataset
from cuewise.data.decode import BrokenImage, Image, decode
from cuewise.data.loader import Loader, auto_workers, ordered
from cuewise.data.open import open_data
from cuewise.data.source import Source

__all__ = [
    "Batch",
    "BrokenImage",
    "Dataset",
    "Image",
    "Loader",
    "Source",
    "Transform",
    "auto_workers",
    "decode",
    "open_data",
    "ordered",
]
