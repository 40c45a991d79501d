"""How much a frozen encoder knows: scikit-learn style probes on its features."""

from cuewise.probes.knn import KNNProbe
from cuewise.probes.linear import LinearProbe
from cuewise.probes.probe import Probe

__all__ = ["KNNProbe", "LinearProbe", "Probe"]
