"""How sure is the model, and is it right to be?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise import scores
from cuewise.audits.answers import Answers, answers, decisions_table, mistake, needs_labelled
from cuewise.audits.audit import Finding, audit
from cuewise.audits.figures import figure, histogram
from cuewise.audits.kinds import Kind
from cuewise.audits.subject import Subject
from cuewise.scores import Z95, Score

BINS = 15
DRAWS = 200
SHOWN = 10

Floats = NDArray[np.float64]


@audit(
    "confidence",
    "probability of the true class, entropy and calibration error on each labelled test set",
    question="How sure is it, and is it right to be?",
    rank=70,
    citation="Guo et al. 2017 (calibration error)",
    equation="calibration error = Σ_b n_b/n · |accuracy_b − confidence_b| over 15 bins of the confidence",
    kinds=(
        Kind(
            "confidence/*",
            "Confidence on {}",
            "Mean probability of the true class, on the images that the model gets right.",
            card=15,
        ),
        Kind(
            "entropy/*",
            "Entropy on {}",
            "Mean entropy of the answer in nats, on the images that the model gets right: 0 is certain.",
            unit="nats",
        ),
        Kind(
            "calibration_error/*",
            "Calibration error on {}",
            "Mean gap between confidence and accuracy over 15 bins: 0 is a model that is right as often as it says.",
            card=16,
            reading="0 is perfect",
            better="low",
        ),
    ),
    needs=needs_labelled,
)
def confidence(subject: Subject) -> Finding:
    """Probability of the true class and entropy (nats) of the images it gets right; calibration error of all."""
    out = Finding()
    reliability, spread = [], []
    for answered in answers(subject, out.left):
        top, true = answered.proba.max(1), of_true_class(answered)
        nats, right = entropy(answered.proba), answered.correct
        sure = confidence_score(answered)
        out.add(sure, chance=1 / len(answered.classes))
        out.scores += [
            scores.mean(f"entropy/{answered.name}", nats[right], f"{sure.protocol}, nats"),
            calibration_score(answered, top, np.random.default_rng(subject.seed)),
        ]
        columns = {"probability": true, "confidence": top, "entropy": nats}
        rounded = {key: np.round(values, 6).tolist() for key, values in columns.items()}
        table = decisions_table(answered, f"Confidence on {answered.name}, image by image", **rounded)
        name = answered.name
        accuracy = (f"linear/{name}", f"head/{name}/accuracy", f"domains/{name}/accuracy")
        table["pairs"] = dict.fromkeys(accuracy, "correct")
        table["common"] = {f"confidence/{name}": "probability", f"entropy/{name}": "entropy"}
        out.tables[f"confidence/{answered.name}/decisions"] = table
        reliability.append({"name": answered.name, **reliability_series(top, right)})
        spread.append(histogram(answered.name, true, 20))
        if "confidence" not in out.galleries:
            out.galleries["confidence"] = surest_mistakes(subject, answered, top)
    note = "On the dashed line a model is right as often as it says; below it, it is too sure."
    out.figures["confidence/reliability"] = figure(
        "lines",
        "Accuracy at each confidence",
        "confidence",
        *reliability,
        facet=True,
        diagonal=True,
        note=note,
    )
    title = "Probability of the true class"
    out.figures["confidence/probability"] = figure(
        "histogram", title, title.lower(), *spread, ylabel="share of images", facet=True
    )
    return out


def of_true_class(answers: Answers) -> Floats:
    """The probability of the true class of each image."""
    return answers.proba[np.arange(len(answers.labels)), answers.labels]


def confidence_score(answers: Answers) -> Score:
    """Its mean over the images that the model gets right."""
    protocol = f"{answers.protocol}, images it gets right"
    return scores.mean(f"confidence/{answers.name}", of_true_class(answers)[answers.correct], protocol)


def entropy(proba: Floats) -> Floats:
    """−Σ p ln p of each row, in nats; p = 0 adds nothing."""
    p = np.asarray(proba, np.float64)
    return np.asarray(-np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(1))


def calibration_error(top: Floats, correct: NDArray[np.bool_], bins: int = BINS) -> float:
    """Σ_b n_b/n · |accuracy_b − mean confidence_b| over equal bins (b/B, (b+1)/B] of the confidence (Guo et al. 2017)."""
    place = bin_of(top, bins)
    gap = np.bincount(place, np.asarray(correct, np.float64) - top, bins)
    return float(np.abs(gap).sum() / len(top)) if len(top) else float("nan")


def bin_of(top: Floats, bins: int) -> NDArray[np.int64]:
    """The bin of each confidence; a bin holds its upper end, the first one holds 0 as well."""
    return np.clip(np.ceil(np.asarray(top) * bins).astype(np.int64) - 1, 0, bins - 1)


def calibration_score(answers: Answers, top: Floats, rng: np.random.Generator) -> Score:
    """The calibration error with a normal interval, its spread by resampling images."""
    right = answers.correct
    value = calibration_error(top, right)
    rows = rng.integers(0, len(top), (DRAWS, len(top)))
    half = Z95 * float(np.std([calibration_error(top[r], right[r]) for r in rows], ddof=1))
    protocol = f"{answers.protocol}, {BINS} equal bins"
    low, high = max(0.0, value - half), min(1.0, value + half)
    return Score(f"calibration_error/{answers.name}", value, low, high, len(top), protocol)


def reliability_series(top: Floats, correct: NDArray[np.bool_]) -> dict[str, Any]:
    """Mean confidence and accuracy of each bin that holds images, with Wilson's interval."""
    place = bin_of(top, BINS)
    series: dict[str, list[float]] = {"x": [], "y": [], "low": [], "high": []}
    for b in np.unique(place):
        own = place == b
        share = scores.proportion("", int(correct[own].sum()), int(own.sum()), "")
        for key, value in zip(series, (float(top[own].mean()), share.value, share.low, share.high)):
            series[key].append(value)
    return series


def surest_mistakes(subject: Subject, answers: Answers, top: Floats) -> dict[str, Any]:
    """The mistakes the model was surest of."""
    wrong = np.flatnonzero(~answers.correct)
    surest = wrong[np.argsort(-top[wrong], kind="stable")][:SHOWN]
    items = [
        mistake(subject, answers, row, f"mistake-{n}", "wrong", f", {100 * top[row]:.0f} % sure")
        for n, row in enumerate(surest)
    ]
    return {"title": f"Surest mistakes on {answers.name}", "items": items}
