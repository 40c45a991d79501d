"""How many images of the test sets are classified right, by a linear probe and by neighbours?"""

from __future__ import annotations

from cuewise.audits.audit import Finding, Subject, audit
from cuewise.probes import KNNProbe
from cuewise.probes.run import shared_classes


@audit("accuracy", "linear and k-NN accuracy on each labelled test set")
def accuracy(subject: Subject) -> Finding:
    """linear/… and knn/… on every test set with labels; classes that were not trained are left out."""
    out = Finding()
    train = subject.train_features
    knn = KNNProbe().fit(train.features, train.labels)
    for name, data in subject.test:
        if data.labels is None:
            continue
        found = subject.features(data, name)
        rows, labels = shared_classes(found, data, subject.train)
        out.scores.append(subject.probe.score(found.features[rows], labels, f"linear/{name}"))
        out.scores.append(knn.score(found.features[rows], labels, f"knn/{name}"))
    return out
