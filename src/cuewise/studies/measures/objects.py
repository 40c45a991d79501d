"""Objects and scenes: several labels per image, norms against the number of objects, objects out of context."""

from __future__ import annotations

from functools import partial

import numpy as np

from cuewise.audits.context import measure as distances_of
from cuewise.audits.rank_statistics import auroc, rank_correlation
from cuewise.audits.regions import Metric, embedded_places, space_of
from cuewise.probes.average_precision import mean_average_precision
from cuewise.probes.label_table import annotated_labels, targets
from cuewise.probes.multilabel import MultiLabelProbe
from cuewise.studies.measures.arm import TrainedArm
from cuewise.studies.measures.measure import Quantities, measure

MOST = 800  # images whose objects are embedded one by one


def mean_precision(arm: TrainedArm, name: str, train: str, test: str) -> Quantities:
    """Mean over the labels of the average precision over the whole test set; nothing where the sets have no objects."""
    fitted, asked = arm.data(train), arm.data(test)
    known, wanted = annotated_labels(fitted), annotated_labels(asked)
    if known is None or wanted is None:
        return {}
    X, X_test = arm.model.features(fitted), arm.model.features(asked)
    y = targets(fitted, X.index, known, known.classes, train)
    y_test = targets(asked, X_test.index, wanted, known.classes, test)
    probe = MultiLabelProbe().fit(X.features, y)
    p = probe.predict_proba(X_test.features)
    # no bootstrap over images: the interval of a study is over seeds
    return {name: mean_average_precision(p, y_test, name, probe.protocol, resamples=0).value}


@measure(
    "multilabel", "mAP of a probe on the labels of scenes, over the whole test set", "scenes_train", "scenes"
)
def multilabel(arm: TrainedArm) -> Quantities:
    return mean_precision(arm, "map", "scenes_train", "scenes")


@measure("single", "the same on images of one large object", "single_train", "single")
def single(arm: TrainedArm) -> Quantities:
    return mean_precision(arm, "map/single", "single_train", "single")


@measure("norms", "tangent norms of scenes and of their objects; rank correlation with the number of objects",
         "scenes")  # fmt: skip
def norms(arm: TrainedArm) -> Quantities:
    """Whole images are the scenes, every object is resized as it is."""
    data = arm.data("scenes")
    if not data.object_classes:
        return {}
    seen, vectors = embedded_places(arm.model, data, space_of(arm.model), list(range(min(MOST, len(data)))))
    length = np.linalg.norm(vectors, axis=1)
    whole = np.array([place.box < 0 for place in seen])
    counts = np.bincount([place.image for place in seen if place.box >= 0], minlength=len(data))
    scenes = [place.image for place in seen if place.box < 0]
    scene, own = float(length[whole].mean()), float(length[~whole].mean())
    rho = rank_correlation(length[whole], counts[scenes])
    return {"norm/scene": scene, "norm/object": own, "norm/log_ratio": float(np.log(scene / own)), "rho": rho}


@measure(
    "context",
    "AUROC of out-of-context objects by their distance to the scene, in the ball and by cosine",
    "odd",
)
def context(arm: TrainedArm) -> Quantities:
    data, space = arm.data("odd"), space_of(arm.model)
    of = partial(distances_of, arm.model, data, images=list(range(min(MOST, len(data)))))
    ball, cosine = of(space=space), of(space=Metric(space.head, None))
    return {"auroc": auroc(ball.distance, ball.out), "auroc/cosine": auroc(cosine.distance, cosine.out)}
