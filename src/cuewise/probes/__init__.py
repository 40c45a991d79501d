"""How much an encoder knows: scikit-learn style probes on its features, and fine-tuning."""

from cuewise.probes.fewshot import FewShotProbe
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.knn import KNNProbe
from cuewise.probes.linear import LinearProbe
from cuewise.probes.multilabel import MultiLabelProbe
from cuewise.probes.probe import Probe
from cuewise.probes.rotation import RotationProbe
from cuewise.probes.sgd import SGDProbe

__all__ = [
    "FewShotProbe",
    "FinetuneProbe",
    "KNNProbe",
    "LinearProbe",
    "MultiLabelProbe",
    "Probe",
    "RotationProbe",
    "SGDProbe",
]
