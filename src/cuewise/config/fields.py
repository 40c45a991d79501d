"""What a run is made of: its options, each with type, default and help."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from cuewise.options import COMMAS, SEEDS, flag_of

if TYPE_CHECKING:  # the options of `cuewise pretrain` are read without importing torch
    from cuewise.methods import Method, Setup
    from cuewise.methods.hard import Hard


# groups of options under --help
TRAINING, CUES, WATCHING, MACHINE = "training", "cue dials", "watching", "machine"


@dataclass
class Optim:
    """The optimiser."""

    name: Annotated[str, "sgd, adam, adamw or lars"] = "sgd"
    lr: Annotated[
        float | None,
        "learning rate for `reference_batch` images; it follows the batch size linearly [the method's own]",
    ] = None
    reference_batch: Annotated[int, "batch size that lr is given for"] = 256
    momentum: Annotated[float | None, "of sgd and lars [0.9]"] = None
    betas: Annotated[list[float] | None, "of adam [0.9, 0.999] and adamw [0.9, 0.95]"] = None
    weight_decay: Annotated[float, "L2 penalty"] = 1e-4
    decay_all: Annotated[
        bool | None,
        "weight decay on biases and norms too [sgd: yes, as MoCo does; adam, adamw: no; lars never]",
    ] = None
    schedule: Annotated[str, "cosine, step or constant"] = "cosine"
    milestones: Annotated[list[float] | None, "of schedule step, as shares of training [0.6, 0.8]"] = None
    warmup_epochs: Annotated[float, "epochs of linear warm-up"] = 0.0
    warmup_share: Annotated[float, "linear warm-up as a share of training, instead of epochs"] = 0.0
    clip: Annotated[float, "largest gradient norm, 0 for none"] = 0.0
    layer_decay: Annotated[
        float | None,
        "rate of a block, relative to the next one [1; 0.8 where the model brings weights]",
    ] = None
    head_warmup: Annotated[
        float | None,
        "share of training in which only new heads learn [0; 0.1 where the model brings weights]",
    ] = None


@dataclass
class ViewSettings:
    """How views depart from the published recipe; null keeps what the recipe says."""

    scale: Annotated[list[float] | None, "crop area, low and high"] = None
    blur_p: Annotated[float | None, "probability of blur"] = None
    gray_p: Annotated[float | None, "probability of greyscale"] = None
    jitter: Annotated[list[float] | None, "strengths of brightness, contrast, saturation, hue"] = None
    rotation_p: Annotated[float | None, "probability of a rotation by 90, 180 or 270 degrees"] = None
    style_p: Annotated[float | None, "probability of a random style's texture"] = None
    style_strength: Annotated[list[float] | None, "of a style, low and high"] = None
    styles: Annotated[str | None, "a folder of style images [styles drawn by formula]"] = None
    style_copies: Annotated[str | None, "a folder of copies made beforehand, found by the images' names"] = (
        None
    )
    style_count: Annotated[int | None, "styles to choose from [64, or all copies]"] = None
    same: Annotated[list[str], "augmentations that all views of an image share", COMMAS] = field(
        default_factory=list
    )
    scale_blur: Annotated[bool, "scale the published blur, which is for 224 pixels, with the size"] = True
    overlap: Annotated[str | None, "of the patches of a negative: allow, distinct, avoid [allow]"] = None


@dataclass
class Loop:
    """The training loop itself."""

    accumulate: Annotated[int, "micro-batches per step"] = 1
    compile: Annotated[bool, "torch.compile the backbone"] = False
    checkpointing: Annotated[
        bool, "keep only the inputs of the backbone's blocks and compute the rest again for the gradient"
    ] = False
    deterministic: Annotated[bool, "deterministic algorithms on accelerators too"] = True
    log_every: Annotated[int, "steps between two rows of metrics.jsonl"] = 10
    checkpoint_minutes: Annotated[float, "minutes between checkpoints; each epoch ends with one too"] = 10.0
    val_every: Annotated[int, "epochs between two k-NN accuracies, with --val"] = 1
    budget: Annotated[
        int | None, "length of training and of its schedule in optimiser steps, in place of --epochs"
    ] = None
    views: Annotated[
        str, "where views are rendered: host (loader processes), or device (the one that trains)"
    ] = "host"
    decode: Annotated[
        str,
        "of JPEGs: full, or reduced to 1/2, 1/4 or 1/8 of the side as far as no crop gets fewer pixels than its view",
    ] = "full"
    layout: Annotated[
        str,
        "of images and weights in memory: channels_last, or contiguous (which is faster depends on model and processor)",
    ] = "channels_last"
    timeout_minutes: Annotated[float, "of a collective operation"] = 30.0
    sync_batch_norm: Annotated[
        bool, "batch statistics over all processes instead of each process's own (GPUs)"
    ] = False


@dataclass
class Labels:
    """Labels that may be wrong, of a method that takes them."""

    noise: Annotated[float, "share of labels replaced at random, uniformly over all classes"] = 0.0
    gold: Annotated[
        float | str | None,
        "trusted labels: a share of the images, at least one of each class, or a file that lists them",
    ] = None
    correction: Annotated[
        str, "none; glc (estimates the confusion on trusted images); forward (without any)"
    ] = "none"
    use: Annotated[str, "images to train on, where nothing is corrected: all, gold or silver"] = "all"
    restart: Annotated[
        str | None,
        "weights that the second phase of a correction starts from: new, or same as the first [new]",
    ] = None
    seed: Annotated[int | None, "of the split and the noise [that of the run]", SEEDS] = None


@dataclass
class Config:
    """One pretraining run; a field with a help text is an option of `cuewise pretrain`."""

    data: list[str] = field(default_factory=list)
    val: Annotated[list[str], "labelled images for a k-NN accuracy after each epoch", TRAINING] = field(
        default_factory=list
    )
    method: Annotated[str, "how to learn (see `cuewise list methods`), or package.module:Name", TRAINING] = (
        "moco"
    )
    model: Annotated[
        str, "backbone: torchvision/NAME, timm/NAME, cuewise/resnet-tiny, package.module:factory", TRAINING
    ] = "torchvision/resnet50"
    size: Annotated[int, "side of the views in pixels", TRAINING] = 224
    epochs: Annotated[int, "passes over the images", TRAINING] = 200
    batch_size: Annotated[
        int, "images per step on all devices together; the learning rate follows it", TRAINING
    ] = 256
    seed: Annotated[int, "seed of everything random [0]", TRAINING, SEEDS] = 0
    watch: Annotated[
        list[str],
        "audits to run while training, on a small fixed part of --val, e.g. shape_bias,accuracy,sketch",
        WATCHING,
        COMMAS,
    ] = field(default_factory=list)
    watch_every: Annotated[
        float | None,
        "epochs between two evaluations of --watch and of the drift guard [5 % of the time]",
        WATCHING,
    ] = None
    max_drop: Annotated[
        float | None,
        "warn when a model that brought weights loses more points of accuracy than this; 0 turns the check off [3]",
        WATCHING,
    ] = None
    stop_on_drop: Annotated[
        bool, "stop when --max-drop is passed, and keep the last encoder before that", WATCHING
    ] = False
    log: Annotated[
        list[str],
        "where metrics go beside metrics.jsonl: tensorboard, wandb, mlflow, none; auto is tensorboard where it is installed",
        WATCHING,
        COMMAS,
    ] = field(default_factory=lambda: ["auto"])
    devices: Annotated[str, "auto, a number, cpu:2, cuda:4, mps", MACHINE] = "auto"
    num_nodes: Annotated[int, "machines, with torchrun or SLURM", MACHINE] = 1
    layers: Annotated[
        str, "what is trained: all, last:N (the last N blocks), head (the layers after the blocks)", TRAINING
    ] = "all"
    low_rank: Annotated[
        int | None,
        "of a transformer that brings weights: train updates of this rank of its linear layers (LoRA)",
        TRAINING,
    ] = None
    precision: Annotated[str, "auto, 32, bf16, 16", MACHINE] = "auto"
    workers: Annotated[str, "processes that load images: auto or a number", MACHINE] = "auto"
    steps: Annotated[int | None, "stop after this many steps in all, the schedule unchanged", TRAINING] = None
    negatives: Annotated[
        list[str],
        "push away images without meaning, see `cuewise list negatives` (repeatable)",
        CUES,
        COMMAS,
    ] = field(default_factory=list)
    alpha: Annotated[
        list[float],
        "weight of the negatives, one for all or one per kind; 0 is off [2; byol 0.05]",
        CUES,
        COMMAS,
    ] = field(default_factory=list)
    alpha_mode: Annotated[
        str | None, "weight inside or outside the exponential: in, out [in; byol out]", CUES
    ] = None
    num_negatives: Annotated[int | None, "negatives of each kind per image [1]", CUES] = None
    patch_size: Annotated[
        str | None, "side of the patches as LOW:HIGH in pixels [16:72, scaled with the size]", CUES
    ] = None
    patch_augment: Annotated[list[str], "change each patch: hflip,vflip,rot90", CUES, COMMAS] = field(
        default_factory=list
    )
    texture_data: Annotated[
        list[str],
        "textures of the images, as `cuewise make texture` wrote them; one set per negative [made on the fly]",
        CUES,
    ] = field(default_factory=list)
    hard: Annotated[
        dict[str, Any],
        "make negatives harder: mochi, ifm, debiased, hard; its settings are --set hard.* "
        "(can, densecl, infomin, moco, simclr)",
        CUES,
    ] = field(default_factory=dict)  # name and its settings; empty: none
    leave_out: Annotated[
        list[str],
        "augmentations that each get their own embedding space, e.g. color,rotation,texture (addone, looc)",
        CUES,
        COMMAS,
    ] = field(default_factory=list)
    suppress: Annotated[
        dict[str, Any] | None,
        "filter half of the views against texture: anisotropic, robust, bilateral, cartoon, gaussian; its settings are "
        "--set suppress.* (pairing, share, copies, and the filter's own, as steps=10:20)",
        CUES,
    ] = None  # name and its settings
    generator: Annotated[
        str | None,
        "a learned suppressor, the run folder of --method pix2pix: also train on its output (supervised)",
        CUES,
    ] = None
    color_jitter: Annotated[bool, "jitter colours (--no-color-jitter leaves it out) [on]", CUES] = True
    crops: Annotated[
        dict[str, Any],
        "where crops are taken: random, or object (boxes of objects; its settings are --set crops.*) [random]",
        CUES,
    ] = field(default_factory=dict)  # name and its settings; empty: random
    views: ViewSettings = field(default_factory=ViewSettings)
    labels: Labels = field(default_factory=Labels)
    optim: Optim = field(default_factory=Optim)
    loop: Loop = field(default_factory=Loop)
    # of the method; in YAML under the method's own name
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def method_class(self) -> type[Method]:
        from cuewise.methods import method

        return method(self.method)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the augmentations in --leave-out, which may say where to import them from."""
        from cuewise.views import augmentation

        return tuple(augmentation(name).name for name in self.leave_out)

    def negative_option(self, name: str) -> tuple[str, Any]:
        """The flag and the value of an option that kinds of negatives read, of the run or of its views."""
        if hasattr(self, name):
            return flag_of(name), getattr(self, name)
        return f"views.{name}", getattr(self.views, name)

    def setup(self, classes: int = 0) -> Setup:
        """What the method is asked to do, on data of that many classes."""
        from cuewise.methods import Negatives, Setup

        mode = self.alpha_mode or self.method_class.alpha_modes[0]
        return Setup(
            self.method_class.Settings(**self.settings),
            Negatives(tuple(self.negatives), tuple(self.alpha), self.num_negatives or 1, mode),
            self.left_out,
            self.hard_dial(),
            self.color_jitter,
            self.size,
            classes,
            float(self.suppress["share"]) if self.suppress else 0.0,
            self.labels.correction,
            self.generator,
        )

    def hard_dial(self) -> Hard | None:
        from cuewise.methods.hard import HARD

        settings = dict(self.hard)
        return HARD[settings.pop("name")](**settings) if settings else None

    def as_dict(self) -> dict[str, Any]:
        """Nested plain values; the method's settings stand under the method's name."""
        plain = dataclasses.asdict(self)
        plain[self.method_class.name] = plain.pop("settings")
        return plain

    def to_yaml(self) -> str:
        import yaml

        return yaml.safe_dump(self.as_dict(), sort_keys=False, allow_unicode=True)
