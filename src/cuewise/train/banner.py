"""What a run says before it starts: what it will do, and what looks wrong with its images."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from cuewise.data import BrokenImage, Dataset
from cuewise.encoders.card import describe_weights, is_random
from cuewise.methods.method import SHORT, SMALL
from cuewise.train.labels import label_lines
from cuewise.train.optim import scaled_lr
from cuewise.views.box_sources import ProposedBoxes, TableBoxes
from cuewise.views.object_crops import ObjectCrops
from cuewise.views.smallest import reduction_line, reductions

if TYPE_CHECKING:
    from cuewise.train.loop import Run

LOOKED_AT = 64  # images that are decoded to look for constant and identical ones


def banner(run: Run, data: Dataset) -> list[str]:
    """The start of a run in a few lines, warnings last."""
    config, loader = run.config, run.loader
    steps = loader.steps_per_epoch
    dropped = len(data) - steps * config.batch_size
    classes = f" of {counted(len(data.classes), 'class', 'classes')}" if data.labels is not None else ""
    last = min(run.total, config.steps or run.total)
    stop = f", stopping after step {last}" if last < run.total else ""
    queue = getattr(run.method.settings, "queue", None)
    lines = [
        f"{config.method} with {config.model} at {config.size} px: {len(data)} images{classes}",
        f"{counted(config.epochs, 'epoch')} of {counted(steps, 'step')} = {counted(run.total, 'step')} of "
        f"{config.batch_size} images{stop}; "
        + (
            f"{dropped} images are dropped per epoch (different ones each time)"
            if dropped
            else "no image is dropped"
        ),
        f"{config.optim.name}, learning rate {scaled_lr(config.optim, config.batch_size):.3g} for this batch size, "
        f"{config.optim.schedule} schedule" + (f"; queue of {queue} keys" if queue else ""),
        *rate_lines(run),
        *start_lines(run),
        f"{run.fabric.device.type} × {run.fabric.world_size}, precision {config.precision}, "
        + counted(loader.workers, "loader process", "loader processes"),
    ]
    source = getattr(run.views.crops, "source", None)
    if isinstance(source, TableBoxes):
        lines.append(f"boxes: {source.file}, {len(source.found)} images with boxes")
    elif isinstance(source, ProposedBoxes):
        lines.append(
            "boxes: proposals, made for every view anew; `cuewise make boxes DATA DIR` makes them once, and they are found again"
        )
    if config.loop.decode == "reduced":
        lines.append(reduction_line(reductions(loader.maker.ds)))
    return lines + label_lines(data) + warnings(run, data)


def counted(number: int, one: str, more: str = "") -> str:
    """ "1 epoch", "3 epochs"."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def rate_lines(run: Run) -> list[str]:
    """For the short-run rate: its ratio to the published rate, and how to set that one."""
    optim, method = run.config.optim, run.method.optim
    if optim.lr != method.get("short_lr") or optim.name != method["name"]:
        return []
    published = method["lr"] * optim.reference_batch / method["reference_batch"]
    short = (
        run.total < SHORT and run.config.batch_size <= SMALL and is_random(run.method.encoder.card.weights)
    )
    start = "" if short else "warning: "
    why = "as for" if short else "which is for small batches in"
    return [
        f"{start}that is {optim.lr / published:g} × the published rate, {why} runs under {SHORT:,} steps from random weights; "
        f"the published one: --set optim.lr={published:g}"
    ]


def start_lines(run: Run) -> list[str]:
    """What a model that brought weights starts as, and what of it trains."""
    encoder, optim = run.method.encoder, run.config.optim
    if is_random(encoder.card.weights):
        return []
    parts = [p for p in encoder.backbone.parameters() if p.requires_grad]
    trained, whole = (sum(p.numel() for p in ps) for ps in (parts, encoder.backbone.parameters()))
    line = (
        f"starts from {describe_weights(encoder.card.weights)}; {trained:,} of its {whole:,} parameters train"
    )
    if optim.layer_decay not in (None, 1.0):
        line += f", the rate falls by {optim.layer_decay:g} per block towards the input"
    if optim.head_warmup:
        line += f"; only new heads learn in the first {optim.head_warmup:.0%} of the steps"
    return [line]


def warnings(run: Run, data: Dataset) -> list[str]:
    """What would waste the run, or make its numbers mean something else."""
    out = image_warnings(data)
    if isinstance(run.views.crops, ObjectCrops):
        out += [f"warning: {doubt}" for doubt in run.views.crops.doubts()]
    for negative in run.views.negatives:
        out += [f"warning: {doubt}" for doubt in negative.doubts(run.config.size)]
    if run.config.optim.warmup_epochs * run.loader.steps_per_epoch >= run.total:
        out.append(
            f"warning: the warm-up of {run.config.optim.warmup_epochs:g} epochs is as long as the run; "
            "the first tenth of the run is taken instead"
        )
    if run.method.keeps_classifier and is_random(run.method.encoder.card.weights):
        out.append(
            "warning: the teacher has RANDOM WEIGHTS: there is nothing to keep; give --model MODEL:FILE"
        )
    parts = run.config.loop.accumulate
    if parts > 1 and not run.method.needs:
        share = run.config.batch_size // parts
        out.append(
            f"warning: loop.accumulate={parts} saves memory, but is not a batch of {run.config.batch_size}: negatives "
            f"of the same batch and batch statistics are those of {share} images"
        )
    return out


def image_warnings(data: Dataset) -> list[str]:
    """Constant and identical images among the first ones."""
    constant, seen = 0, Counter[bytes]()
    for i in range(min(len(data), LOOKED_AT)):
        try:
            image = data.image(i)
        except BrokenImage:
            continue
        constant += bool(image.min() == image.max())
        seen[hashlib.blake2b(image.tobytes() + str(image.shape).encode(), digest_size=16).digest()] += 1
    total, out = sum(seen.values()), []
    if total and constant > total / 10:
        out.append(
            f"warning: {constant} of the first {total} images are of one colour: there is nothing to learn from them"
        )
    repeated = total - len(seen)
    if total and repeated > total / 10 and constant <= total / 10:
        out.append(
            f"warning: {repeated} of the first {total} images repeat another one: they are pushed apart as if they differed"
        )
    return out
