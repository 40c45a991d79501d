"""The laboratories: embedded shapes, a folder of photographs, and a trained model that is tuned. Every constant of the
studies stands here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuewise.config import merge
from cuewise.errors import UserError
from cuewise.views import negative_kind

Sets = Mapping[str, Sequence[str]]
STIMULI = ("conflict", "sketch", "silhouette")  # what a trained classifier is asked about, beside photographs


# Batches of small photographs have other statistics than those that an ImageNet encoder was trained on: normalised by its own,
# a linear probe on an EfficientNet-Lite0 has 0.94 of PACS photographs and 0.49 of its paintings right, by theirs 0.87 and 0.31.
STARTED = {"supervised": {"statistics": "fixed"}, "optim": {"lr": 0.02}}


@dataclass(frozen=True)
class Lab:
    """Common configuration and constants of all studies, and the data that is measured on."""

    name: str
    base: Mapping[str, Any]  # of every arm; `data`, `size`, `epochs`, `batch_size` are in it
    main: str  # the method of the studies that do not name one
    methods: Mapping[str, Mapping[str, Any]]  # method → what it needs beside the base
    patch: Mapping[str, Any]  # what makes a patch negative suit these images
    colour: Mapping[str, Any]  # for studies that are about colour: views in colour
    useful: Mapping[str, float]  # method → the α that serves, where a study needs one only
    banks: tuple[int, ...]  # lengths of MoCo's queue
    patch_ranges: tuple[str, ...]  # of the grid study: the side of a patch, from … to …
    diffusion: Mapping[str, Any]  # what 20 published steps are on these images
    more_steps: int  # and what 50 are
    alphas: tuple[float, ...] = (0, 1, 2, 3)  # of the α sweep, 0 first
    out_alphas: tuple[float, ...] = (2,)  # also trained with the weight outside the exponential
    centred_alphas: tuple[float, ...] = (2,)  # also trained with centred negatives, a form of our own
    # also with batch statistics of the negatives' own, as published
    separate_alphas: tuple[float, ...] = (2,)
    # also, where the method is MoCo, with gradient through the negatives
    gradient_alphas: tuple[float, ...] = (2, 3)
    byol_alpha: float = 0.05  # as published
    byol_strong: float = 0.5  # one that shows in a short run
    scenes: Mapping[str, Any] = field(default_factory=dict)  # for studies that are about objects: scenes
    single: Mapping[str, Any] = field(default_factory=dict)  # and images of one large object, if any
    sets: Sets = field(default_factory=dict)  # role → DATA, see measures.py
    filtered: Mapping[str, Any] = field(default_factory=dict)  # data and views for texture suppression
    generator: str = ""  # the run of a learned filter, `--generator`
    own: Mapping[str, Sequence[Any]] = field(
        default_factory=dict
    )  # `--values` of sweeps that are no constant above

    @property
    def started(self) -> dict[str, Any]:
        """What supervised arms need where `--model` brings weights, else nothing."""
        model = str(self.base["model"])
        named = ":" in model and model.startswith(("timm/", "torchvision/", "open_clip/", "hf:"))
        return dict(STARTED) if named or Path(model).is_dir() else {}

    @property
    def alpha(self) -> float:
        """The α of studies that are not about it."""
        return self.useful[self.main]

    def config(self, settings: Mapping[str, Any], method: str, seed: int, epochs: int) -> dict[str, Any]:
        """The whole layer of one run."""
        own = {"method": method, "seed": seed, "epochs": epochs, "workers": "0"}
        return merge(self.base, self.methods.get(method, {}), settings, own)

    def negative(self, alpha: float, kind: str = "patch", **more: Any) -> dict[str, Any]:
        """The layer that turns a negative on."""
        read = negative_kind(kind).reads
        own = {option: value for option, value in self.patch.items() if option in read}
        return {"negatives": [kind], "alpha": [float(alpha)], **own, **more}


SIZE = 32
WIDE = "size=64"  # images that a filter sees before their crop is taken, in their own colours
# ---------------------------------------------------------------------------------------------------------- shapes
# One palette and grey views: where every image has its own colours, they identify it and neither shape nor texture is
# learned. Patches are large, because the textures of the embedded images are: a patch must hold a piece
# of texture for the negative to keep it.
ONE = f"size={SIZE}&palette=one"
OWN = f"size={SIZE}"
# twice the size of the views, so that a crop of an object is one
SCENES = f"size={2 * SIZE}&palette=one&rho=1"
# The momentum methods are slow to leave their start: smaller batches give them twice the steps, and with Adam 600 steps
# do what SGD did not in our trials.
QUICK: dict[str, Any] = {
    "batch_size": 64,
    "optim": {"name": "adam", "lr": 0.004, "weight_decay": 1e-4, "warmup_epochs": 0.5},
}
# Where the length of an embedding is measured, it must not depend on the batch: with batch norm it was 5 in training and 20
# in evaluation, because objects and scenes pass with statistics of their own.
ALONE = {"model": "cuewise/resnet-tiny?width=16&norm=group"}
SHAPES = Lab(
    name="shapes",
    base={
        "data": [f"shapes:aligned?rho=1&n=6400&part=train&{ONE}"],
        "model": "cuewise/resnet-tiny?width=16",
        "size": SIZE,
        "epochs": 6,
        "batch_size": 128,
        "views": {"scale": [0.2, 1.0], "gray_p": 1.0},
        "optim": {"lr": 0.004, "warmup_epochs": 1},
    },
    main="simclr",
    methods={
        "simclr": {"simclr": {"temperature": 0.2, "statistics": "shared"}},
        "moco": {**QUICK, "moco": {"queue": 1024, "momentum": 0.99}},
        "looc": {**QUICK, "looc": {"queue": 1024, "momentum": 0.99}},
        "addone": {**QUICK, "addone": {"queue": 1024, "momentum": 0.99}},
        "byol": {**QUICK, "byol": {"hidden": 512}},
        "hcl": {**QUICK, **ALONE, "hcl": {"queue": 1024, "momentum": 0.99, "smallest": 8}},
        "densecl": {**QUICK, "densecl": {"queue": 1024, "momentum": 0.99}},
        "jigsaw": {**QUICK, "jigsaw": {"permutations": 24, "hidden": 512}},
        "supervised": QUICK,
    },
    patch={"patch_size": "5:12"},
    colour={"data": [f"shapes:aligned?rho=1&n=6400&part=train&{OWN}"], "views": {"gray_p": 0.2}},
    useful={"simclr": 2.0, "moco": 2.0},
    banks=(128, 512, 2048),
    patch_ranges=("2:5", "2:12", "2:16", "5:12", "5:16", "8:12", "8:16"),
    scenes={"data": [f"shapes:scenes?n=4096&part=train&{SCENES}"]},
    single={"data": [f"shapes:scenes?objects=1&n=4096&part=train&{SCENES}"]},
    sets={
        "probe": [f"shapes:aligned?rho=1&n=3200&part=train&{ONE}"],
        "clean": [f"shapes:aligned?rho=1&n=1600&part=test&{ONE}"],
        "corrupted": [f"shapes:aligned?rho=1&n=1600&part=test&{ONE}"],
        "conflict": [f"shapes:conflict?n=1600&part=test&{ONE}"],
        "texture_only": [f"shapes:texture_only?n=800&part=test&{ONE}"],
        "silhouette": [f"shapes:silhouette?n=800&part=test&{ONE}"],
        "sketch": [f"shapes:sketch?n=800&part=test&{ONE}"],
        "fine_train": [f"shapes:fine?n=1600&part=train&{ONE}"],
        "fine": [f"shapes:fine?n=1600&part=test&{ONE}"],
        "coloured_train": [f"shapes:coloured?n=1600&part=train&{OWN}"],
        "coloured": [f"shapes:coloured?n=800&part=test&{OWN}"],
        "rotated_train": [f"shapes:rotated?rho=1&n=1600&part=train&{ONE}"],
        "rotated": [f"shapes:rotated?rho=1&n=800&part=test&{ONE}"],
        "objects_train": ["shapes:scenes?n=320&part=train&size=64&seed=1"],
        "objects": ["shapes:scenes?n=240&part=test&size=64"],
        "disjoint_train": [f"shapes:disjoint?n=1600&part=train&{ONE}"],
        "disjoint": [f"shapes:disjoint?n=800&part=test&{ONE}"],
        "scenes_train": [f"shapes:scenes?n=3200&part=train&{SCENES}"],
        "scenes": [f"shapes:scenes?n=1600&part=test&{SCENES}"],
        "single_train": [f"shapes:scenes?objects=1&n=1600&part=train&{SCENES}"],
        "single": [f"shapes:scenes?objects=1&n=800&part=test&{SCENES}"],
        "odd": [f"shapes:scenes?odd=0.5&n=800&part=test&{SCENES}"],
        "wide/probe": [f"shapes:aligned?rho=1&n=1600&part=train&{WIDE}"],
        "wide/clean": [f"shapes:aligned?rho=1&n=800&part=test&{WIDE}"],
        "wide/silhouette": [f"shapes:silhouette?n=800&part=test&{WIDE}"],
        "wide/sketch": [f"shapes:sketch?n=800&part=test&{WIDE}"],
        "wide/disjoint": [f"shapes:disjoint?n=800&part=test&{WIDE}"],
    },
    filtered={
        "data": [f"shapes:aligned?rho=1&n=3200&part=train&{WIDE}"],
        "views": {"gray_p": 0.2, "scale": [0.4, 1.0]},
    },
    # κ = 20 leaves these textures as they are: their contrast is higher than that of photographs
    diffusion={"steps": 20, "kappa": 60.0},
    more_steps=50,
)
# ----------------------------------------------------------------------------------------------------- photographs
# A long queue needs a slow key network. With Adam and a momentum of 0.99 the space of MoCo closed at α ≥ 2 (random pairs
# became as similar as positives); with SGD and 0.999 it stays open, and accuracy is higher (docs/pretrain.md, short runs).
SLOW: dict[str, Any] = {"batch_size": 64, "optim": {"name": "sgd", "lr": 0.24}}
PHOTOGRAPHS = Lab(
    name="photographs",
    base={
        "model": "cuewise/resnet-tiny?width=16",
        "size": SIZE,
        "epochs": 12,
        "batch_size": 128,
        "views": {"scale": [0.2, 1.0]},
        "optim": {"lr": 0.06},
    },
    main="moco",
    methods={
        "simclr": {
            "optim": {"lr": 0.004, "warmup_epochs": 1},
            "simclr": {"temperature": 0.2, "statistics": "shared"},
        },
        "moco": {
            **SLOW,
            "moco": {"queue": 4096, "temperature": 0.2, "momentum": 0.999, "statistics": "shared"},
        },
        "looc": {**SLOW, "looc": {"queue": 4096, "momentum": 0.999}},
        "addone": {**SLOW, "addone": {"queue": 4096, "momentum": 0.999}},
        "byol": {**QUICK, "byol": {"hidden": 512}},
        "hcl": {**QUICK, **ALONE, "hcl": {"queue": 512, "momentum": 0.99}},
        "densecl": {**SLOW, "densecl": {"queue": 4096, "momentum": 0.999}},
        "jigsaw": {**QUICK, "jigsaw": {"permutations": 24, "hidden": 512}},
        "supervised": {"batch_size": 32, "optim": {"lr": 0.08, "warmup_share": 0.1}},
    },
    patch={"patch_size": "4:10"},
    colour={},
    useful={"moco": 1.0, "simclr": 2.0},
    banks=(512, 2048, 8192),
    patch_ranges=("2:5", "2:10", "2:16", "4:10", "4:16", "8:10", "8:16"),
    diffusion={"steps": 6},  # 20 at 224 pixels are 6 at 96
    more_steps=14,
)


def photographs(data: Sequence[str], val: Sequence[str], ood: Sequence[str]) -> Lab:
    """The lab of a user's own images. `ood`: the domain that a probe is fitted on, then those it is tested on."""
    sets: dict[str, list[str]] = {"probe": list(data), "scenes_train": list(data)}
    if val:
        sets["clean"] = sets["corrupted"] = sets["scenes"] = list(val)
    if len(ood) == 1:
        raise UserError(
            "--ood needs two domains or more: the probe is fitted on the first and tested on the others"
        )
    if ood:
        sets["ood_train"] = [ood[0]]
        names = [short(spec) for spec in ood[1:]]
        if twice := next((n for n in names if names.count(n) > 1), None):
            raise UserError(f"--ood: two domains are called {twice}; rename one of the folders")
        sets |= {f"ood/{name}": [spec] for name, spec in zip(names, ood[1:])}
    return replace(PHOTOGRAPHS, base=merge(PHOTOGRAPHS.base, {"data": list(data)}), sets=sets)


