"""The public face: the same words and arguments in the shell and in Python.

Every function here is a verb of the shell: `cuewise VERB … --some-option X` is `cuewise.VERB(…, some_option=X)`.
The help text of an option is its line in the docstring. Heavy imports wait until a verb is used.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def demo(*, out: str = "runs/demo", overwrite: bool = False) -> dict[str, Any]:
    """Tell the whole story on embedded images: two encoders, both audited, one report.

    out: folder for both runs and report.html
    overwrite: start again even if --out holds a finished demo
    """
    from cuewise.story import run_demo

    return run_demo(Path(out), overwrite=overwrite)


def pretrain(
    *data: str,
    out: str,
    method: str | None = None,
    model: str | None = None,
    pretrained: bool = False,
    size: int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    seed: int | None = None,
    negatives: list[str] | None = None,
    alpha: list[float] | None = None,
    alpha_mode: str | None = None,
    num_negatives: int | None = None,
    patch_size: str | None = None,
    patch_augment: str | None = None,
    texture_data: list[str] | None = None,
    leave_out: str | None = None,
    hard: str | None = None,
    suppress: str | None = None,
    color_jitter: bool | None = None,
    crops: str | None = None,
    val: list[str] | None = None,
    devices: str | None = None,
    num_nodes: int | None = None,
    precision: str | None = None,
    workers: str | None = None,
    config: str | None = None,
    set: list[str] | dict[str, Any] | None = None,
    steps: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Train an encoder from unlabelled images.

    data: folders, archives, shards or data sets of images, joined; DATA?classes=imagenet100 (or a file) takes some classes
    out: the run folder to write
    method: how to learn (see `cuewise list methods`) [moco]
    model: backbone: torchvision/NAME, timm/NAME, cuewise/resnet-tiny, package.module:factory [torchvision/resnet50]
    pretrained: start from the library's published weights of --model: from its cache, else downloaded
    size: side of the views in pixels [224]
    epochs: passes over the images [200]
    batch_size: images a step on all devices together; the learning rate follows it [256]
    seed: seed of everything random [0]
    negatives: push away images without meaning: patch, texture; for byol also regular (repeatable)
    alpha: weight of the negatives, one for all or one a kind; 0 is off [2; byol 0.05]
    alpha_mode: weight inside or outside the exponential: in, out [in]
    num_negatives: negatives of each kind for each image [1]
    patch_size: side of the patches as LOW:HIGH in pixels [16:72, scaled with the size]
    patch_augment: change each patch: hflip,vflip,rot90
    texture_data: textures of the images, as `cuewise make texture` wrote them; one set for each negative [made on the fly]
    hard: make negatives harder: mochi, ifm, debiased, hard; its settings are --set hard.* (moco, simclr)
    suppress: filter half of the views against texture: anisotropic, robust, bilateral, cartoon, gaussian
    leave_out: augmentations to keep a space of their own for, e.g. color,rotation,texture (looc, addone)
    color_jitter: jitter colours (--no-color-jitter leaves it out) [on]
    crops: where crops are taken: random [random]
    val: labelled images for a k-NN accuracy after each epoch
    devices: auto, a number, cpu:2, cuda:4, mps [auto]
    num_nodes: machines, with torchrun or SLURM [1]
    precision: auto, 32, bf16, 16 [auto]
    workers: processes that load images: auto or a number [auto]
    config: a YAML file of settings, e.g. the config.yaml of another run, or a recipe (see `cuewise list recipes`)
    set: any other setting as dotted.key=value, e.g. optim.lr=0.1, moco.queue=4096 (repeatable)
    steps: stop after that many steps in all, the schedule unchanged
    resume: go on where a run stopped
    overwrite: replace the run in --out
    """
    from cuewise.config import dotted
    from cuewise.encoders.load import with_pretrained
    from cuewise.errors import UserError
    from cuewise.recipes import settings_of
    from cuewise.report.card import card_of_run
    from cuewise.train.pretrain import run_pretrain

    if pretrained and model is None:
        raise UserError("--pretrained belongs to --model: name the one whose weights to start from")
    options: dict[str, Any] = {
        "data": [str(d) for d in data] or None,
        "val": val,
        "method": method,
        "model": with_pretrained(model, pretrained) if model else None,
        "size": size,
        "epochs": epochs,
        "batch_size": batch_size,
        "seed": seed,
        "devices": devices,
        "num_nodes": num_nodes,
        "precision": precision,
        "workers": workers,
        "steps": steps,
        "negatives": negatives,
        "alpha": alpha,
        "alpha_mode": alpha_mode,
        "num_negatives": num_negatives,
        "patch_size": patch_size,
        "patch_augment": [a for a in patch_augment.split(",") if a] if patch_augment else None,
        "texture_data": texture_data,
        "leave_out": leave_out.split(",") if isinstance(leave_out, str) else leave_out,
        "hard": {"name": hard} if hard else None,
        "suppress": suppress,
        "color_jitter": color_jitter,
        "crops": crops,
    }
    layers: list[dict[str, Any]] = [settings_of(config)] if config else []
    layers += [dotted(set) if isinstance(set, list) else set or {}]
    layers += [{k: v for k, v in options.items() if v is not None}]
    result = run_pretrain(layers, Path(out), resume=resume, overwrite=overwrite)
    ranks = (os.environ.get(name, "0") for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))
    if all(rank == "0" for rank in ranks):  # one process writes
        card_of_run(Path(out))
    return result


