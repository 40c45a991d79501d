"""DATA and a configuration in, a run folder with a trained encoder out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from cuewise.config import Config, complete, difference, read_yaml, refuse_code, resolve
from cuewise.data import Dataset, Loader, auto_workers, open_data
from cuewise.encoders.embed import embed_dataset
from cuewise.encoders.load import save_encoder
from cuewise.encoders.spaces import Heads, save_heads
from cuewise.errors import UserError
from cuewise.files import explain_full_disk, write_json, write_text
from cuewise.folders import HeldFolder, check_folder, claim_folder
from cuewise.methods import Method
from cuewise.objectives.neighbours import knn_votes
from cuewise.scores import proportion
from cuewise.train.banner import banner
from cuewise.train.checkpoint import read_checkpoint
from cuewise.train.checkup import Observers, checkup_of
from cuewise.train.distributed import Everyone, explain_lost_process, launch
from cuewise.train.environment import environment
from cuewise.train.loop import Run, fit, restore
from cuewise.train.optim import build_optimizer
from cuewise.train.shown import build_views
from cuewise.train.sinks import check_sinks
from cuewise.train.start import brought_weights, load_start, settle_rates


def run_pretrain(
    layers: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    extend: bool = False,
    observers: Observers | None = None,
) -> dict[str, Any]:
    """Train as the layers of options say; returns a summary. With `resume`, continue from the last checkpoint; with
    `extend`, for more epochs than were planned, on the schedule of the longer run. `observers` measure the encoder while
    it trains."""
    if extend and not resume:
        raise UserError("--extend trains a run longer: add --resume")
    if resume and overwrite:
        raise UserError("--resume and --overwrite exclude each other: keep the run, or start it again")
    started = check_folder(out, "run", resume=resume, overwrite=overwrite)
    if resume and not started:
        print(f"nothing to resume in {out}: starting a new run", file=sys.stderr)
    resuming = started and (out / "config.yaml").exists()
    # --steps stopped that run early, and says nothing of this one
    saved = {**read_yaml(out / "config.yaml"), "steps": None} if resuming else None
    if saved is not None:
        refuse_code(saved, f"{out}/config.yaml", *layers)
    config = resolve(*([saved] if saved else []), *layers)
    if not config.data:
        raise UserError("no DATA given: name a folder of images, an archive, or `shapes`")
    data = usable_images(config, open_data(config.data))
    config = complete(config, len(data))
    if saved is not None and extend:
        if config.epochs <= saved["epochs"]:
            raise UserError(f"--extend needs more --epochs than the {saved['epochs']} that were planned")
        config.settings = saved.get(config.method_class.name, config.settings)  # fitted to the shorter run
        saved = {**saved, "epochs": config.epochs}
    if saved is not None and (changed := difference(saved, config.as_dict())):
        longer = "; to train longer, add --extend" if any(c.startswith("epochs") for c in changed) else ""
        raise UserError(
            f"--resume with another configuration ({'; '.join(changed[:3])}); take it back, or use another --out{longer}"
        )

    fabric = launch(config.devices, config.num_nodes, config.precision, config.loop.timeout_minutes)
    fabric.launch()
    run = build(config, out, data, fabric, observers)
    copies = (config.suppress or {}).get("copies", [])
    reads = [*config.data, *config.val, config.model, *config.texture_data, *copies]
    with (
        explain_full_disk(out, "resume with --resume from the last checkpoint"),
        explain_lost_process(fabric.world_size),
        claimed(out, fabric, resume, overwrite, reads) as claim,
    ):
        train(run, data, resuming, claim)
    return {
        "run": str(out),
        "encoder": str(out / "encoder.safetensors"),
        "steps": run.step,
        "images": len(data),
        "skipped": len(data.fingerprint()["skipped"]) + len(run.skipped),
    }


@contextmanager
def claimed(
    out: Path, fabric: Any, resume: bool, overwrite: bool, reads: Sequence[str]
) -> Iterator[HeldFolder | None]:
    """Hold RUN in the first process, the one that writes; all processes end where it is refused."""
    refusal, claim = None, None
    with ExitStack() as stack:
        if fabric.is_global_zero:
            try:
                held = claim_folder(out, "run", resume=resume, overwrite=overwrite, reads=reads)
                claim = stack.enter_context(held)
            except UserError as error:
                refusal = str(error)
        refusal = fabric.broadcast(refusal)
        if refusal is not None:
            raise UserError(refusal)
        yield claim


def train(run: Run, data: Dataset, resuming: bool, claim: HeldFolder | None) -> None:
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
    fit(run, banner(run, data) if fabric.is_global_zero else [], claim.started if claim else None)
    if fabric.is_global_zero:
        write_environment(run, data)
    fabric.barrier()


def build(config: Config, out: Path, data: Dataset, fabric: Any, observers: Observers | None = None) -> Run:
    """Encoder, method, optimiser and loader, seeded and on their device."""
    check_facts(config, data)
    check_sinks(config.log)
    if config.batch_size % (fabric.world_size * config.loop.accumulate):
        raise UserError(
            f"--batch-size {config.batch_size} must be a multiple of {fabric.world_size * config.loop.accumulate}"
        )
    torch.manual_seed(config.seed)
    if config.loop.deterministic and torch.cuda.is_available():
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = False
    views = build_views(config, data)
    encoder = load_start(config)
    encoder.card = type(encoder.card)(**{**encoder.card.as_dict(), **card_of(config, encoder.card.size)})
    method = config.method_class(encoder, config.setup(len(data.classes)), comm=Everyone(), seed=config.seed)
    method = method.to(memory_format=torch.channels_last)
    if config.loop.sync_batch_norm:
        share_statistics(method, fabric)
    if config.loop.compile:
        encoder.backbone.compile()
    config.optim = settle_rates(config.optim, method)
    optimizer = build_optimizer(method, config.optim, config.batch_size, brought_weights(method))
    module, optimizer = fabric.setup(method, optimizer)
    loader = Loader(
        data,
        views,
        batch_size=config.batch_size,
        seed=config.seed,
        workers=worker_count(config.workers, fabric.world_size),
        rank=fabric.global_rank,
        world=fabric.world_size,
        pin=fabric.device.type == "cuda",
    )
    val = open_data(config.val) if config.val else None
    if val is not None and val.labels is None:
        raise UserError("--val has no labels: put the images into one folder per class")
    run = Run(out, config, fabric, method, module, optimizer, loader, views, EpochEnd(val))
    run.checkup = checkup_of(run, data, val, observers)
    return run


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
    """What the method cannot do without must be known of the images."""
    needs = config.method_class.needs
    if "label" in needs and data.labels is None:
        raise UserError(f"--method {config.method} needs labels: put the images into one folder per class")
    if "label" in needs and len(data.classes) < 2:
        raise UserError(
            f"--method {config.method}: all images are of one class ({data.classes[0]}); give two classes or more"
        )
    if "boxes" in needs and not data.object_classes:
        raise UserError(f"--method {config.method} needs boxes: give DATA with annotations (docs/data.md)")


def worker_count(text: str, ranks: int = 1) -> int:
    """--workers: auto or a number."""
    if text == "auto":
        return auto_workers(ranks)
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
    }
    size = own_size if config.method_class.keeps_classifier else config.size
    return {"size": size, "method": config.method, "cues": cues}


class EpochEnd:
    """Writes the encoder as it stands, and its k-NN accuracy on --val (each image against all others)."""

    def __init__(self, val: Dataset | None) -> None:
        self.val = val

    def __call__(self, run: Run, measure: bool = True) -> dict[str, float]:
        out: dict[str, float] = {}
        if run.first:
            save_encoder(
                run.method.encoder,
                run.folder / "encoder.safetensors",
                step=run.step,
                epochs=run.config.epochs,
            )
            if isinstance(heads := getattr(run.method, "heads", None), Heads):
                save_heads(heads, run.folder, run.step)
            if self.val is not None and measure:
                out = knn_leave_one_out(run, self.val)
        run.fabric.barrier()
        return out


def knn_leave_one_out(run: Run, val: Dataset, k: int = 20, tau: float = 0.07) -> dict[str, float]:
    """val/knn20_t0.07_loo and its interval."""
    found = embed_dataset(run.method.encoder, val, label=None)
    z = F.normalize(torch.from_numpy(found.features), dim=1)
    labels = torch.from_numpy(found.labels)
    votes = knn_votes(z, z, labels, len(val.classes), k=k, tau=tau, leave_one_out=True)
    name = f"val/knn{k}_t{tau}_loo"
    score = proportion(name, int((votes.argmax(1) == labels).sum()), len(labels), "k-NN, leave one out")
    return {name: score.value, f"{name}_low": score.low, f"{name}_high": score.high}


def write_environment(run: Run, data: Dataset) -> None:
    """RUN/environment.json with the data's fingerprint; files found broken while training are added to it."""
    fingerprint = data.fingerprint()
    known = {entry["path"] for entry in fingerprint["skipped"]}
    fingerprint["skipped"] += [{"path": p, "why": w} for p, w in run.skipped.items() if p not in known]
    content = environment(
        data=fingerprint, devices=run.fabric.world_size, precision=str(run.fabric._precision.precision)
    )
    write_json(run.folder / "environment.json", content)