# ---------------------------------------------------------------------------------------------------------- tuning
CHANGED = {  # what `tune --away texture` changes: a third of the views diffused, the others stylised
    "suppress": {"name": "anisotropic", "share": 1 / 3},
    "views": {"blur_p": 0.0, "style_p": 1.0},
}
TUNING = replace(
    PHOTOGRAPHS,
    name="tuning",
    base={"size": 80, "epochs": 1, "batch_size": 32},
    main="tune",
    methods={
        "tune": {"tune": {"images": 0}, "optim": {"lr": 2e-4}},
        "moco": {"optim": {"name": "adam", "lr": 2e-4, "reference_batch": 32}, "moco": {"queue": 1024}},
    },
    patch={"patch_size": "12:28"},
    alphas=(0, 1, 2, 4),
    useful={"tune": 2.0},
)


def tuning(
    model: str | None, data: Sequence[str], val: Sequence[str], ood: Sequence[str], test: Sequence[str]
) -> Lab:
    """The lab of a trained model with its classifier. `test`: stimuli for that classifier, as ROLE=DATA."""
    if model is None or not data or not val:
        raise UserError("the study tune starts from a trained model: give --model, --data and --val")
    found = photographs(data, val, ood)
    sets = {**found.sets}
    for text in test:
        role, equals, spec = text.partition("=")
        if not equals or role not in STIMULI:
            raise UserError(f"--test {text}: write ROLE=DATA with the role {', '.join(STIMULI)}")
        sets[role] = [spec]
    return replace(TUNING, base={**TUNING.base, "model": model, "data": list(data)}, sets=sets)


def short(spec: str) -> str:
    """The last part of a path, without its ending."""
    return spec.rstrip("/").rpartition("/")[2].partition(".")[0]


def lab_of(data: Sequence[str], val: Sequence[str], ood: Sequence[str]) -> Lab:
    """`shapes` as it stands, or the photographs that the user names."""
    if list(data) not in ([], ["shapes"]):
        return photographs(data, val, ood)
    if val or ood:
        raise UserError(
            "--val and --ood are sets of photographs, and the embedded shapes have their own: give --data too"
        )
    return SHAPES
