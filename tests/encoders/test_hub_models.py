"""Models of open_clip and transformers, tiny, random, saved to disk in the libraries' own formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import cuewise
from cuewise.audits.zero_shot import ZeroShot, read_prompts, spoken, widened
from cuewise.encoders import load_encoder
from cuewise.encoders.load import load_whole, save_encoder
from cuewise.encoders.texts import TextHead, Texts
from cuewise.errors import UserError
from cuewise.scores import Score
from cuewise.train.reload import load_method
from tests.audits.small_models import photos

open_clip = pytest.importorskip("open_clip")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

SIDE = 32
TINY = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": SIDE, "layers": 1, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
X = torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """open_clip/NAME:FILE."""
    root = tmp_path_factory.mktemp("clip")
    (root / "cuewise-tiny.json").write_text(json.dumps(TINY))
    open_clip.add_model_config(root / "cuewise-tiny.json")
    torch.manual_seed(0)
    model = open_clip.create_model("cuewise-tiny")
    torch.save(model.state_dict(), root / "weights.pt")
    return f"open_clip/cuewise-tiny:{root / 'weights.pt'}"


def saved(folder: Path, model: object, **preprocessing: object) -> str:
    model.save_pretrained(folder)  # type: ignore[attr-defined]
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    return f"hf:{folder}"


def tokenizer(folder: Path) -> None:
    """A word-level tokenizer in the library's own file."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[pad]", "[unk]", "a", "photo", "of", "the", "picture", ".", "ant", "bee", "cat"]
    made = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token="[unk]"))
    made.pre_tokenizer = Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[pad]", unk_token="[unk]")
    fast.save_pretrained(folder)


@pytest.fixture(scope="module")
def hf_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf") / "clip"
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config={**small, "vocab_size": 40, "max_position_embeddings": 16, "eos_token_id": 7},
        vision_config={**small, "image_size": SIDE, "patch_size": 8},
        projection_dim=12,
    )
    model = transformers.CLIPModel(config)
    model.logit_scale.data.fill_(3.5)  # trained: not where it begins
    saved(folder, model, image_mean=[0.5] * 3, image_std=[0.25] * 3, resample=3,
          crop_size={"height": SIDE, "width": SIDE})  # fmt: skip
    tokenizer(folder)
    return folder


def test_open_clip_gives_the_librarys_features(clip: str) -> None:
    encoder = load_encoder(clip)
    model = open_clip.create_model("cuewise-tiny", pretrained=clip.partition(":")[2]).eval()
    with torch.no_grad():
        assert torch.allclose(encoder(X), model.encode_image(X), atol=1e-5)
        texts = open_clip.get_tokenizer("cuewise-tiny")(["a cat", "a bee"])
        assert encoder.text is not None
        assert torch.allclose(encoder.text.encode(["a cat", "a bee"]), model.encode_text(texts), atol=1e-5)
    assert encoder.card.size == SIDE
    assert np.allclose(encoder.card.mean, model.visual.preprocess_cfg["mean"])
    assert encoder.card.weights["sha256"]  # type: ignore[index]


def test_transformers_clip_gives_the_librarys_features(hf_clip: Path) -> None:
    encoder = load_encoder(f"hf:{hf_clip}")
    model = transformers.CLIPModel.from_pretrained(hf_clip).eval()
    with torch.no_grad():
        found = model.get_image_features(pixel_values=X)
        found = found if isinstance(found, torch.Tensor) else found.pooler_output
        assert torch.allclose(encoder(X), found, atol=1e-5)
    assert (encoder.card.mean, encoder.card.std, encoder.card.size) == ((0.5,) * 3, (0.25,) * 3, SIDE)
    assert encoder.text is not None
    one, other = encoder.text.encode(["a cat ."]), encoder.text.encode(["a bee ."])
    assert one.shape == (1, 12)
    assert not torch.allclose(one, other)


def backbones() -> dict[str, object]:
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
             "image_size": SIDE, "patch_size": 8}  # fmt: skip
    return {
        "vit": transformers.ViTModel(transformers.ViTConfig(**small)),
        "dinov2": transformers.Dinov2Model(transformers.Dinov2Config(**small, mlp_ratio=2)),
        "convnext": transformers.ConvNextModel(
            transformers.ConvNextConfig(hidden_sizes=[8, 8, 8, 16], depths=[1, 1, 1, 1], image_size=SIDE)
        ),
    }


@pytest.mark.parametrize("name", ["vit", "dinov2", "convnext"])
def test_vision_models_of_transformers(name: str, tmp_path: Path) -> None:
    model = backbones()[name].eval()  # type: ignore[attr-defined]
    encoder = load_encoder(saved(tmp_path / name, model, image_mean=[0.5] * 3, image_std=[0.5] * 3))
    with torch.no_grad():
        assert torch.allclose(encoder(X), model(pixel_values=X).pooler_output.flatten(1), atol=1e-5)
    assert encoder.dim == 16
    assert encoder.text is None


