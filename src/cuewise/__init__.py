"""cuewise: choose which visual cues an encoder learns; see which cues any vision model relies on."""

from cuewise.compiled import keep_kernels
from cuewise.errors import Interrupted, UserError
from cuewise.verbs import audit, compare, demo, embed, export, make, pretrain, probe, reproduce, score
from cuewise.verbs import list_ as list

keep_kernels()

__version__ = "0.1.0"
__all__ = [
    "Interrupted",
    "UserError",
    "audit",
    "compare",
    "demo",
    "embed",
    "export",
    "list",
    "make",
    "pretrain",
    "probe",
    "reproduce",
    "score",
]
