"""hf:FOLDER_OR_NAME, a vision model of transformers: CLIP and SigLIP with their text side, DINO, ViT, ConvNeXt …"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cuewise.encoders.card import IMAGENET_MEAN, IMAGENET_STD, Card, Weights, weights_of_file
from cuewise.encoders.constructor import first_line
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.texts import Texts
from cuewise.errors import UserError
from cuewise.files import read_object

TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model")
VISION = ("vision", "visual")  # how the names of an image side begin
# Pillow's numbers, as preprocessor_config.json has them
RESAMPLING = {0: "nearest", 2: "bilinear", 3: "bicubic"}


def load_hf(spec: str, size: int | None, head: bool) -> Encoder:
    """The image side; code from the hub is never run, weights are read without pickles where they can be."""
    transformers = _library(spec)
    place = spec.removeprefix("hf:")
    config = _quietly(spec, lambda: transformers.AutoConfig.from_pretrained(place))
    name = (getattr(config, "architectures", None) or [""])[0]
    classifier = head and name.endswith("ForImageClassification")
    kind = transformers.AutoModelForImageClassification if classifier else transformers.AutoModel
    model, loading = _quietly(spec, lambda: kind.from_pretrained(place, output_loading_info=True))
    missing = sorted(k for k in loading["missing_keys"] if "pooler" not in k)
    if missing:
        raise UserError(
            f"{spec}: {len(missing)} weights of the model are not in it (the first: {missing[0]})"
        )
    form = "classifier" if classifier else "pooled"
    if any("pooler" in k for k in loading["missing_keys"]):
        form = "unpooled" if form == "pooled" else form
    encoder = _encoder(model, form, _card(spec, place, config, form, size), head)
    _give_text(encoder, transformers, place)
    return encoder


def empty_hf(card: Mapping[str, Any], size: int, head: bool, numbers: int) -> Encoder:
    """The model of a card before its weights are loaded; `numbers`: how many the file of weights holds."""
    spec, known = card["arch"], card.get("config", {})
    content, form = known.get("model"), known.get("form")
    if not isinstance(content, dict) or form not in ("classifier", "pooled", "unpooled"):
        raise UserError(
            f"{spec}: its encoder.json does not say how the model is built: train or tune it again"
        )
    transformers = _library(spec)
    kind = transformers.AutoModelForImageClassification if form == "classifier" else transformers.AutoModel
    words = {k: v for k, v in content.items() if k not in ("model_type", "auto_map")}

    def built() -> nn.Module:
        config = transformers.AutoConfig.for_model(str(content.get("model_type")), **words)
        return kind.from_config(config, trust_remote_code=False)  # type: ignore[no-any-return]

    with torch.device("meta"):  # sizes that the file cannot fill take no memory
        size_of = sum(p.numel() for p in _quietly(spec, built).parameters())
    if size_of > 2 * numbers:
        raise UserError(
            f"{spec}: its encoder.json is of a model of {size_of:,} numbers, its weights of {numbers:,}"
        )
    return _encoder(_quietly(spec, built), form, Card(spec, size, config=dict(known)), head)


def give_text(encoder: Encoder) -> None:
    """To a model whose weights are loaded: its text side, where the folder that its card names is there for the tokenizer.

    Nothing is downloaded.
    """
    place = encoder.card.arch.removeprefix("hf:")
    if encoder.card.arch.startswith("hf:") and Path(place).is_dir():
        _give_text(encoder, _library(encoder.card.arch), place)


def _library(spec: str) -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UserError(f"{spec} needs transformers: pip install 'cuewise[hf]'") from error
    return transformers


def _encoder(model: Any, form: str, card: Card, head: bool) -> Encoder:
    backbone: nn.Module
    if form == "classifier":
        backbone = ClassifierInput(model)
    elif hasattr(model, "get_image_features"):
        backbone = ImageSide(model)
    else:
        backbone = Pooled(model, untrained=form == "unpooled")
    return Encoder(backbone, card, model.classifier if form == "classifier" and head else None).eval()


def _give_text(encoder: Encoder, library: Any, place: str) -> None:
    """The text side of a model of images and texts."""
    if isinstance(encoder.backbone, ImageSide):
        model: Any = encoder.backbone.model
        encoder.text = Texts(_HfTexts(library, place, model), float(model.logit_scale.detach().exp()))


def _quietly(spec: str, load: Any) -> Any:
    """Without the library's own bars and tables of keys: what is missing is reported here."""
    log = _library(spec).utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        return load()
    except Exception as error:  # whatever the library raises about a folder, a file or a download
        raise UserError(f"{spec} cannot be loaded: {first_line(error)}") from error
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


