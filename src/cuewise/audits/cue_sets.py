"""How much can the model tell from one cue alone: texture, silhouette, outline?"""

from __future__ import annotations

import numpy as np

from cuewise.audits.audit import Finding, Subject, audit
from cuewise.data import open_data

# split of the embedded set → the column that holds the class of the cue that is left
SPLITS = {"texture_only": "texture", "silhouette": "shape", "sketch": "shape"}


@audit("cues", "accuracy on images that keep one cue: texture, silhouette, sketch (embedded classes)")
def cues(subject: Subject) -> Finding:
    """Accuracy of the probe on single-cue images of the embedded classes (nothing for other classes)."""
    if not subject.embedded:
        return Finding()
    out = Finding()
    for split, column in SPLITS.items():
        name = f"shapes:{split}?n=800&part=test&size={subject.encoder.card.size}"
        data = open_data(name)
        found = subject.features(data, split)
        labels = np.asarray(data.columns[column], np.int64)[found.index]
        out.scores.append(subject.probe.score(found.features, labels, f"cue/{split}"))
    out.figures["cues"] = {
        "title": "Accuracy from one cue alone",
        "kind": "bars",
        "xlabel": "cue that is left",
        "ylabel": "accuracy",
        "series": [
            {
                "name": subject.name,
                "x": [s.name.partition("/")[2] for s in out.scores],
                "y": [s.value for s in out.scores],
                "low": [s.low for s in out.scores],
                "high": [s.high for s in out.scores],
            }
        ],
    }
    return out