def embed(
    model: str,
    *data: str,
    out: str,
    batch_size: int = 128,
    space: str | None = None,
    pretrained: bool = False,
    size: int | None = None,
    workers: str = "auto",
    device: str = "auto",
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write embeddings of images.

    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), package.module:factory
    data: folders, archives, shards or data sets of images, joined; DATA?classes=imagenet100 (or a file) takes some classes
    out: FILE.npz or FILE.parquet with features, paths, and labels when folders name them
    batch_size: images a forward pass
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    size: side of the input in pixels [the model's own]
    workers: processes that load images: auto or a number
    device: auto, cpu, cuda, mps
    overwrite: replace the file in --out
    """
    from cuewise.encoders.load import with_pretrained, with_space
    from cuewise.probes.embed import write_embeddings

    return write_embeddings(
        with_space(with_pretrained(model, pretrained), space),
        list(data),
        Path(out),
        batch_size=batch_size,
        size=size,
        workers=workers,
        device=device,
        overwrite=overwrite,
    )


def probe(
    kind: str,
    model: str,
    *,
    train: list[str],
    test: list[str] | None = None,
    preset: str | None = None,
    k: int | None = None,
    temperature: float | None = None,
    shots: list[int] | None = None,
    trials: int | None = None,
    labels: list[str] | None = None,
    class_map: str | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    steps: int | None = None,
    space: str | None = None,
    pretrained: bool = False,
    size: int | None = None,
    seed: int = 0,
    cache: bool | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """Score an encoder on labelled images: what its features know, or what it learns from there.

    kind: linear, knn, fewshot, rotation, finetune or multilabel (see `cuewise list probes`)
    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), package.module:factory
    train: labelled images the probe is fitted on; DATA?classes=imagenet100 (or a file) takes some classes
    test: labelled images it is scored on, each set by itself [a fifth of --train, held out]
    preset: a paper's settings: linear ns, moco, looc, frozen_conv; finetune transfer, clean; multilabel oac, voc
    k: neighbours of knn [20]
    temperature: of knn's votes [0.07]
    shots: images of each class for fewshot, one number or several [5]
    trials: draws of fewshot [10]
    labels: tables of labels for multilabel, CSV or JSON: one for all sets, or one for --train and one for each --test
    class_map: JSON or CSV that says which training class a class of a test set is, where the names differ
    epochs: passes over the images, for finetune [the preset's]
    batch_size: images a step, for finetune [the preset's]
    lr: learning rate of finetune [the preset's, chosen on held-out images where there are several]
    steps: stop fine-tuning after that many steps, the schedule unchanged
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    size: side of the input in pixels [the model's own]
    seed: of everything random
    cache: keep features on disk and use them again (--no-cache does not) [on]
    device: auto, cpu, cuda, mps
    """
    from cuewise.encoders.load import with_pretrained, with_space
    from cuewise.probes.run import run_probe

    return run_probe(
        kind,
        with_space(with_pretrained(model, pretrained), space),
        train=train,
        test=test or [],
        size=size,
        seed=seed,
        device=device,
        keep=cache is not False,
        preset=preset,
        k=k,
        temperature=temperature,
        shots=shots,
        trials=trials,
        labels=labels,
        class_map=class_map,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        steps=steps,
    )


def audit(
    *model: str,
    out: str,
    train: list[str] | None = None,
    test: list[str] | None = None,
    only: str | None = None,
    limit: int = 200,
    answers: str = "auto",
    class_map: str | None = None,
    human: str | None = None,
    reference_errors: str | None = None,
    superclasses: str | None = None,
    masks: str | None = None,
    space: str | None = None,
    pretrained: bool = False,
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    workers: str = "auto",
    engine: str = "local",
    address: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Measure which cues models rely on, and write a report.

    model: run folders, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), package.module:factory
    out: folder for audit.json, report.html and pictures
    train: labelled images that probes are fitted on; DATA?classes=imagenet100 (or a file) takes some classes [shapes]
    test: images to score [the embedded cue sets]
    only: audits to run, separated by commas (see `cuewise list audits`)
    limit: images of which changed copies and, for similarity, pairs are made; 0 takes all
    answers: whose answers count: head (the model's own classifier), probe (fitted on --train), auto
    class_map: a JSON file that says which outputs of the classifier stand for which class [ImageNet's, where it fits]
    human: a CSV of people's decisions on the cue-conflict images, shown beside the model's
    reference_errors: a JSON file of a reference model's errors by corruption (mean, or five severities), for mCE
    superclasses: a JSON file of class and superclass, or imagenet-dogs, for accuracy on kinds and on their breeds
    masks: images named as those of --test, white where the object is, for the share of saliency on it
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    size: side of the input in pixels [the model's own]
    seed: of everything random
    device: auto, cpu, cuda, mps
    workers: processes that make changed copies: auto or a number
    engine: local, or ray for a cluster
    address: of the Ray cluster
    overwrite: replace the audit in --out
    """
    from cuewise.audits.run import audit_models, comparison, finish
    from cuewise.audits.saved import unfinished
    from cuewise.encoders.load import with_pretrained, with_space
    from cuewise.folders import claim_folder
    from cuewise.report.folders import report_audits

    names = [a for a in only.split(",") if a] if only else []
    place = Path(out)
    reads = [*model, *(train or []), *(test or [])]
    with claim_folder(place, "audit", resume=unfinished(place), overwrite=overwrite, reads=reads) as claim:
        if claim.resuming:
            print(f"{out}: resuming an interrupted audit", file=sys.stderr, flush=True)
        found = audit_models(
            [with_space(with_pretrained(m, pretrained), space) for m in model],
            place,
            train=train or [],
            test=test or [],
            only=names,
            size=size,
            seed=seed,
            device=device,
            limit=limit,
            answers=answers,
            class_map=class_map,
            options={
                "human": human,
                "reference_errors": reference_errors,
                "superclasses": superclasses,
                "masks": masks,
            },
            workers=None if workers == "auto" else int(workers),
            engine=engine,
            address=address,
            unfinished=True,
            started=claim.started,
        )
        result = report_audits(found, place)
        claim.finished()
        finish(place)
    return {**result, **comparison([document for _, document in found])}


def score(file: str, *, audit: str = "shape_bias", subject: str | None = None) -> dict[str, Any]:
    """Score a table of decisions made elsewhere.

    file: a CSV with the columns subject,image,shape,texture,response
    audit: shape_bias
    subject: only this subject [all, each by itself]
    """
    from cuewise.audits.score import score_decisions

    return score_decisions(Path(file), audit=audit, subject=subject)


def compare(*audit: str, out: str, overwrite: bool = False) -> dict[str, Any]:
    """Put several models side by side in one report.

    audit: run or audit folders
    out: folder for report.html
    overwrite: replace the report in --out
    """
    from cuewise.report.folders import compare_folders

    return compare_folders([Path(a) for a in audit], Path(out), overwrite=overwrite)


def make(
    kind: str,
    src: str,
    dst: str | None = None,
    *,
    set: list[str] | dict[str, Any] | None = None,
    format: str = "png",
    shards: int | None = None,
    manifest: str = "jsonl",
    seed: int = 0,
    workers: str = "auto",
    limit: int | None = None,
    dry_run: bool = False,
    both: bool = False,
    subset: str | None = None,
    grid: str | None = None,
    engine: str = "local",
    address: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Make a copy of an image set: textures, diffused, cartoons, corrupted, cue-conflict and more.

    kind: what to make (see `cuewise list makers`)
    src: the images to start from; left out for `cuewise make shapes DST`
    dst: the folder to write; a second call goes on where the first stopped
    set: settings of the maker as key=value, e.g. steps=20 (repeatable)
    format: png, jpeg or webp, with a quality as jpeg:90
    shards: write tar shards of that many images instead of a tree of files
    manifest: the table of what was made: jsonl or parquet
    seed: of everything random; each image has a seed of its own that follows from it and its name
    workers: processes: auto (all cores) or a number; 0 works in this process
    limit: only the first images
    dry_run: only measure a sample, and say how long and how large it would be
    both: write the originals beside the results
    subset: the classes to take: imagenet100, or a file that lists them, one a line (as SRC?classes=…)
    grid: a YAML list of settings, a set in a subfolder each
    engine: local, or ray for a cluster
    address: of the Ray cluster
    overwrite: replace the set in DST
    """
    from cuewise.make.run import make_set

    source, target = (None, src) if dst is None else (src, dst)
    return make_set(
        kind,
        source,
        target,
        set=set,
        format=format,
        shards=shards,
        manifest=manifest,
        seed=seed,
        workers=workers,
        limit=limit,
        dry_run=dry_run,
        both=both,
        subset=subset,
        grid=grid,
        engine=engine,
        address=address,
        overwrite=overwrite,
    )


def export(
    run: str,
    *,
    format: str,
    out: str,
    space: str | None = None,
    pretrained: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write a trained encoder for another library.

    run: a run folder or encoder.safetensors
    format: safetensors, torchvision, timm or onnx
    out: the file to write
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + (onnx)
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    overwrite: replace the file in --out
    """
    from cuewise.encoders.export import export_encoder
    from cuewise.encoders.load import with_pretrained, with_space

    return export_encoder(
        with_space(with_pretrained(run, pretrained), space), format, Path(out), overwrite=overwrite
    )


def reproduce(
    *name: str,
    out: str,
    data: list[str] | None = None,
    val: list[str] | None = None,
    ood: list[str] | None = None,
    budget: float | None = None,
    seeds: int = 5,
    epochs: int | None = None,
    jobs: str = "auto",
    arms: list[str] | None = None,
    precision: str = "auto",
    method: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Put the papers' claims to the test at lab scale: train, measure over seeds, say what held.

    name: studies to run (see `cuewise list studies`) [all]
    out: folder for the trained arms, results.json, results.md and report.html; a second call goes on where the first stopped
    data: shapes, or labelled photographs to learn from [shapes]
    val: labelled photographs to test on [a fifth of --data, held out]
    ood: domains of labelled photographs: a probe is fitted on the first and tested on the others
    budget: minutes for all of it together; fewer epochs where needed [as many as the lab is made for]
    seeds: runs of every arm, each with its own seed; the same seeds in all arms; fewer than 5 are a first look
    epochs: of every run [the lab's own; three times as many in looc-rotation]
    jobs: runs side by side: auto (one a core) or a number
    arms: names of arms to run, with * for any text; claims that need others are then not measured [all]
    precision: auto (as `pretrain`), 32 or bf16, which is faster on a CPU that computes in it
    method: moco or simclr, for studies that are not about a method [simclr on shapes, moco on photographs]
    overwrite: start again, the trained arms in --out included
    """
    from cuewise.studies.run import run_studies

    return run_studies(
        name,
        Path(out),
        data=data or [],
        val=val or [],
        ood=ood or [],
        budget=budget,
        seeds=seeds,
        epochs=epochs,
        jobs=jobs,
        arms=arms or [],
        precision=precision,
        method=method,
        overwrite=overwrite,
    )


def list_(what: str) -> dict[str, str]:
    """Say what there is.

    what: methods, models, negatives, filters, audits, makers, probes, recipes or studies
    """
    from cuewise.catalogue import catalogue

    return catalogue(what)


VERBS = {
    f.__name__.rstrip("_"): f
    for f in (demo, pretrain, embed, probe, audit, score, compare, make, export, reproduce, list_)
}