class Wrapper(nn.Module):
    """A module that only calls a library's model, whose weights keep their names."""

    wraps = "model."

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


class ImageSide(Wrapper):
    """Projected image features of a model of images and texts; its text side does not train."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        for name, p in model.named_parameters():
            p.requires_grad_(name.startswith(VISION))

    def forward(self, x: Tensor) -> Tensor:
        found = self.model.get_image_features(pixel_values=x)  # type: ignore[operator]
        return found if isinstance(found, Tensor) else found.pooler_output  # type: ignore[no-any-return]


class Pooled(Wrapper):
    """Pooled features of a vision model: its pooler's where that is trained, else the class token, else the mean."""

    def __init__(self, model: nn.Module, *, untrained: bool) -> None:
        super().__init__(model)
        self.untrained = untrained

    def forward(self, x: Tensor) -> Tensor:
        out = self.model(pixel_values=x)
        last, pooled = out.last_hidden_state, getattr(out, "pooler_output", None)
        if pooled is not None and not self.untrained:
            return pooled.flatten(1)  # type: ignore[no-any-return]
        return last.mean((2, 3)) if last.ndim == 4 else last[:, 0]  # type: ignore[no-any-return]


class ClassifierInput(Wrapper):
    """What goes into the classifier of a model for image classification."""

    def forward(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        hook = self.model.get_submodule("classifier").register_forward_pre_hook(
            lambda _m, given: seen.append(given[0])
        )
        try:
            self.model(pixel_values=x)
        finally:
            hook.remove()
        return seen[-1].flatten(1)


def _card(spec: str, place: str, config: Any, form: str, size: int | None) -> Card:
    # where the model lies in a folder; ImageNet's habits otherwise
    known = read_object(Path(place) / "preprocessor_config.json")
    side = known.get("crop_size") or known.get("size") or _size_of(config)
    if isinstance(side, dict):
        side = side.get("shortest_edge") or side.get("height")
    mean, std = known.get("image_mean") or IMAGENET_MEAN, known.get("image_std") or IMAGENET_STD
    interpolation = RESAMPLING.get(known.get("resample", 3), "bicubic")
    built = {"form": form, "model": json.loads(config.to_json_string(use_diff=False))}
    own = size or int(side or 224)
    return Card(spec, own, tuple(mean), tuple(std), interpolation, weights=_weights(place), config=built)  # type: ignore[arg-type]


def _size_of(config: Any) -> Any:
    vision = getattr(config, "vision_config", config)
    found = getattr(vision, "image_size", None)
    return found[0] if isinstance(found, tuple | list) else found


def _weights(place: str) -> Weights:
    file = next(iter(sorted(Path(place).glob("*.safetensors"))), None)
    return weights_of_file(file) if file else {"pretrained": f"transformers {place}"}


class _HfTexts:
    """Texts → N×D; the tokenizer is loaded when it is first needed."""

    def __init__(self, library: Any, place: str, model: Any) -> None:
        self.library, self.place, self.model = library, place, model

    def __call__(self, texts: Sequence[str]) -> Tensor:
        advice = f"hf:{self.place} has no tokenizer: put tokenizer.json (or vocab.json and merges.txt) into its folder"
        folder = Path(self.place)
        # without files transformers makes a tokenizer that knows no word, and says nothing
        if folder.is_dir() and not any((folder / name).is_file() for name in TOKENIZERS):
            raise UserError(advice)
        try:
            tokenizer = self.library.AutoTokenizer.from_pretrained(self.place)
        except Exception as error:
            raise UserError(advice) from error
        # SigLIP was trained with texts of one length
        padding = "max_length" if "siglip" in str(getattr(self.model.config, "model_type", "")) else True
        words = tokenizer(list(texts), padding=padding, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            found = self.model.get_text_features(**words)
        found = found if isinstance(found, Tensor) else found.pooler_output
        return found.float().clone()
