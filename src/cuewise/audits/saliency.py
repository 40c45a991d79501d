"""Where in the image does the model look when it answers?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cuewise import scores
from cuewise.audits.answerer import Answerer
from cuewise.audits.answers import Answers, answers, decisions_table, needs_labelled
from cuewise.audits.audit import Finding, audit
from cuewise.audits.confidence import entropy
from cuewise.audits.figures import figure, histogram
from cuewise.audits.gradcam import grad_cam
from cuewise.audits.head import Grouped, Head
from cuewise.audits.kinds import AuditOption, Kind
from cuewise.audits.masks import Maps, coverage, masks_of, masks_option, value_option
from cuewise.audits.measured import Measured
from cuewise.audits.subject import Subject
from cuewise.encoders.embed import evaluation_view
from cuewise.errors import UserError
from cuewise.progress import Progress

IMAGES = 256  # whose maps are measured
SHOWN = 12  # of a single model; more are kept so that two models can be compared on images of all four kinds
KEPT = 48
BATCH = 16
SIDE = 192  # pixels of an overlay


@audit(
    "saliency",
    "Grad-CAM: where the model looks, and how far its attention spreads",
    question="Where does it look?",
    rank=80,
    citation="Selvaraju et al. 2017 (Grad-CAM)",
    equation="map = max(0, Σ_k w_k A_k),   w_k = mean over places of ∂answer/∂A_k",
    kinds=(
        Kind(
            "saliency_area",
            "Area of saliency",
            "Mean share of the image whose saliency (Grad-CAM) is at least half of the greatest value.",
        ),
        Kind("saliency_entropy", "Spread of saliency", "Entropy of the saliency map in nats.", unit="nats"),
        Kind(
            "saliency_coverage",
            "Saliency on the object",
            "Share of the saliency that falls inside the object's mask.",
            better="high",
        ),
        Kind("saliency_area/*", "Area of saliency on {}", "The same on another test set."),
        Kind("saliency_entropy/*", "Spread of saliency on {}", "The same on another test set.", unit="nats"),
        Kind(
            "saliency_coverage/*",
            "Saliency on the object, {}",
            "The same on another test set.",
            better="high",
        ),
    ),
    options=(
        AuditOption(
            "masks",
            "images named as those of --test, white where the object is, or a set with annotated objects [what --test knows]",
            masks_option,
        ),
        AuditOption(
            "mask_value", "the value of an object's pixels in --masks, for index images", value_option
        ),
        AuditOption(
            "saliency_sets",
            "test sets whose saliency is measured: names separated by commas, or all [the first labelled one]",
        ),
    ),
    needs=needs_labelled,
)
def saliency(subject: Subject) -> Finding:
    """Area above one half and entropy of the maps for the predicted class, on up to 256 images of a test set: the first, or
    those that --saliency-sets names."""
    out = Finding()
    found = answers(subject, out.left)
    first, wanted = (
        found[0].name,
        chosen_sets(subject.option("saliency_sets"), [given.name for given in found]),
    )
    for given in found:
        if given.name in wanted:
            out.join(saliency_on(subject, given, "" if given.name == first else f"/{given.name}"))
    return out


def chosen_sets(typed: str | None, names: Sequence[str]) -> list[str]:
    """The test sets that --saliency-sets names."""
    if typed is None:
        return [names[0]]
    if typed == "all":
        return list(names)
    wanted = [name.strip() for name in typed.split(",") if name.strip()]
    if strange := [name for name in wanted if name not in names]:
        raise UserError(
            f"--saliency-sets {strange[0]}: no labelled test set that the model can be asked about has that name; there are: "
            f"{', '.join(names)}, or all"
        )
    return wanted


def saliency_on(subject: Subject, answers: Answers, ending: str) -> Finding:
    """Scores, table, histogram and overlays of one set; `ending` is that of their names, empty for the first set."""
    chosen = np.sort(np.random.default_rng(subject.seed).permutation(len(answers.index))[:IMAGES])
    answers = answers.part(chosen)
    views, maps = saliency_maps(subject.model, subject.answerer(answers.data), answers)
    area, nats = spread_area(maps), spread_entropy(maps)
    protocol = f"Grad-CAM of the predicted class; {answers.protocol}"
    how = f"share of pixels at half the greatest value or more; {protocol}"
    out = Finding([scores.mean(f"saliency_area{ending}", area, how)])
    out.add(scores.mean(f"saliency_entropy{ending}", nats, f"nats; {protocol}"))
    columns = {"area": np.round(area, 6).tolist(), "spread": np.round(nats, 6).tolist()}
    if subject.option("masks") is not None:
        rows, masks = masks_of(subject, answers, maps.shape[1], subject.encoder.card.interpolation)
        inside = coverage(maps[rows], masks)
        inside = inside[np.isfinite(inside)]
        how = f"share of saliency inside the mask; masks of {len(rows)} of {len(maps)} images; {protocol}"
        out.scores.append(scores.mean(f"saliency_coverage{ending}", inside, how))
    where = f" on {answers.name}" if ending else ""
    table = decisions_table(answers, f"Saliency{where}, image by image", **columns)
    table["pairs"] = {f"saliency_area{ending}": "area", f"saliency_entropy{ending}": "spread"}
    table["split"] = ["area", "spread"]
    out.tables[f"saliency{ending}/decisions"] = table
    out.figures[f"saliency{ending}"] = figure(
        "histogram",
        f"How far saliency spreads{where}",
        "share of the image at half the greatest saliency or more",
        histogram("area", area, 20),
        ylabel="share of images",
    )
    out.galleries[f"saliency{ending}"] = gallery(subject, answers, views, maps, ending.replace("/", "-"))
    return out


def saliency_maps(model: Measured, answerer: Answerer, answers: Answers) -> tuple[NDArray[np.uint8], Maps]:
    """The views the model saw, N×S×S×3, and the maps of its answers, N×S×S."""
    encoder = model.encoder
    device = next(encoder.parameters(), torch.zeros(())).device
    head = features_to_logits(answerer.probe, device)
    card = encoder.card
    views = np.stack(
        [evaluation_view(answers.data.image(int(i)), card.size, card.interpolation) for i in answers.index]
    )
    target = torch.from_numpy(answers.response)
    parts = []
    with Progress(len(views), "images", f"{model.name}: saliency") as bar:
        for start in range(0, len(views), BATCH):
            x = encoder.normalise(torch.from_numpy(views[start : start + BATCH]).to(device))
            c = target[start : start + BATCH].to(device)
            parts.append(grad_cam(encoder.backbone, x, lambda t: head(encoder(t)), c)[0].cpu().numpy())
            bar.add(len(x))
    return views, np.concatenate(parts)


def features_to_logits(probe: Any, device: torch.device) -> Callable[[Tensor], Tensor]:
    """B×D features → B×C logits, differentiable: the model's own classifier, or the probe that answers for it.

    The logit of a class that several outputs stand for is that of their mean probability.
    """
    if isinstance(probe, Head):
        rows = [list(r) for r in probe.classes.values()]

        def by_head(f: Tensor) -> Tensor:
            out = probe.head(f).flatten(1)
            return torch.stack([out[:, r].logsumexp(1) - math.log(len(r)) for r in rows], 1)

        return by_head
    if isinstance(probe, Grouped):
        classes, groups = features_to_logits(probe.probe, device), [list(r) for r in probe.groups.values()]
        return lambda f: torch.stack([classes(f)[:, r].logsumexp(1) - math.log(len(r)) for r in groups], 1)
    mean, factor = (torch.as_tensor(v, device=device) for v in probe.scale_)
    w = torch.zeros(len(probe.coef_), len(probe.classes_), device=device)
    w[-1] = -1e9  # a class that the training set does not hold is never the answer
    w[:, torch.as_tensor(probe.labels_, device=device)] = probe.coef_.to(device)
    return lambda f: torch.addmm(w[-1], (f.float() - mean) * factor, w[:-1])


def spread_area(maps: Maps) -> NDArray[np.float64]:
    """Share of pixels at 0.5 or more, of each map in [0, 1]."""
    return np.asarray((maps >= 0.5).mean((1, 2)), np.float64)


def spread_entropy(maps: Maps) -> NDArray[np.float64]:
    """−Σ p ln p in nats of each map scaled to sum 1; 0 for a map without any saliency."""
    flat = maps.reshape(len(maps), -1).astype(np.float64)
    total = flat.sum(1, keepdims=True)
    return entropy(flat / np.where(total > 0, total, 1))


def overlay(view: NDArray[np.uint8], heat: NDArray[np.float32], side: int = SIDE) -> NDArray[np.uint8]:
    """The grey image under its map: from dark blue without saliency to bright yellow with the most."""
    small = side < view.shape[0]
    picture = cv2.resize(view, (side, side), interpolation=cv2.INTER_AREA if small else cv2.INTER_NEAREST)
    warm = cv2.resize(heat, (side, side), interpolation=cv2.INTER_LINEAR)
    coloured = cv2.applyColorMap(np.round(255 * warm).astype(np.uint8), cv2.COLORMAP_VIRIDIS)[:, :, ::-1]
    grey = picture.mean(2, keepdims=True)
    weight = 0.25 + 0.45 * warm[..., None]
    return np.clip((1 - weight) * grey + weight * coloured, 0, 255).astype(np.uint8)


def gallery(
    subject: Subject, answers: Answers, views: NDArray[np.uint8], maps: Maps, ending: str
) -> dict[str, Any]:
    """Overlays; the same images for every model, because they are chosen by the seed alone."""
    items = []
    pick = np.random.default_rng(subject.seed).permutation(len(answers.index))[:KEPT]
    for n, i in enumerate(pick):
        truth, response = answers.named(i)
        picture, badge = overlay(views[i], maps[i]), "right" if answers.correct[i] else "wrong"
        caption = f"{truth}: answered {response}"
        alt = f"saliency over an image of {truth}; the model answered {response}"
        name, of = f"saliency{ending}-{n}", answers.image_name(i)
        items.append(subject.item(picture, name, caption, badge, alt, of=of))
    return {"title": f"Where it looks, {answers.name}", "items": items, "shown": SHOWN, "split": True}