def test_a_pooler_that_was_never_trained_is_not_used(tmp_path: Path) -> None:
    """Checkpoints of ViT often come without a pooler; transformers makes one of random numbers."""
    model = transformers.ViTModel(backbones()["vit"].config, add_pooling_layer=False).eval()  # type: ignore[attr-defined]
    encoder = load_encoder(saved(tmp_path / "vit", model))
    with torch.no_grad():
        assert torch.allclose(encoder(X), model(pixel_values=X).last_hidden_state[:, 0], atol=1e-5)


def test_the_classifier_of_transformers_is_kept(tmp_path: Path) -> None:
    config = backbones()["vit"].config  # type: ignore[attr-defined]
    config.num_labels = 5
    model = transformers.ViTForImageClassification(config).eval()
    encoder = load_encoder(saved(tmp_path / "vit", model), head=True)
    with torch.no_grad():
        assert torch.allclose(encoder.logits(X), model(pixel_values=X).logits, atol=1e-5)


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("sets")
    return str(photos(root / "train", 4)), str(photos(root / "test", 5, seed=1))


@pytest.mark.parametrize("which", ["open_clip", "hf"])
def test_audit_zero_shot_and_headless(
    which: str, clip: str, hf_clip: Path, sets: tuple[str, str], tmp_path: Path
) -> None:
    model = clip if which == "open_clip" else f"hf:{hf_clip}"
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("a photo of a {}.\nthe {}.\n")
    common = {"only": "accuracy,color,confidence", "limit": 6, "workers": 0}
    found = cuewise.audit(model, out=tmp_path / "text", test=sets[1], prompts=prompts, **common)
    scores = {s["name"]: s for s in found["scores"]}
    top = next(s for name, s in scores.items() if name.startswith("head/"))
    assert "zero-shot, 2 prompts" in top["protocol"]
    assert top["n"] == 15
    encoder = load_encoder(model)
    from cuewise.data import open_data
    from cuewise.encoders.embed import embed_dataset

    features = embed_dataset(encoder, open_data(sets[1]), workers=0)
    unit = nn.functional.normalize(torch.from_numpy(features.features), dim=1)
    assert encoder.text is not None
    words = [nn.functional.normalize(encoder.text.encode([p.format(c) for c in ("ant", "bee", "cat")]), dim=1)
             for p in ("a photo of a {}.", "the {}.")]  # fmt: skip
    said = (unit @ nn.functional.normalize(torch.stack(words).mean(0), dim=1).T).argmax(1).numpy()
    assert np.isclose(top["value"], (said == features.labels).mean())
    each = [one_prompt(model, sets[1], p, tmp_path) for p in ("a photo of a {}.", "the {}.")]
    for name, score in scores.items():
        spread = 1.959964 * np.std([e[name] for e in each], ddof=1)
        assert (spread > 0) == ("images and prompts" in score["protocol"]), name
        if spread > 0:  # the interval covers both
            assert min(score["high"], 1) - score["value"] >= min(spread, 1 - score["value"]) - 1e-9, name
    assert any("images and prompts" in s["protocol"] for s in scores.values())
    headless = cuewise.audit(
        model, out=tmp_path / "probe", train=sets[0], test=sets[1], only="accuracy", workers=0
    )
    assert any(s["name"].startswith("linear/") for s in headless["scores"])


def one_prompt(model: str, test: str, prompt: str, out: Path) -> dict[str, float]:
    """The same scores with one prompt alone."""
    file = out / f"{len(prompt)}.txt"
    file.write_text(prompt)
    found = cuewise.audit(
        model,
        out=out / f"only-{len(prompt)}",
        test=test,
        prompts=file,
        only="accuracy,color,confidence",
        limit=6,
        workers=0,
    )
    assert all("and prompts" not in s["protocol"] for s in found["scores"])
    return {s["name"]: s["value"] for s in found["scores"]}


