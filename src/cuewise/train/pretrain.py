"""DATA and a configuration in, a run folder with a trained encoder out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cuewise.config import Config, complete, difference, merge, read_yaml, refuse_code, resolve
from cuewise.data import Dataset, Loader, auto_workers, fills_cores, open_data, usable_cores
from cuewise.data.parts import warn_of_files, warn_of_set
from cuewise.data.unusable import files_among
from cuewise.encoders.recompute import recompute_blocks
from cuewise.errors import UserError
from cuewise.files import explain_full_disk, write_json, write_text
from cuewise.folders import HeldFolder, check_folder, hold_folder, refuse_inside
from cuewise.memory import keep_freed
from cuewise.methods import Method
from cuewise.train.banner import banner
from cuewise.train.checkpoint import read_checkpoint
from cuewise.train.checkup import Observers, checkup_of
from cuewise.train.distributed import ProcessGroup, explain_lost_process, launch
from cuewise.train.environment import environment
from cuewise.train.epoch_end import EpochEnd
from cuewise.train.labels import with_labels
from cuewise.train.loop import LAYOUTS, Run, fit, restore
from cuewise.train.optim import OptimizerGroup, build_optimizers
from cuewise.train.phases import FILE, FOLDER, first_config, read_confusion, silver_of, write_confusion
from cuewise.train.shown import build_views
from cuewise.train.sinks import check_sinks
from cuewise.train.start import brought_weights, load_start, settle_rates
from cuewise.views.deferred import DeferredViews
from cuewise.views.smallest import reduced


@dataclass(frozen=True)
class RunMode:
    """What becomes of a run that is in the folder: continued from its last checkpoint (resume), for more epochs than were
    planned, on the schedule of the longer run (extend), or replaced (overwrite)."""

    resume: bool
    overwrite: bool
    extend: bool


NEW = RunMode(resume=False, overwrite=False, extend=False)
RESUMED = RunMode(resume=True, overwrite=False, extend=False)


def run_pretrain(
    layers: Sequence[Mapping[str, Any]], out: Path, mode: RunMode, observers: Observers | None = None
) -> dict[str, Any]:
    """Train as the layers of options say; returns a summary. `observers` measure the encoder while it trains."""
    config, data, resuming = planned(layers, out, mode)
    fabric = launch(config.devices, config.num_nodes, config.precision, config.loop.timeout_minutes)
    fabric.launch()
    keep_freed()
    corrected, before = config.labels.correction != "none", 0  # steps of an earlier phase
    run = first_phase(config, out, data, fabric) if corrected else build(config, out, data, fabric, observers)
    reads = [
        *images_of(config),
        config.model,
        *filter(None, [str(config.labels.gold or ""), config.generator]),
    ]
    with (
        explain_full_disk(out, "resume with --resume from the last checkpoint"),
        explain_lost_process(fabric.world_size),
        holding(out, fabric, mode, reads) as held,
    ):
        if corrected:
            estimate_confusion(run, config, out, data, held)
            before = run.step
            if config.steps is not None and config.steps <= run.total:
                return {"run": str(out), "steps": before, "images": len(data)}
            run = second_phase(run, config, out, data, observers)
        train(run, data, resuming, held)
        if corrected and fabric.is_global_zero:
            write_text(out / "config.yaml", config.to_yaml())  # with --steps of both phases
    return {
        "run": str(out),
        "encoder": str(out / "encoder.safetensors"),
        "steps": before + run.step,
        "images": len(data),
        "skipped": len(files_among(data.fingerprint()["skipped"])) + len(run.skipped),
    }


def images_of(config: Config) -> list[str]:
    """Every DATA that a run reads."""
    copies = (config.suppress or {}).get("copies", [])
    return [*config.data, *config.val, *config.texture_data, *copies]


def planned(layers: Sequence[Mapping[str, Any]], out: Path, mode: RunMode) -> tuple[Config, Dataset, bool]:
    """The configuration, the images and whether a run is resumed; refused where RUN is there or is another one."""
    if mode.extend and not mode.resume:
        raise UserError("--extend trains a run longer: add --resume")
    if mode.resume and mode.overwrite:
        raise UserError("--resume and --overwrite exclude each other: keep the run, or start it again")
    started = check_folder(out, "run", resume=mode.resume, overwrite=mode.overwrite)
    if mode.resume and not started:
        print(f"WARNING: nothing to resume in {out}: starting a new run", file=sys.stderr)
    resuming = started and (out / "config.yaml").exists()
    # --steps stopped that run early, and says nothing of this one
    saved = {**read_yaml(out / "config.yaml"), "steps": None} if resuming else None
    if saved is not None:
        refuse_code(saved, f"{out}/config.yaml", *layers)
        asked = next(
            (layer["method"] for layer in layers if layer.get("method") not in (None, saved["method"])), None
        )
        if asked is not None:
            raise UserError(
                f"--resume with another configuration (method: {saved['method']} → {asked}); undo the change, or use "
                "another --out"
            )
    config = resolve(*([saved] if saved else []), *layers)
    if not config.data:
        raise UserError("no DATA given: name a folder of images, an archive, or `shapes`")
    if not started:
        refuse_inside(out, images_of(config))
    data = with_labels(config, usable_images(config, open_data(config.data)))
    if not mode.extend:
        refuse_epochs(saved, config, layers)
    config = complete(config, len(data))
    if mode.extend and config.labels.correction != "none":
        raise UserError(
            "--extend has no meaning with labels.correction: both phases must have the same length; train a new run"
        )
    if saved is not None and mode.extend:
        budget = saved["loop"].get("budget")
        if budget is not None and config.loop.budget <= budget:
            raise UserError(
                f"--extend needs a larger budget than the {budget} steps that were planned: --set loop.budget=N"
            )
        if budget is None and config.epochs <= saved["epochs"]:
            raise UserError(f"--extend needs more --epochs than the {saved['epochs']} that were planned")
        config.settings = saved.get(config.method_class.name, config.settings)  # fitted to the shorter run
        saved = {**saved, "epochs": config.epochs, "loop": {**saved["loop"], "budget": config.loop.budget}}
    if saved is not None and (
        changed := difference(_with_later_settings(saved, len(data)), config.as_dict())
    ):
        longer = "; to train longer, add --extend" if any(c.startswith("epochs") for c in changed) else ""
        raise UserError(
            f"--resume with another configuration ({'; '.join(changed[:3])}); undo the change, or use another --out{longer}"
        )
    return config, data, resuming


def refuse_epochs(
    saved: Mapping[str, Any] | None, config: Config, layers: Sequence[Mapping[str, Any]]
) -> None:
    """A run whose length is a number of steps has no use for --epochs, which would be ignored."""
    budget = saved and saved["loop"].get("budget")
    if saved is None or budget is None or config.loop.budget is None:
        return
    if any("budget" in (layer.get("loop") or {}) for layer in layers):
        return  # the same command again, of which the number of steps decided the first time as well
    if any(layer.get("epochs", saved["epochs"]) != saved["epochs"] for layer in layers):
        raise UserError(
            f"--epochs has no meaning here: this run was planned as {budget} steps; leave it out, or train longer with "
            "--extend --set loop.budget=N"
        )


def _with_later_settings(saved: dict[str, Any], images: int) -> dict[str, Any]:
    """The configuration of a run, with the defaults of settings that a later version of cuewise has added."""
    return merge(complete(resolve(saved), images).as_dict(), saved)


@contextmanager
def holding(out: Path, fabric: Any, mode: RunMode, reads: Sequence[str]) -> Iterator[HeldFolder | None]:
    """Hold RUN in the first process, the one that writes; all processes end where it is refused."""
    refusal, held = None, None
    with ExitStack() as stack:
        if fabric.is_global_zero:
            try:
                holder = hold_folder(out, "run", resume=mode.resume, overwrite=mode.overwrite, reads=reads)
                held = stack.enter_context(holder)
            except UserError as error:
                refusal = str(error)
        refusal = fabric.broadcast(refusal)
        if refusal is not None:
            raise UserError(refusal)
        yield held


def train(run: Run, data: Dataset, resuming: bool, held: HeldFolder | None) -> None:
    """Write what is known before training, resume from a checkpoint if there is one, train."""
    out, fabric = run.folder, run.fabric
    if fabric.is_global_zero:
        (out / "checkpoints").mkdir(parents=True, exist_ok=True)
        write_text(out / "config.yaml", run.config.to_yaml())
        write_environment(run, data)
    fabric.barrier()
    checkpoint = out / "checkpoints" / "last.ckpt"
    if resuming and checkpoint.exists():
        restore(run, read_checkpoint(checkpoint))
        if run.step >= run.total:
            print(f"{out} is already trained to its end ({run.total} steps)", file=sys.stderr)
    fit(run, banner(run, data) if fabric.is_global_zero else [], held.started if held else None)
    if fabric.is_global_zero:
        write_environment(run, data)
    fabric.barrier()


def first_phase(config: Config, out: Path, data: Dataset, fabric: Any) -> Run:
    """The run RUN/phase1 that learns the labels as they are given."""
    return build(first_config(config), out / FOLDER, silver_of(data), fabric)


def estimate_confusion(run: Run, config: Config, out: Path, data: Dataset, held: HeldFolder | None) -> None:
    """Train the first phase to its end, or from where it was stopped, and write what it says of trusted images."""
    first = run.fabric.is_global_zero
    if first:
        write_text(out / "config.yaml", config.to_yaml())
    checkpoint = run.folder / "checkpoints" / "last.ckpt"
    if (out / FILE).exists():
        run.step = run.total
        return
    train(run, silver_of(data), checkpoint.exists(), held)
    if run.step == run.total and first:
        write_confusion(run.method, data, config, out)
    run.fabric.barrier()


def second_phase(done: Run, config: Config, out: Path, data: Dataset, observers: Observers | None) -> Run:
    """The run itself, with the estimated confusion; --steps counts those of both phases."""
    rest = None if config.steps is None else max(0, config.steps - done.total)
    run = build(replace(config, steps=rest), out, data, done.fabric, observers)
    run.method.take_confusion(read_confusion(out))
    return run


def build(config: Config, out: Path, data: Dataset, fabric: Any, observers: Observers | None = None) -> Run:
    """Encoder, method, optimiser and loader, seeded and on their device."""
    check_facts(config, data)
    if fabric.is_global_zero:
        if "label" in config.method_class.needs:
            warn_of_set(data, config.data)
        else:
            warn_of_files(data, " ".join(config.data))
    check_sinks(config.log)
    check_share(config, fabric.world_size)
    torch.manual_seed(config.seed)
    if config.loop.deterministic and torch.cuda.is_available():
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = False
    views = build_views(config, data)
    shown = reduced(data, views) if config.loop.decode == "reduced" else data
    encoder = load_start(config)
    encoder.card = type(encoder.card)(**{**encoder.card.as_dict(), **card_of(config, encoder.card.size)})
    method = config.method_class(
        encoder, config.setup(len(data.classes)), comm=ProcessGroup(), seed=config.seed
    )
    method = method.to(memory_format=LAYOUTS[config.loop.layout])
    if config.loop.sync_batch_norm:
        share_statistics(method, fabric)
    if config.loop.checkpointing:
        recompute_blocks(method.encoder.backbone, encoder.card.arch)
    if config.loop.compile:
        encoder.backbone.compile()
    steps = config.loop.budget or config.epochs * max(1, len(data) // config.batch_size)
    config.optim = settle_rates(config.optim, method, steps, config.batch_size)
    optimizers = build_optimizers(method, config.optim, config.batch_size, brought_weights(method))
    module, *wrapped = fabric.setup(method, *optimizers)
    optimizer = wrapped[0] if len(wrapped) == 1 else OptimizerGroup(wrapped)
    deferred = DeferredViews(views) if config.loop.views == "device" else None
    ranks = max(1, fabric.world_size // config.num_nodes)  # on this machine
    filled = fabric.device.type == "cpu" and fills_cores(ranks)
    workers = worker_count(config.workers, ranks, filled)
    loader = Loader(
        shown,
        deferred or views,
        batch_size=config.batch_size,
        seed=config.seed,
        workers=workers,
        rank=fabric.global_rank,
        world=fabric.world_size,
        pin=fabric.device.type == "cuda",
        between_steps=filled and workers * ranks >= usable_cores(),  # else cores would be idle between steps
    )
    val = open_data(config.val) if config.val else None
    if val is not None and val.labels is None:
        raise UserError("--val has no labels: put the images into one folder per class")
    if val is not None and fabric.is_global_zero:
        warn_of_set(val, config.val)
    run = Run(out, config, fabric, method, module, optimizer, loader, views, EpochEnd(val), deferred=deferred)
    run.checkup = checkup_of(run, data, val, observers)
    return run


def check_share(config: Config, world: int) -> None:
    """Every process gets the same number of images in every part of a batch."""
    parts = world * config.loop.accumulate
    if config.batch_size % parts:
        raise UserError(f"--batch-size {config.batch_size} must be a multiple of {parts}")
    if config.batch_size < 2 * parts:
        raise UserError(
            f"--batch-size {config.batch_size} gives one image to each of {parts} parts; use at least {2 * parts}"
        )


def share_statistics(method: Method, fabric: Any) -> None:
    """Batch norms that learn take their statistics from the batch of all processes; momentum networks keep their own."""
    if fabric.device.type != "cuda":
        raise UserError(
            "loop.sync_batch_norm needs GPUs: torch has no synchronised batch norm on this device"
        )
    for name, part in list(method.named_children()):
        if any(p.requires_grad for p in part.parameters()):
            setattr(method, name, torch.nn.SyncBatchNorm.convert_sync_batchnorm(part))


def usable_images(config: Config, data: Dataset) -> Dataset:
    """The images that the method can learn from; the number of others is printed."""
    found = config.method_class.usable(config.setup(len(data.classes)), data)
    if not len(found):
        raise UserError(f"--method {config.method} can use none of the {len(data)} images: it needs boxes")
    if len(found) < len(data):
        print(
            f"{len(data) - len(found)} of {len(data)} images are not used: {config.method} {config.method_class.unused}",
            file=sys.stderr,
        )
    return found


def check_facts(config: Config, data: Dataset) -> None:
    """Refuse data that lack facts the method needs."""
    needs = config.method_class.needs
    if "label" in needs and data.labels is None:
        raise UserError(f"--method {config.method} needs labels: put the images into one folder per class")
    if "label" in needs and len(data.classes) < 2:
        raise UserError(
            f"--method {config.method}: all images are of one class ({data.classes[0]}); give two classes or more"
        )
    if "boxes" in needs and not data.object_classes:
        raise UserError(f"--method {config.method} needs boxes: give DATA with annotations (docs/data.md)")
    for name, what in (("mask", "masks"), ("labels", "several labels per image")):
        if name in needs and all(getattr(data.facts(i), name) is None for i in range(min(len(data), 8))):
            raise UserError(
                f"--method {config.method} needs {what}: give DATA with annotations (docs/data.md)"
            )


def worker_count(text: str, ranks: int = 1, between_steps: bool = False) -> int:
    """--workers: auto or a number."""
    if text == "auto":
        return auto_workers(ranks, between_steps)
    if not text.isdigit():
        raise UserError(f"--workers {text}: auto, or a number (0 loads in the training process)")
    return int(text)


def card_of(config: Config, own_size: int) -> dict[str, Any]:
    """What encoder.json says of how the encoder was trained."""
    cues = {
        "negatives": list(config.negatives),
        "alpha": list(config.alpha),
        "alpha_mode": config.alpha_mode,
        "patch_size": config.patch_size,
        "hard": dict(config.hard),
        "suppress": config.suppress["name"] if config.suppress else None,
        "leave_out": list(config.left_out),
        "color_jitter": config.color_jitter,
        **({"suppress_settings": dict(config.suppress)} if config.suppress else {}),
        **({"crops": dict(config.crops)} if config.crops else {}),
        **({"generator": config.generator} if config.generator else {}),
        **config.method_class.cues(config.settings),
    }
    size = own_size if config.method_class.keeps_classifier else config.size
    return {"size": size, "method": config.method, "cues": cues}


def write_environment(run: Run, data: Dataset) -> None:
    """RUN/environment.json with the data's fingerprint; files found broken while training are added to it."""
    fingerprint = data.fingerprint()
    known = {entry["path"] for entry in fingerprint["skipped"]}
    fingerprint["skipped"] += [{"path": p, "why": w} for p, w in run.skipped.items() if p not in known]
    content = environment(
        data=fingerprint, devices=run.fabric.world_size, precision=str(run.fabric._precision.precision)
    )
    write_json(run.folder / "environment.json", content)
