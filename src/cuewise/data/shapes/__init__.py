"""The embedded image set: drawn shapes × procedural textures, the same pixels on every machine."""

from cuewise.data.shapes.outlines import CONTEXTS, SHAPES, SUPERCLASSES
from cuewise.data.shapes.shape_set import ShapeSet
from cuewise.data.shapes.splits import SPLITS
from cuewise.data.shapes.textures import TEXTURES

__all__ = ["CONTEXTS", "SHAPES", "SPLITS", "SUPERCLASSES", "TEXTURES", "ShapeSet"]
