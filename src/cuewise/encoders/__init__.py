"""Backbones by name or from disk as one Encoder; heads; the momentum copy."""

from cuewise.encoders.encoder import Encoder
from cuewise.encoders.load import load_encoder

__all__ = ["Encoder", "load_encoder"]
