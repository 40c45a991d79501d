"""The public face: the same words and arguments in the shell and in Python.

Every function here is a verb of the shell: `cuewise VERB … --some-option X` is `cuewise.VERB(…, some_option=X)`.
The help of an option is part of its type, the lines of a docstring that begin with "cuewise" are the examples of --help.
Heavy imports wait until a verb is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cuewise.options import COMMAS, Of, OfKind, One, Several, checked, texts

Result = dict[str, Any]
INPUT, MACHINE = "input", "machine"  # groups of options under --help

Data = Annotated[
    Several,
    "folders, archives, shards or data sets of images, joined; DATA?classes=imagenet100 takes some classes",
]
Model = Annotated[
    One | Callable[..., Any],
    "a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), package.module:factory",
]
Space = Annotated[
    str | None,
    "of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]",
    INPUT,
]
Pretrained = Annotated[
    bool,
    "take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded",
    INPUT,
]
Size = Annotated[int | None, "side of the input in pixels [the model's own]", INPUT]
Seed = Annotated[int, "seed of everything random [0]", INPUT]
Device = Annotated[str, "auto, cpu, cuda, mps", MACHINE]
Workers = Annotated[str | int, "processes that prepare images: auto or a number", MACHINE]
Engine = Annotated[str, "local, or ray for a cluster", MACHINE]
Address = Annotated[str | None, "of the Ray cluster", MACHINE]
Settings = Sequence[str] | Mapping[str, Any] | None
Tests = Annotated[
    Several | None,
    "images to score; with a role as in sketch=DATA (silhouette, texture, stylized, conflict, plain) [embedded sets]",
]
Audits = Annotated[
    str | Sequence[str] | None, "audits to run, separated by commas (see `cuewise list audits`)", COMMAS
]
Names = Annotated[Several | None, "names of the models in the report, one for each, in their order", INPUT]
Limit = Annotated[
    int, "images of which changed copies and, for similarity, pairs are made; 0 takes all", INPUT
]
Answers = Annotated[
    str, "whose answers count: head (the model's own classifier), probe (fitted on --train), auto", INPUT
]
ClassMap = Annotated[
    One | None,
    "a JSON file: which outputs of a classifier, or training classes of a probe, stand for a class [by WordNet ids]",
    INPUT,
]


def joined(data: Sequence[Several]) -> list[str]:
    """DATA arguments as one list."""
    return [text for each in data for text in texts(each)]


def specified(model: Any, space: str | None, pretrained: bool) -> Any:
    """MODEL, --space and --pretrained as one specification; a module stays what it is."""
    from cuewise.encoders.load import with_pretrained, with_space

    return with_space(with_pretrained(str(model) if isinstance(model, Path) else model, pretrained), space)


def optional(value: One | None) -> str | None:
    """A path as text."""
    return None if value is None else str(value)


def several(value: str | Sequence[str] | None) -> list[str]:
    """Names, also as one text with commas."""
    return [name for text in texts(value) for name in text.split(",") if name]


def demo(
    *,
    out: Annotated[One, "folder for both runs and report.html"] = "runs/demo",
    overwrite: Annotated[bool, "start again even if --out holds a finished demo"] = False,
) -> Result:
    """Show all of it on embedded images: two encoders, both audited, one report.

    cuewise demo
    cuewise demo --out runs/again --overwrite
    """
    from cuewise.story import run_demo

    return run_demo(Path(out), overwrite=overwrite)


def pretrain(
    *data: Data,
    out: Annotated[One, "the run folder to write"],
    config: Annotated[
        One | None,
        "a YAML file of settings, e.g. the config.yaml of another run, or a recipe (see `cuewise list recipes`)",
    ] = None,
    set: Annotated[
        Settings,
        "any other setting as dotted.key=value, e.g. optim.lr=0.1, moco.queue=4096 (see `cuewise list settings`)",
    ] = None,
    pretrained: Annotated[
        bool, "start from the library's published weights of --model: from its cache, else downloaded"
    ] = False,
    resume: Annotated[bool, "continue where the run in --out stopped"] = False,
    extend: Annotated[
        bool, "with --resume: train for more --epochs than were planned, on the longer schedule"
    ] = False,
    overwrite: Annotated[bool, "replace the run in --out"] = False,
    **options: Annotated[Any, Of("cuewise.config.fields:Config")],
) -> Result:
    """Train an encoder from unlabelled images.

    cuewise pretrain photos --out runs/plain
    cuewise pretrain photos --out runs/shape --negatives patch --alpha 2 --suppress anisotropic
    """
    from cuewise.config import Config, dotted, refuse_code
    from cuewise.encoders.load import with_pretrained
    from cuewise.errors import UserError
    from cuewise.recipes import settings_of
    from cuewise.report.card import card_of_run
    from cuewise.train.distributed import Everyone
    from cuewise.train.pretrain import run_pretrain

    asked = checked(Config, options, "pretrain")
    if pretrained and "model" not in asked:
        raise UserError("--pretrained belongs to --model: name the one whose weights to start from")
    if pretrained:
        asked["model"] = with_pretrained(asked["model"], pretrained)
    if "hard" in asked and isinstance(asked["hard"], str):
        asked["hard"] = {"name": asked["hard"]}
    if "crops" in asked and isinstance(asked["crops"], str):
        asked["crops"] = {"name": asked["crops"]}
    if data:
        asked["data"] = joined(data)
    layers: list[Mapping[str, Any]] = [settings_of(str(config))] if config else []
    typed = [set if isinstance(set, Mapping) else dotted(list(set or [])), asked]
    for layer in layers:
        refuse_code(layer, str(config), *typed)
    layers += typed
    result = run_pretrain(layers, Path(out), resume=resume, overwrite=overwrite, extend=extend)
    if Everyone().rank == 0:
        card_of_run(Path(out))
    return result


def embed(
    model: Model,
    *data: Data,
    out: Annotated[One, "FILE.npz or FILE.parquet with features, paths, and labels when folders name them"],
    batch_size: Annotated[int, "images per forward pass", MACHINE] = 128,
    space: Space = None,
    pretrained: Pretrained = False,
    size: Size = None,
    workers: Workers = "auto",
    device: Device = "auto",
    overwrite: Annotated[bool, "replace the file in --out"] = False,
) -> Result:
    """Write embeddings of images.

    cuewise embed runs/plain photos --out photos.npz
    cuewise embed cuewise/resnet-tiny shapes:conflict --out shapes.npz --batch-size 64
    """
    from cuewise.probes.embed import write_embeddings

    return write_embeddings(
        specified(model, space, pretrained),
        joined(data),
        Path(out),
        batch_size=batch_size,
        size=size,
        workers=str(workers),
        device=device,
        overwrite=overwrite,
    )


def probe(
    kind: Annotated[
        str, "linear, knn, fewshot, rotation, finetune or multilabel (see `cuewise list probes`)"
    ],
    model: Model,
    *,
    train: Annotated[
        Several,
        "labelled images the probe is fitted on; DATA?classes=imagenet100 (or a file) takes some classes",
    ],
    test: Annotated[
        Several | None, "labelled images it is scored on, each set by itself [a fifth of --train, held out]"
    ] = None,
    space: Space = None,
    pretrained: Pretrained = False,
    size: Size = None,
    seed: Seed = 0,
    cache: Annotated[bool, "keep features on disk and use them again (--no-cache does not) [on]"] = True,
    device: Device = "auto",
    **options: Annotated[Any, OfKind("probes", "cuewise.probes", "cuewise.probes.kinds:PROBES")],
) -> Result:
    """Score an encoder on labelled images: what its features know, or what it learns from there.

    cuewise probe linear runs/plain --train photos
    cuewise probe knn runs/plain --train photos --test sketches --k 5
    """
    from cuewise.probes.run import run_probe

    return run_probe(
        kind,
        specified(model, space, pretrained),
        train=texts(train),
        test=texts(test),
        size=size,
        seed=seed,
        device=device,
        keep=cache,
        **options,
    )


def audit(
    *model: Model,
    out: Annotated[One, "folder for audit.json, report.html and pictures"],
    train: Annotated[
        Several | None,
        "labelled images that probes are fitted on; DATA?classes=imagenet100 (or a file) takes some classes [shapes]",
    ] = None,
    test: Tests = None,
    only: Audits = None,
    name: Names = None,
    limit: Limit = 200,
    answers: Answers = "auto",
    class_map: ClassMap = None,
    space: Space = None,
    pretrained: Pretrained = False,
    size: Size = None,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = "auto",
    engine: Engine = "local",
    address: Address = None,
    overwrite: Annotated[bool, "replace the audit in --out"] = False,
    **options: Annotated[Any, OfKind("audits", "cuewise.audits", "cuewise.audits.audit:AUDITS", "only")],
) -> Result:
    """Measure which cues models rely on, and write a report.

    cuewise audit runs/plain --out audits/plain
    cuewise audit runs/plain runs/shape --out audits/both --train photos --test sketches --only accuracy,shape_bias
    """
    from cuewise.audits.run import audit_models, comparison, finish
    from cuewise.audits.saved import unfinished
    from cuewise.folders import claim_folder
    from cuewise.report.folders import report_audits

    place, sets = Path(out), (texts(train), texts(test))
    reads = [*(str(m) for m in model if isinstance(m, str | Path)), *sets[0], *sets[1]]
    with claim_folder(place, "audit", resume=unfinished(place), overwrite=overwrite, reads=reads) as claim:
        if claim.resuming:
            print(f"{out}: resuming an interrupted audit", file=sys.stderr, flush=True)
        found = audit_models(
            [specified(m, space, pretrained) for m in model],
            place,
            train=sets[0],
            test=sets[1],
            only=several(only),
            size=size,
            seed=seed,
            device=device,
            limit=limit,
            answers=answers,
            class_map=optional(class_map),
            options={name: optional(value) for name, value in options.items()},
            workers=None if workers == "auto" else int(workers),
            engine=engine,
            address=address,
            unfinished=True,
            started=claim.started,
            names=texts(name) or None,
        )
        result = report_audits(found, place)
        claim.finished()
        finish(place)
    return {**result, **comparison([document for _, document in found])}


def score(
    file: Annotated[One, "a CSV with the columns subject,image,shape,texture,response"],
    *,
    audit: Annotated[str, "shape_bias"] = "shape_bias",
    subject: Annotated[str | None, "only this subject [all, each by itself]"] = None,
) -> Result:
    """Score a table of decisions made elsewhere.

    cuewise score decisions.csv
    cuewise score decisions.csv --audit shape_bias --subject resnet50 --json scores.json
    """
    from cuewise.audits.score import score_decisions

    return score_decisions(Path(file), audit=audit, subject=subject)


def compare(
    *audit: Annotated[One, "run or audit folders"],
    out: Annotated[One, "folder for report.html"],
    train: Annotated[
        Several | None,
        "of runs: labelled images that probes are fitted on [the images they share, where labelled; else shapes]",
    ] = None,
    test: Tests = None,
    only: Audits = None,
    name: Names = None,
    limit: Limit = 200,
    answers: Answers = "auto",
    class_map: ClassMap = None,
    size: Size = None,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = "auto",
    overwrite: Annotated[bool, "replace the report in --out"] = False,
    **options: Annotated[Any, OfKind("audits", "cuewise.audits", "cuewise.audits.audit:AUDITS", "only")],
) -> Result:
    """Put several models side by side in one report; runs are audited first, on what --train and --test name.

    cuewise compare audits/plain audits/shape --out reports/both
    cuewise compare runs/plain runs/shape --out reports/runs --only shape_bias,accuracy --limit 100
    """
    from cuewise.report.folders import compare_folders

    return compare_folders(
        [Path(a) for a in audit],
        Path(out),
        overwrite=overwrite,
        names=texts(name),
        train=texts(train),
        test=texts(test),
        only=several(only),
        limit=limit,
        answers=answers,
        class_map=optional(class_map),
        size=size,
        seed=seed,
        device=device,
        workers=None if workers == "auto" else int(workers),
        options={key: optional(value) for key, value in options.items()},
    )


def make(
    kind: Annotated[str, "what to make (see `cuewise list makers`)"],
    src: Annotated[One, "the images to start from; left out for `cuewise make shapes DST`"],
    dst: Annotated[One | None, "the folder to write; a second call continues where the first stopped"] = None,
    *,
    set: Annotated[
        Settings,
        "settings of the maker as key=value, e.g. steps=20 (repeatable; `cuewise make KIND --help` lists them)",
        OfKind("makers", "cuewise.makers", "cuewise.makers.registry:MAKERS", also="cuewise.cues"),
    ] = None,
    format: Annotated[str, "png, jpeg or webp, with a quality as jpeg:90"] = "png",
    shards: Annotated[int | None, "write tar shards of this many images instead of a tree of files"] = None,
    manifest: Annotated[str, "the table of what was made: jsonl or parquet"] = "jsonl",
    seed: Annotated[
        int, "seed of everything random; each image has its own, which follows from it and its name [0]"
    ] = 0,
    workers: Annotated[
        str | int, "processes: auto (all cores) or a number; 0 works in this process", MACHINE
    ] = "auto",
    limit: Annotated[int | None, "only the first images"] = None,
    dry_run: Annotated[bool, "only measure a sample, and say how long and how large it would be"] = False,
    both: Annotated[bool, "write the originals beside the results"] = False,
    subset: Annotated[
        One | None,
        "the classes to take: imagenet100, or a file that lists them, one per line (as SRC?classes=…)",
    ] = None,
    grid: Annotated[One | None, "a YAML list of settings, one set in a subfolder for each"] = None,
    engine: Engine = "local",
    address: Address = None,
    overwrite: Annotated[bool, "replace the set in DST"] = False,
) -> Result:
    """Make a copy of an image set: textures, diffused, cartoons, corrupted, cue-conflict and more.

    cuewise make texture photos textures
    cuewise make anisotropic photos smooth --set steps=20 --format jpeg:90 --limit 100
    """
    from cuewise.makers.run import make_set

    source, target = (None, src) if dst is None else (src, dst)
    return make_set(
        kind,
        optional(source),
        str(target),
        set=set if set is None or isinstance(set, Mapping) else [*set],  # type: ignore[arg-type]
        format=format,
        shards=shards,
        manifest=manifest,
        seed=seed,
        workers=str(workers),
        limit=limit,
        dry_run=dry_run,
        both=both,
        subset=optional(subset),
        grid=optional(grid),
        engine=engine,
        address=address,
        overwrite=overwrite,
    )


def export(
    run: Annotated[One, "a run folder or encoder.safetensors"],
    *,
    format: Annotated[str, "safetensors, torchvision, timm or onnx"],
    out: Annotated[One, "the file to write"],
    space: Annotated[
        str | None, "of a looc run: v, z0, a left-out augmentation, all, or several joined by + (onnx)"
    ] = None,
    pretrained: Pretrained = False,
    normalise: Annotated[bool, "onnx: put mean and std into the file, which then takes RGB in 0…1"] = False,
    overwrite: Annotated[bool, "replace the file in --out"] = False,
) -> Result:
    """Write a trained encoder for another library.

    cuewise export runs/plain --format safetensors --out plain.safetensors
    cuewise export runs/plain --format timm --out plain.pth
    """
    from cuewise.encoders.export import export_encoder

    spec = specified(str(run), space, pretrained)
    return export_encoder(spec, format, Path(out), normalise=normalise, overwrite=overwrite)


def cost(
    model: Model,
    *,
    size: Size = None,
    batch_size: Annotated[int, "images per forward pass and per training step", MACHINE] = 32,
    device: Device = "auto",
) -> Result:
    """Count parameters and FLOPs per image, and measure speed and memory, of a forward pass and of a training step.

    cuewise cost torchvision/resnet18 --size 64
    cuewise cost runs/plain --batch-size 16
    """
    from cuewise.train.cost import cost_of

    return cost_of(specified(model, None, False), size=size, batch_size=batch_size, device=device)


def reproduce(
    *name: Annotated[str, "studies to run (see `cuewise list studies`) [all]"],
    out: Annotated[
        One,
        "folder for the trained arms, results.json, results.md and report.html; a second call continues the first",
    ],
    data: Annotated[Several | None, "shapes, or labelled photographs to learn from [shapes]"] = None,
    val: Annotated[Several | None, "labelled photographs to test on [a fifth of --data, held out]"] = None,
    ood: Annotated[
        Several | None,
        "domains of labelled photographs: a probe is fitted on the first and tested on the others",
    ] = None,
    budget: Annotated[
        float | None,
        "minutes for all of it together; fewer epochs where needed [as many as the lab is made for]",
    ] = None,
    seeds: Annotated[
        int,
        "runs of every arm, each with its own seed; the same seeds in all arms; fewer than 5 are a first look",
    ] = 5,
    epochs: Annotated[
        int | None, "of every run [the lab's own; three times as many in looc-rotation]"
    ] = None,
    jobs: Annotated[str | int, "runs side by side: auto (one per core) or a number", MACHINE] = "auto",
    arms: Annotated[
        str | Sequence[str] | None,
        "names of arms to run, with * for any text; claims that need others are then not measured [all]",
        COMMAS,
    ] = None,
    precision: Annotated[
        str, "auto (as `pretrain`), 32 or bf16, which is faster on a CPU that computes in it", MACHINE
    ] = "auto",
    method: Annotated[
        str | None,
        "moco or simclr, for studies that are not about a method [simclr on shapes, moco on photographs]",
    ] = None,
    overwrite: Annotated[bool, "start again, the trained arms in --out included"] = False,
) -> Result:
    """Test the papers' claims at lab scale: train, measure over seeds, say what held.

    cuewise reproduce ns-color --out studies/color
    cuewise reproduce --out studies/all --budget 60
    """
    from cuewise.studies.run import run_studies

    return run_studies(
        name,
        Path(out),
        data=texts(data),
        val=texts(val),
        ood=texts(ood),
        budget=budget,
        seeds=seeds,
        epochs=epochs,
        jobs=str(jobs),
        arms=texts(arms),
        precision=precision,
        method=method,
        overwrite=overwrite,
    )


def check(
    member: Annotated[
        str, "package.module:Name, or package.module for every member in it, also in the working folder"
    ],
) -> Result:
    """Put a method, cue, negative, audit, probe, maker, source or study of your own through the contract battery.

    cuewise check my_methods:Align
    cuewise check my_cues
    """
    from cuewise.checks.check import check_members

    return check_members(member)


def list_(
    what: Annotated[
        str,
        "methods, models, negatives, filters (or cues), augmentations, audits, makers, probes, recipes, studies, measures, data "
        "or settings",
    ],
) -> dict[str, str]:
    """List what there is to choose from.

    cuewise list methods
    cuewise list settings
    """
    from cuewise.catalogue import catalogue

    return catalogue(what)


VERBS: dict[str, Callable[..., dict[str, Any]]] = {
    f.__name__.rstrip("_"): f
    for f in (
        *(demo, pretrain, embed, probe, audit, score, compare),
        *(make, export, cost, reproduce, check, list_),
    )
}
