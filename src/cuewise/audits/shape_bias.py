"""Where shape and texture disagree, which does the model follow?"""

from __future__ import annotations

import numpy as np

from cuewise.audits.audit import Finding, Subject, audit
from cuewise.audits.decisions import Decision, parse_stimulus, shape_bias_scores

SHOWN = 12


@audit("shape_bias", "shape or texture, on images in which they disagree")
def shape_bias(subject: Subject) -> Finding:
    """Decisions of the probe on conflict images: shape bias, both accuracies, the table by class, examples."""
    if subject.conflict is None:
        return Finding()
    name, data = subject.conflict
    found = subject.features(data, name)
    classes = subject.train.classes
    response = [classes[i] for i in subject.probe.predict(found.features)]
    decisions, skipped = [], 0
    for i, said in zip(found.index, response):
        cues = parse_stimulus(data.name(int(i)))
        if cues is None or not set(cues) <= set(classes):
            skipped += 1  # a name that does not parse, or a class that the probe does not know
            continue
        decisions.append(Decision(data.name(int(i)), *cues, said))
    protocol = f"{subject.probe.protocol} fitted on the training set; {name}"
    scores, table = shape_bias_scores(decisions, protocol)
    table["skipped"] = skipped
    rows = [[d.image, d.shape, d.texture, d.response] for d in decisions]
    out = Finding(scores)
    out.tables["shape_bias/classes"] = table
    out.tables["shape_bias/decisions"] = {
        "title": "Every decision",
        "columns": ["image", "shape", "texture", "response"],
        "rows": rows,
    }
    out.figures["shape_bias"] = {
        "title": "Shape bias by shape class",
        "kind": "bars",
        "xlabel": "class of the shape",
        "ylabel": "shape / (shape + texture)",
        "series": [
            {"name": subject.name, "x": [r[0] for r in table["rows"]], "y": [r[5] for r in table["rows"]]}
        ],
    }
    items = []
    pick = np.random.default_rng(subject.seed).permutation(len(decisions))[:SHOWN]
    for n, j in enumerate(pick):
        d = decisions[j]
        verdict = "shape" if d.response == d.shape else "texture" if d.response == d.texture else "other"
        items.append(
            {
                "image": subject.picture(data.image(int(found.index[j])), f"conflict-{n}"),
                "caption": f"shape {d.shape}, texture {d.texture}: said {d.response}",
                "badge": verdict,
                "alt": f"conflict image with the shape of {d.shape} and the texture of {d.texture}",
            }
        )
    out.galleries["shape_bias"] = {"title": "Shape against texture: what the model said", "items": items}
    return out
