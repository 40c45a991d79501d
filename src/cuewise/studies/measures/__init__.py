"""What is measured of a trained arm: one function per measure, found by being there, or `package.module:Name`.

    @measure("drawn", "accuracy on sketches", "probe", "sketch")
    def drawn(arm: TrainedArm) -> Quantities:
        return arm.accuracy("probe", "sketch")

The numbers come from `cuewise.audits` and `cuewise.probes`; a measure only chooses sets and names.
"""

from cuewise.studies.measures.arm import TrainedArm, opened
from cuewise.studies.measures.measure import Measure, Quantities, applicable, find_measure, measure

__all__ = ["Measure", "Quantities", "TrainedArm", "applicable", "find_measure", "measure", "opened"]
