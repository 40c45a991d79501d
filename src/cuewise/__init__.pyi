"""Written by `python -m cuewise.stub` from what the verbs declare: change those, not this file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise import transforms as transforms
from cuewise.data import open_data as open_data
from cuewise.encoders import Encoder as Encoder
from cuewise.encoders import load_encoder as load_encoder
from cuewise.errors import Interrupted as Interrupted
from cuewise.errors import UserError as UserError
from cuewise.results import Result as Result
from cuewise.scores import Score as Score

__version__: str
__all__ = [
    "Encoder",
    "Interrupted",
    "Result",
    "Score",
    "UserError",
    "audit",
    "check",
    "clean",
    "compare",
    "completion",
    "cost",
    "demo",
    "embed",
    "export",
    "inspect",
    "load_encoder",
    "make",
    "open_data",
    "pretrain",
    "probe",
    "reproduce",
    "runs",
    "score",
    "transfer",
    "transforms",
    "tune",
]

def demo(
    *,
    out: str | Path = "runs/demo",
    overwrite: bool = False,
) -> Result:
    """Show all of it on embedded images: an encoder, the same one tuned away from texture, both audited, one report.

    out: folder for both runs and report.html [runs/demo]
    overwrite: start again even if --out holds a finished demo
    """

def list(
    what: str | None = None,
) -> Result:
    """List what there is to choose from.

    what: a kind of things; without one, `cuewise list` says which kinds there are
    """

def pretrain(
    *data: str | Path | Sequence[str | Path],
    out: str | Path,
    config: str | Path | None = None,
    set: Sequence[str] | Mapping[str, Any] | None = None,
    pretrained: bool = False,
    resume: bool = False,
    extend: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    val: str | Path | Sequence[str | Path] | None = None,
    method: str | int | Path | None = None,
    model: str | int | Path | None = None,
    size: int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    seed: int | None = None,
    watch: str | Path | Sequence[str | Path] | None = None,
    watch_every: float | None = None,
    max_drop: float | None = None,
    stop_on_drop: bool | None = None,
    log: str | Path | Sequence[str | Path] | None = None,
    devices: str | int | Path | None = None,
    num_nodes: int | None = None,
    layers: str | int | Path | None = None,
    low_rank: int | None = None,
    precision: str | int | Path | None = None,
    workers: str | int | Path | None = None,
    steps: int | None = None,
    negatives: str | Path | Sequence[str | Path] | None = None,
    alpha: float | Sequence[float] | None = None,
    alpha_mode: str | int | Path | None = None,
    num_negatives: int | None = None,
    patch_size: str | int | Path | None = None,
    patch_augment: str | Path | Sequence[str | Path] | None = None,
    texture_data: str | Path | Sequence[str | Path] | None = None,
    hard: str | None = None,
    leave_out: str | Path | Sequence[str | Path] | None = None,
    suppress: str | None = None,
    generator: str | int | Path | None = None,
    color_jitter: bool | None = None,
    crops: str | None = None,
) -> Result:
    """Train an encoder from unlabelled images.

    data: folders, archives, shards or data sets of images, joined; DATA?classes=imagenet100 takes some classes
    out: the run folder to write
    config: a YAML file of settings, e.g. the config.yaml of another run, or a recipe (see `cuewise list recipes`)
    set: any other setting as dotted.key=value, e.g. optim.lr=0.1, moco.queue=4096 (see `cuewise list settings`)
    pretrained: start from the library's published weights of --model: from its cache, else downloaded
    resume: continue where the run in --out stopped
    extend: with --resume: train for more --epochs than were planned, on the longer schedule
    overwrite: replace the run in --out
    dry_run: only check everything and show the configuration, the first views, memory and time; no run is written
    val: labelled images for a k-NN accuracy after each epoch
    method: how to learn (see `cuewise list methods`), or package.module:Name [moco]
    model: backbone: torchvision/NAME, timm/NAME, cuewise/resnet-tiny, package.module:factory [torchvision/resnet50]
    size: side of the views in pixels [224]
    epochs: passes over the images [200]
    batch_size: images per step on all devices together; the learning rate follows it [256]
    seed: seed of everything random [0]
    watch: audits to run while training, on a small fixed part of --val, e.g. shape_bias,accuracy,sketch
    watch_every: epochs between two evaluations of --watch and of the drift guard [5 % of the time]
    max_drop: warn when a model that brought weights loses more points of accuracy than this; 0 turns the check off [3]
    stop_on_drop: stop when --max-drop is passed, and keep the last encoder before that
    log: where metrics go beside metrics.jsonl: tensorboard, wandb, mlflow, none; auto is tensorboard where it is installed [auto]
    devices: auto, a number, cpu:2, cuda:4, mps [auto]
    num_nodes: machines, with torchrun or SLURM [1]
    layers: what is trained: all, last:N (the last N blocks), head (the layers after the blocks) [all]
    low_rank: of a transformer that brings weights: train updates of this rank of its linear layers (LoRA)
    precision: auto, 32, bf16, 16 [auto]
    workers: processes that load images: auto or a number [auto]
    steps: stop after this many steps in all, the schedule unchanged
    negatives: push away images without meaning, see `cuewise list negatives` (repeatable)
    alpha: weight of the negatives, one for all or one per kind; 0 is off [2; byol 0.05]
    alpha_mode: weight inside or outside the exponential: in, out [in; byol out]
    num_negatives: negatives of each kind per image [1]
    patch_size: side of the patches as LOW:HIGH in pixels [16:72, scaled with the size]
    patch_augment: change each patch: hflip,vflip,rot90
    texture_data: textures of the images, as `cuewise make texture` wrote them; one set per negative [made on the fly]
    hard: make negatives harder: mochi, ifm, debiased, hard; its settings are --set hard.* (can, densecl, infomin, moco, simclr)
    leave_out: augmentations that each get their own embedding space, e.g. color,rotation,texture (addone, looc)
    suppress: filter half of the views against texture: anisotropic, robust, bilateral, cartoon, gaussian; its settings are --set suppress.* (pairing, share, copies, and the filter's own, as steps=10:20)
    generator: a learned suppressor, the run folder of --method pix2pix: also train on its output (supervised)
    color_jitter: jitter colours (--no-color-jitter leaves it out) [on]
    crops: where crops are taken: random, or object (boxes of objects; its settings are --set crops.*) [random]
    """

def reproduce(
    *name: str,
    out: str | Path,
    data: str | Path | Sequence[str | Path] | None = None,
    val: str | Path | Sequence[str | Path] | None = None,
    ood: str | Path | Sequence[str | Path] | None = None,
    test: str | Path | Sequence[str | Path] | None = None,
    budget: float | None = None,
    seeds: int = 5,
    epochs: int | None = None,
    jobs: str | int = "auto",
    arms: str | Sequence[str] | None = None,
    values: str | Sequence[Any] | None = None,
    precision: str = "auto",
    method: str | None = None,
    model: str | None = None,
    size: int | None = None,
    generator: str | Path | None = None,
    overwrite: bool = False,
) -> Result:
    """Test the papers' claims at lab scale: train, measure over seeds, report which claims hold.

    name: studies to run (see `cuewise list studies`) [all]
    out: folder for the trained arms, results.json, results.md and report.html; a second call continues the first
    data: shapes, or labelled photographs to learn from [shapes]
    val: labelled photographs to test on [a fifth of --data, held out]
    ood: domains of labelled photographs: a probe is fitted on the first and tested on the others
    test: of the study `tune`: stimuli for that classifier, as conflict=DATA, sketch=DATA, silhouette=DATA
    budget: minutes for all of it together; fewer epochs where needed [as many as the lab is made for]
    seeds: runs of every arm, each with its own seed; the same seeds in all arms; fewer than 5 are preliminary [5]
    epochs: of every run [the lab's own; up to four times as many where a study's effect comes late]
    jobs: runs side by side: auto (one per core) or a number [auto]
    arms: names of arms to run, with * for any text; claims that need others are then not measured [all]
    values: of a study that sweeps over something: its values, e.g. 0,0.5,1,2,3,5 for α [the lab's own]
    precision: auto (as `pretrain`), 32 or bf16, which is faster on a CPU that computes in it [auto]
    method: moco or simclr, for studies that are not about a method [simclr on shapes, moco on photographs]
    model: backbone of all arms that name none, with or without weights; the study `tune` needs one [the lab's small one]
    size: side of the views in pixels, of all arms that name none [32]
    generator: of the study `adf-supervised`: a run of `pretrain --method pix2pix` at the same size, for an arm with a learned filter
    overwrite: start again, the trained arms in --out included
    """

def runs(
    folder: str | Path | None = None,
) -> Result:
    """List run folders: finished, running or stopped, with their dials and last scores.

    folder: where to look for run folders, at any depth [runs]
    """

def tune(
    model: str | Path | Callable[..., Any],
    *data: str | Path | Sequence[str | Path],
    out: str | Path,
    away: str | None = None,
    keep: float | None = None,
    test: str | Path | Sequence[str | Path] | None = None,
    config: str | Path | None = None,
    set: Sequence[str] | Mapping[str, Any] | None = None,
    pretrained: bool = False,
    report: bool = True,
    resume: bool = False,
    overwrite: bool = False,
    val: str | Path | Sequence[str | Path] | None = None,
    size: int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    seed: int | None = None,
    watch: str | Path | Sequence[str | Path] | None = None,
    watch_every: float | None = None,
    max_drop: float | None = None,
    stop_on_drop: bool | None = None,
    log: str | Path | Sequence[str | Path] | None = None,
    devices: str | int | Path | None = None,
    num_nodes: int | None = None,
    layers: str | int | Path | None = None,
    low_rank: int | None = None,
    precision: str | int | Path | None = None,
    workers: str | int | Path | None = None,
    steps: int | None = None,
    negatives: str | Path | Sequence[str | Path] | None = None,
    alpha: float | Sequence[float] | None = None,
    alpha_mode: str | int | Path | None = None,
    num_negatives: int | None = None,
    patch_size: str | int | Path | None = None,
    patch_augment: str | Path | Sequence[str | Path] | None = None,
    texture_data: str | Path | Sequence[str | Path] | None = None,
    hard: str | None = None,
    leave_out: str | Path | Sequence[str | Path] | None = None,
    suppress: str | None = None,
    generator: str | int | Path | None = None,
    color_jitter: bool | None = None,
    crops: str | None = None,
) -> Result:
    """Turn a cue dial of a model that already exists, and keep what it knows; its classifier still fits.

    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), open_clip/NAME:FILE, hf:FOLDER, package.module:factory
    data: folders, archives, shards or data sets of images, joined; DATA?classes=imagenet100 takes some classes
    out: the run folder to write
    away: the cue to rely on less: texture, color, texture,color, or none (the dials are then your own) [texture]
    keep: weight of keeping the features of unchanged images [1]
    test: images for the report of before and after, as `audit` takes them, e.g. conflict=DATA sketch=DATA
    config: a YAML file of settings, e.g. the config.yaml of another run
    set: any other setting as dotted.key=value, e.g. optim.lr=3e-5, tune.images=0
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    report: audit before and after (--no-report only trains) [on]
    resume: continue where the run in --out stopped
    overwrite: replace the run in --out
    val: labelled images for a k-NN accuracy after each epoch
    size: side of the views in pixels [half the model's own; its own where it is built for one size]
    epochs: passes over the images [1]
    batch_size: images per step on all devices together; the learning rate follows it [32]
    seed: seed of everything random [0]
    watch: audits to run while training, on a small fixed part of --val, e.g. shape_bias,accuracy,sketch
    watch_every: epochs between two evaluations of --watch and of the drift guard [5 % of the time]
    max_drop: warn when a model that brought weights loses more points of accuracy than this; 0 turns the check off [3]
    stop_on_drop: stop when --max-drop is passed, and keep the last encoder before that
    log: where metrics go beside metrics.jsonl: tensorboard, wandb, mlflow, none; auto is tensorboard where it is installed [auto]
    devices: auto, a number, cpu:2, cuda:4, mps [auto]
    num_nodes: machines, with torchrun or SLURM [1]
    layers: what is trained: all, last:N (the last N blocks), head (the layers after the blocks) [all]
    low_rank: of a transformer that brings weights: train updates of this rank of its linear layers (LoRA)
    precision: auto, 32, bf16, 16 [auto]
    workers: processes that load images: auto or a number [auto]
    steps: stop after this many steps in all, the schedule unchanged
    negatives: push away images without meaning, see `cuewise list negatives` (repeatable) [patch; none for --away color]
    alpha: weight of the negatives, one for all or one per kind; 0 is off [2]
    alpha_mode: weight inside or outside the exponential: in, out [in]
    num_negatives: negatives of each kind per image [1]
    patch_size: side of the patches as LOW:HIGH in pixels [16:72, scaled with the size]
    patch_augment: change each patch: hflip,vflip,rot90
    texture_data: textures of the images, as `cuewise make texture` wrote them; one set per negative [made on the fly]
    hard: make negatives harder: mochi, ifm, debiased, hard; its settings are --set hard.* (can, densecl, infomin, moco, simclr)
    leave_out: augmentations that each get their own embedding space, e.g. color,rotation,texture (addone, looc)
    suppress: filter half of the views against texture: anisotropic, robust, bilateral, cartoon, gaussian; its settings are --set suppress.* (pairing, share, copies, and the filter's own, as steps=10:20) [anisotropic, a third of them; none for --away color]
    generator: a learned suppressor, the run folder of --method pix2pix: also train on its output (supervised)
    color_jitter: jitter colours (--no-color-jitter leaves it out) [on]
    crops: where crops are taken: random, or object (boxes of objects; its settings are --set crops.*) [random]
    """

def audit(
    *model: str | Path | Callable[..., Any],
    out: str | Path,
    train: str | Path | Sequence[str | Path] | None = None,
    test: str | Path | Sequence[str | Path] | None = None,
    only: str | Sequence[str] | None = None,
    name: str | Path | Sequence[str | Path] | None = None,
    limit: int = 200,
    answers: str = "auto",
    class_map: str | Path | None = None,
    prompts: str | Path | None = None,
    space: str | None = None,
    pretrained: bool = False,
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    workers: str | int = "auto",
    engine: str = "local",
    address: str | None = None,
    overwrite: bool = False,
    masks: str | int | Path | None = None,
    mask_value: str | int | Path | None = None,
    superclasses: str | int | Path | None = None,
    reference_errors: str | int | Path | None = None,
    saliency_sets: str | int | Path | None = None,
    human: str | int | Path | None = None,
) -> Result:
    """Measure which cues models rely on, and write a report.

    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), open_clip/NAME:FILE, hf:FOLDER, package.module:factory
    out: folder for audit.json, report.html and pictures
    train: labelled images that probes are fitted on; DATA?classes=imagenet100 (or a file) takes some classes [shapes]
    test: images to score; with a role as in sketch=DATA (anagrams, conflict, corrupted, plain, shape, silhouette, stylized, texture) [embedded sets]
    only: audits to run, separated by commas (see `cuewise list audits`)
    name: names of the models in the report, one for each, in their order
    limit: images of which changed copies and, for similarity, pairs are made; 0 takes all [200]
    answers: whose answers count: head (the model's own classifier), probe (fitted on --train), auto [auto]
    class_map: a JSON file: which outputs of a classifier, or training classes of a probe, belong to a class [by WordNet ids]
    prompts: of models that know texts: a file of templates, one per line with {} for the class [three usual ones]
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    size: side of the input in pixels [the model's own]
    seed: seed of everything random [0]
    device: auto, cpu, cuda, mps [auto]
    workers: processes that prepare images: auto or a number [auto]
    engine: local, or ray for a cluster [local]
    address: of the Ray cluster
    overwrite: replace the audit in --out
    masks: images named as those of --test, white where the object is, or a set with annotated objects [what --test knows]
    mask_value: the value of an object's pixels in --masks, for index images
    superclasses: a JSON file of class and superclass, or imagenet-dogs, for accuracy on kinds and on their breeds
    reference_errors: a JSON file of a reference model's errors by corruption (mean, or five severities), for mCE
    saliency_sets: test sets whose saliency is measured: names separated by commas, or all [the first labelled one]
    human: a CSV of people's decisions on the cue-conflict images, shown beside the model's
    """

def compare(
    *audit: str | Path,
    out: str | Path,
    train: str | Path | Sequence[str | Path] | None = None,
    test: str | Path | Sequence[str | Path] | None = None,
    only: str | Sequence[str] | None = None,
    name: str | Path | Sequence[str | Path] | None = None,
    limit: int = 200,
    answers: str = "auto",
    class_map: str | Path | None = None,
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    workers: str | int = "auto",
    overwrite: bool = False,
    masks: str | int | Path | None = None,
    mask_value: str | int | Path | None = None,
    superclasses: str | int | Path | None = None,
    reference_errors: str | int | Path | None = None,
    saliency_sets: str | int | Path | None = None,
    human: str | int | Path | None = None,
) -> Result:
    """Put several models side by side in one report; runs are audited first, on the images given by --train and --test.

    audit: run or audit folders
    out: folder for report.html
    train: of runs: labelled images that probes are fitted on [the images they share, where labelled; else shapes]
    test: images to score; with a role as in sketch=DATA (anagrams, conflict, corrupted, plain, shape, silhouette, stylized, texture) [embedded sets]
    only: audits to run, separated by commas (see `cuewise list audits`)
    name: names of the models in the report, one for each, in their order
    limit: images of which changed copies and, for similarity, pairs are made; 0 takes all [200]
    answers: whose answers count: head (the model's own classifier), probe (fitted on --train), auto [auto]
    class_map: a JSON file: which outputs of a classifier, or training classes of a probe, belong to a class [by WordNet ids]
    size: side of the input in pixels [the model's own]
    seed: seed of everything random [0]
    device: auto, cpu, cuda, mps [auto]
    workers: processes that prepare images: auto or a number [auto]
    overwrite: replace the report in --out
    masks: images named as those of --test, white where the object is, or a set with annotated objects [what --test knows]
    mask_value: the value of an object's pixels in --masks, for index images
    superclasses: a JSON file of class and superclass, or imagenet-dogs, for accuracy on kinds and on their breeds
    reference_errors: a JSON file of a reference model's errors by corruption (mean, or five severities), for mCE
    saliency_sets: test sets whose saliency is measured: names separated by commas, or all [the first labelled one]
    human: a CSV of people's decisions on the cue-conflict images, shown beside the model's
    """

def cost(
    model: str | Path | Callable[..., Any],
    *,
    size: int | None = None,
    batch_size: int = 32,
    device: str = "auto",
) -> Result:
    """Count parameters and FLOPs per image, and measure speed and memory, of a forward pass and of a training step.

    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), open_clip/NAME:FILE, hf:FOLDER, package.module:factory
    size: side of the input in pixels [the model's own]
    batch_size: images per forward pass and per training step [32]
    device: auto, cpu, cuda, mps [auto]
    """

def embed(
    model: str | Path | Callable[..., Any],
    *data: str | Path | Sequence[str | Path],
    out: str | Path,
    batch_size: int = 128,
    space: str | None = None,
    pretrained: bool = False,
    size: int | None = None,
    workers: str | int = "auto",
    device: str = "auto",
    overwrite: bool = False,
) -> Result:
    """Write embeddings of images.

    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), open_clip/NAME:FILE, hf:FOLDER, package.module:factory
    data: folders, archives, shards or data sets of images, joined; DATA?classes=imagenet100 takes some classes
    out: FILE.npz or FILE.parquet with features, paths, and labels when folders name them
    batch_size: images per forward pass [128]
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    size: side of the input in pixels [the model's own]
    workers: processes that prepare images: auto or a number [auto]
    device: auto, cpu, cuda, mps [auto]
    overwrite: replace the file in --out
    """

def probe(
    kind: str,
    model: str | Path | Callable[..., Any],
    *,
    train: str | Path | Sequence[str | Path],
    test: str | Path | Sequence[str | Path] | None = None,
    space: str | None = None,
    pretrained: bool = False,
    size: int | None = None,
    seed: int = 0,
    baseline: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    cache: bool = True,
    device: str = "auto",
    preset: str | int | Path | None = None,
    body: str | int | Path | None = None,
    frozen: bool | None = None,
    norm: str | int | Path | None = None,
    scales: str | int | Path | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    shots: Sequence[int] | None = None,
    trials: int | None = None,
    class_map: str | int | Path | None = None,
    val: str | int | Path | None = None,
    seeds: int | None = None,
    k: int | None = None,
    temperature: float | None = None,
    augment: bool | None = None,
    labels: Sequence[str] | None = None,
    masks: Sequence[str] | None = None,
    void: Sequence[int] | None = None,
) -> Result:
    """Score an encoder on labelled images, frozen or fine-tuned.

    kind: linear, knn, fewshot, rotation, finetune, multilabel, detect or segment (see `cuewise list probes`)
    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), open_clip/NAME:FILE, hf:FOLDER, package.module:factory
    train: labelled images the probe is fitted on; DATA?classes=imagenet100 (or a file) takes some classes
    test: labelled images it is scored on, each set by itself [a fifth of --train, held out]
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    size: side of the input in pixels [the model's own]
    seed: seed of everything random [0]
    baseline: also measure another MODEL, or random (the same architecture, untrained), and the paired difference
    out: folder for report.html, probe.json, pictures and the checkpoint of detect and segment
    resume: continue what was interrupted in --out
    overwrite: replace the probe in --out
    cache: cache features on disk and reuse them [on]
    device: auto, cpu, cuda, mps [auto]
    preset: fcn (30 epochs, lr 0.01) or densecl (20k steps, auxiliary head) [linear on frozen features]
    body: c4 (ResNets) or fpn (anything with maps, transformers) [the preset's]
    frozen: train only what is new, the encoder stays unchanged
    norm: batch norms of the encoder: train or frozen [train]
    scales: short sides in training, LOW:HIGH pixels; --size is that at test [the preset's]
    epochs: passes over the images, the schedule scaled to them [the preset's]
    steps: length of training in optimiser steps
    batch_size: images per step [the preset's]
    lr: learning rate [the preset's, which follows the batch size]
    shots: images per class, one number or several [5]
    trials: draws of images [10]
    class_map: JSON or CSV that says which training class a class of a test set is, where the names differ
    val: labelled images to choose the rate on [a held-out fifth of --train]
    seeds: number of runs, starting at --seed; their mean is reported [1]
    k: neighbours [20]
    temperature: of the votes [0.07]
    augment: with ns, moco or looc: new crops and flips in every epoch, encoded again, as published
    labels: tables of labels, CSV or JSON: one for all sets, or one for --train and one for each --test
    masks: index images named as the images: one DATA for --train and one for each --test [the sets' own]
    void: values of a mask that do not count; 3 for trimaps [255]
    """

def score(
    file: str | Path,
    *,
    audit: str = "shape_bias",
    subject: str | None = None,
) -> Result:
    """Score a table of decisions made elsewhere.

    file: a CSV with the columns subject,image,shape,texture,response
    audit: shape_bias [shape_bias]
    subject: only this subject [all, each by itself]
    """

def transfer(
    *model: str | Path | Callable[..., Any],
    out: str | Path,
    suite: str | Path = "small",
    name: str | Path | Sequence[str | Path] | None = None,
    pretrained: bool = False,
    seed: int = 0,
    device: str = "auto",
    overwrite: bool = False,
) -> Result:
    """Put several encoders through a list of downstream tasks: one table, one report.

    model: a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), open_clip/NAME:FILE, hf:FOLDER, package.module:factory
    out: folder for transfer.json and report.html; a second call continues the first
    suite: small (embedded images, minutes on a CPU), or a YAML list of tasks [small]
    name: names of the models in the report, one for each, in their order
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    seed: seed of everything random [0]
    device: auto, cpu, cuda, mps [auto]
    overwrite: start again, finished tasks in --out included
    """

def inspect(
    *data: str | Path | Sequence[str | Path],
    out: str | Path,
    only: str | Sequence[str] | None = None,
    masks: str | Path | None = None,
    mask_value: int | None = None,
    seed: int = 0,
    workers: str | int = "auto",
    overwrite: bool = False,
) -> Result:
    """Find what a labelled image set gives away: single cues that predict the labels, copies, broken files.

    data: folders, archives, shards or data sets of images, each a set of its own; DATA?classes=imagenet100 takes some classes
    out: folder for inspect.json and report.html
    only: clues to judge, separated by commas (see `cuewise list clues`) [all]
    masks: masks named as the images, white where the object is, for the clue silhouette [what DATA knows]
    mask_value: the value of an object's pixels in --masks, for index images
    seed: seed of everything random [0]
    workers: processes that prepare images: auto or a number [auto]
    overwrite: replace the inspection in --out
    """

def make(
    kind: str,
    src: str | Path,
    dst: str | Path | None = None,
    *,
    set: Sequence[str] | Mapping[str, Any] | None = None,
    with_: str | None = None,
    fit: str | Path | None = None,
    generator: str | Path | None = None,
    format: str = "png",
    shards: int | None = None,
    manifest: str = "jsonl",
    seed: int = 0,
    workers: str | int = "auto",
    limit: int | None = None,
    dry_run: bool = False,
    both: bool = False,
    subset: str | Path | None = None,
    grid: str | Path | None = None,
    engine: str = "local",
    address: str | None = None,
    overwrite: bool = False,
) -> Result:
    """Make an image set from another one (textures, diffused, cartoons, corrupted, …), or a table of boxes of its objects.

    kind: what to make (see `cuewise list makers`)
    src: the images to start from; left out for `cuewise make shapes DST`
    dst: the folder to write; a second call continues where the first stopped
    set: settings of the maker as key=value, e.g. steps=20 (repeatable; `cuewise make KIND --help` lists them)
    with_: of `make boxes`: what proposes them: bing, given, or package.module:function [bing]
    fit: of `make boxes`: DATA with boxes that BING's template is fitted on
    generator: of `make learned`: the run folder of `pretrain --method pix2pix`
    format: png, jpeg or webp, with a quality as jpeg:90 [png]
    shards: write tar shards of this many images instead of a tree of files
    manifest: the table of what was made: jsonl or parquet [jsonl]
    seed: seed of everything random; each image has its own, which follows from it and its name [0]
    workers: processes: auto (all cores) or a number; 0 works in this process [auto]
    limit: only the first images
    dry_run: only estimate time and size from a sample
    both: also write the originals, next to the results
    subset: the classes to take: imagenet100, or a file that lists them, one per line (as SRC?classes=…)
    grid: a YAML list of settings, one set in a subfolder for each
    engine: local, or ray for a cluster [local]
    address: of the Ray cluster
    overwrite: replace the set in DST
    """

def check(
    member: str,
) -> Result:
    """Check a method, cue, negative, augmentation, audit, probe, maker, source, study, measure or clue of your own.

    member: package.module:Name, or package.module for every member in it, also in the working folder
    """

def clean(
    *cache: str,
    yes: bool = False,
) -> Result:
    """Show what cuewise keeps in its cache, and delete it; everything in it is recreated on demand.

    cache: features, textures, kernels, indexes or permutations [all]
    yes: delete without asking
    """

def completion(
    shell: str,
) -> Result:
    """Print a script with which the Tab key completes verbs, options and names of methods, probes, makers and audits.

    shell: bash, zsh or fish
    """

def export(
    run: str | Path,
    *,
    format: str,
    out: str | Path,
    space: str | None = None,
    pretrained: bool = False,
    normalise: bool = False,
    overwrite: bool = False,
) -> Result:
    """Write a trained encoder for another library.

    run: a run folder or encoder.safetensors
    format: safetensors, torchvision, timm or onnx
    out: the file to write
    space: of a looc run: v, z0, a left-out augmentation, all, or several joined by + (onnx)
    pretrained: take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded
    normalise: onnx: put mean and std into the file, which then takes RGB in 0…1
    overwrite: replace the file in --out
    """