def test_a_tuned_model_of_a_hub_is_a_model_again(
    clip: str, hf_clip: Path, sets: tuple[str, str], tmp_path: Path
) -> None:
    """Features, classifier and texts after a run; the file has the key names of the library."""
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.ViTConfig(**small, image_size=SIDE, patch_size=8, num_labels=5)
    model = transformers.ViTForImageClassification(config)
    specs = {
        "clip": clip,
        "hf-clip": f"hf:{hf_clip}",
        "classifier": saved(tmp_path / "classifier", model, image_mean=[0.5] * 3, image_std=[0.5] * 3),
        **{n: saved(tmp_path / n, m, image_mean=[0.5] * 3) for n, m in backbones().items()},
    }
    for name, spec in specs.items():
        run = tmp_path / "runs" / name
        cuewise.tune(
            spec,
            sets[0],
            out=run,
            batch_size=6,
            workers="0",
            report=False,
            set=["tune.images=0", "optim.lr=0.01"],
        )
        before, after, trained = load_encoder(spec), load_encoder(str(run)), load_method(run).encoder
        with torch.no_grad():
            assert torch.equal(after(X), trained.eval()(X)), name
            assert not torch.allclose(after(X), before(X), atol=1e-4), name
        assert (after.card.size, after.card.mean, after.card.std) == (SIDE, before.card.mean, before.card.std)
        library = open_clip.create_model("cuewise-tiny").visual if name == "clip" else None
        if name == "hf-clip":
            library = transformers.CLIPModel.from_pretrained(hf_clip)
            assert after.text is not None
            assert before.text is not None
            texts = [(k, v) for k, v in before.backbone.model.state_dict().items() if "text" in k]
            assert texts
            assert all(torch.equal(after.backbone.model.state_dict()[k], v) for k, v in texts)
            # the same weights at other places in memory: products differ in their last bit on some processors
            assert torch.allclose(after.text.encode(["a cat ."]), before.text.encode(["a cat ."]), atol=1e-6)
            assert (
                float(after.text.scale) == float(before.text.scale) != pytest.approx(np.exp(2.6592), rel=1e-3)
            )
            assert {n for n, p in trained.backbone.named_parameters() if not p.requires_grad} >= {
                "model.logit_scale"
            }
        if name == "classifier":
            whole = load_whole(str(run))
            assert whole.head is not None
            with torch.no_grad():
                assert torch.equal(whole.logits(X), model.classifier(after(X)))
            library = model
        if library is not None:
            library.load_state_dict(load_file(run / "encoder.safetensors"))  # strict


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda c: c.pop("config"), "does not say how the model is built"),
        (lambda c: c["config"].update(form="code"), "does not say how the model is built"),
        (lambda c: c["config"]["model"].update(model_type="nothing"), "cannot be loaded"),
        (
            lambda c: c["config"]["model"].update(hidden_size=1 << 14, intermediate_size=1 << 20),
            "numbers, its weights",
        ),
        (lambda c: c.update(arch="open_clip/hf-hub:someone/some"), "open_clip has no model"),
    ],
)
def test_cards_of_hub_models_that_lie(change: Callable[[Any], Any], match: str, tmp_path: Path) -> None:
    encoder = load_encoder(saved(tmp_path / "vit", backbones()["vit"], image_mean=[0.5] * 3))
    save_encoder(encoder, tmp_path / "encoder.safetensors")
    card = json.loads((tmp_path / "encoder.json").read_text())
    change(card)
    (tmp_path / "encoder.json").write_text(json.dumps(card))
    with pytest.raises(UserError, match=match):
        load_encoder(str(tmp_path / "encoder.safetensors"))


def test_the_interval_covers_prompts() -> None:
    score = Score("x", 0.5, 0.4, 0.6, 100, "p")
    assert widened(score, [0.5]) == score
    wide = widened(score, [0.45, 0.55])
    assert np.isclose(wide.high - 0.5, np.hypot(0.1, 1.959964 * np.std([0.45, 0.55], ddof=1)))


def test_zero_shot_by_hand() -> None:
    vectors = {"a ant": [1.0, 0], "a bee": [0, 2.0], "the ant": [0, 1.0], "the bee": [0, 1.0]}
    texts = Texts(lambda words: torch.tensor([vectors[w] for w in words]), 10.0)
    probe = ZeroShot(texts, ("ant", "bee"), ("a {}", "the {}"))
    p = probe.predict_proba(np.array([[3.0, 0.1]], np.float32))
    assert p[0].argmax() == 0
    assert len(probe.members) == 2
    head = TextHead(torch.tensor([[2.0, 0], [0, 1]]), 5.0)
    assert torch.allclose(head(torch.tensor([[3.0, 4.0]])), torch.tensor([[3.0, 4.0]]))


def test_class_names_as_people_say_them() -> None:
    assert spoken("n02123045") == "tabby"
    assert spoken("polar_bear") == "polar bear"


@pytest.mark.parametrize(("text", "match"), [("a photo\n", "names no class"), ("", "one template per line"),
                                             ("{} {}\n", "names no class"), ("[1]", "one template per line")])  # fmt: skip
def test_prompts_that_are_none(text: str, match: str, tmp_path: Path) -> None:
    file = tmp_path / "prompts"
    file.write_text(text)
    with pytest.raises(UserError, match=match):
        read_prompts(file)


def test_errors(hf_clip: Path, sets: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="open_clip has no model"):
        load_encoder("open_clip/ViT-B-3")
    with pytest.raises(UserError, match="no file and no tag"):
        load_encoder("open_clip/ViT-B-32:nowhere.pt")
    with pytest.raises(UserError, match="cannot be loaded"):
        load_encoder(f"hf:{tmp_path}")
    with pytest.raises(UserError, match="type it as MODEL"):
        load_encoder(f"hf:{hf_clip}", typed=False)
    (tmp_path / "p.txt").write_text("a {}")
    with pytest.raises(UserError, match="knows no texts"):
        cuewise.audit(
            "cuewise/resnet-tiny?width=8",
            out=tmp_path / "o",
            test=sets[1],
            prompts=tmp_path / "p.txt",
            size=32,
        )
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in hf_clip.iterdir():
        if "token" not in file.name:
            (bare / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UserError, match="no tokenizer"):
        cuewise.audit(f"hf:{bare}", out=tmp_path / "o", test=sets[1], only="accuracy", workers=0)
