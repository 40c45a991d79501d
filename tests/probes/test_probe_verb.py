"""cuewise probe: kinds, presets, several test sets, class maps, tables of labels, odd models."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuewise import UserError, probe
from cuewise.cli import main
from cuewise.data import open_data
from cuewise.probes.class_map import match, read_class_map

pytestmark = pytest.mark.usefixtures("warm_start")

MODEL = "cuewise/resnet-tiny?width=8"


@pytest.fixture(scope="session")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven classes of one colour each, six images per class."""
    return paint(tmp_path_factory.mktemp("colours"), 0)


@pytest.fixture(scope="session")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other images of the same classes, under the same names."""
    return paint(tmp_path_factory.mktemp("others"), 1)


def paint(root: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    palette = {"black": 0x101010, "blue": 0x1020E0, "cyan": 0x10D0D0, "green": 0x20C020, "red": 0xE02020,
               "white": 0xF0F0F0, "yellow": 0xE0E010}  # fmt: skip
    for name, value in palette.items():
        (root / name).mkdir()
        colour = np.array([value >> 16, value >> 8 & 255, value & 255])
        for i in range(6):
            noise = rng.integers(-12, 13, (24, 24, 3))
            Image.fromarray((colour + noise).clip(0, 255).astype(np.uint8)).save(root / name / f"{i}.png")
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options", "begin"),
    [
        ("linear", {}, "linear_lbfgs_standardised_l2_of_5_held_out/center24/42images_7classes"),
        ("linear", {"preset": "ns"}, "linear_sgd_ns_lr10_batch128_epochs60_x0.1at30-40-50_m0.9/center24/42"),
        ("linear", {"preset": "frozen_conv"}, "linear_sgd_frozen_conv_lr0.01|0.1|1_batch256"),
        ("knn", {"k": 3}, "knn3_t0.07/center24/42images_7classes"),
        ("fewshot", {"shots": [2]}, "fewshot2_trials10_adam_lr0.03_250iterations/center24"),
        (
            "finetune",
            {"steps": 90, "lr": 0.03, "batch_size": 14},
            "finetune_sgd_lr0.03_batch14_epochs100_cosine",
        ),
    ],
)
def test_kinds_on_several_test_sets(
    colours: Path,
    others: Path,
    kind: str,
    options: dict,  # type: ignore[type-arg]
    begin: str,
) -> None:
    result = probe(kind, MODEL, train=[str(colours)], test=[str(others)] * 2, size=24, **options)
    names = [s["name"] for s in result["scores"]]
    prefix = "2-shot/" if kind == "fewshot" else ""
    assert names == [f"{prefix}top{k}/{others}" for k in (1, 5)] * 2
    for top1, top5 in (result["scores"][:2], result["scores"][2:]):
        assert top1["value"] > (0.9 if kind != "finetune" else 0.5)  # plain colours
        assert top5["value"] >= top1["value"]
        assert top1["protocol"].startswith(begin)
    assert [t["images"] for t in result["tests"]] == [42, 42]
    assert result["classes"] == sorted(p.name for p in colours.iterdir())
    json.dumps(result)


@pytest.mark.slow
def test_without_a_test_set_a_fifth_is_held_out(colours: Path) -> None:
    result = probe("knn", MODEL, train=[str(colours)], k=3)
    assert [s["name"] for s in result["scores"]] == ["top1/held-out", "top5/held-out"]
    assert result["scores"][0]["n"] == 7  # one of six of each class
    assert "/35images" in result["scores"][0]["protocol"]


@pytest.mark.slow
def test_an_untrained_model_is_the_same_for_a_seed(colours: Path) -> None:
    one, two = (probe("linear", MODEL, train=[str(colours)], seed=3, cache=False) for _ in range(2))
    assert one == two


def test_training_images_in_a_test_set(
    colours: Path, others: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("knn", "rotation", "finetune"):
        with pytest.raises(UserError, match="all of its 42 images are in --train as well"):
            probe(kind, MODEL, train=[str(colours)], test=[str(others), str(colours)])
    mixed = shutil.copytree(others, tmp_path / "mixed")
    shutil.copy(colours / "red" / "3.png", mixed / "red" / "copy.png")
    result = probe("knn", MODEL, train=[str(colours)], test=[str(others), str(mixed)], k=3)
    assert [(o["test"], o["shared"], o["images"]) for o in result["overlap"]] == [
        (str(others), 0, 42),
        (str(mixed), 1, 43),
    ]
    assert result["overlap"][1]["pairs"] == [["red/copy.png", "red/3.png"]]
    assert "1 of 43 test images are training images" in capsys.readouterr().err


@pytest.mark.slow
def test_rotation_needs_no_labels(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for part in ("train", "test"):  # light above, dark below: every rotation can be seen
        (tmp_path / part).mkdir()
        for i in range(16):
            shade = np.linspace(230, 20, 32)[:, None, None] + rng.normal(0, 10, (32, 32, 3))
            Image.fromarray(shade.clip(0, 255).astype(np.uint8)).save(tmp_path / part / f"{i}.png")
    result = probe("rotation", MODEL, train=[str(tmp_path / "train")], test=[str(tmp_path / "test")])
    (score,) = result["scores"]
    assert score["n"] == 16
    assert score["value"] > 0.9
    assert score["protocol"].startswith("rotation4_all_angles_split_by_image_linear")
    assert probe("rotation", MODEL, train=[str(folder)])["scores"][0]["n"] == 10  # a fifth of 48 images


@pytest.mark.slow
def test_multilabel_from_a_table(colours: Path, others: Path, tmp_path: Path) -> None:
    data = open_data(str(colours))
    light = {"white": "light;warm", "yellow": "light;warm", "red": "warm", "cyan": "light"}
    lines = ["image,labels"]
    lines += [f"{data.name(i)},{light.get(data.name(i).split('/')[0], '')}" for i in range(len(data))]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    for options in ({}, {"preset": "oac"}, {"preset": "voc", "steps": 40, "lr": 0.03}):
        result = probe(
            "multilabel",
            MODEL,
            train=[str(colours)],
            test=[str(others)],
            labels=[str(tmp_path / "labels.csv")],
            **options,  # type: ignore[arg-type]
        )
        area, eleven = result["scores"]
        assert area["name"] == f"map_area/{others}"
        assert eleven["name"] == f"map_11point/{others}"
        assert area["value"] > 0.8
        assert area["low"] <= area["value"] <= area["high"]
        assert "mean_over_2of2labels" in area["protocol"]
        assert area["protocol"].endswith("/area")
        assert eleven["protocol"].endswith("/11point")
    with pytest.raises(UserError, match="3 files of --labels for 2 sets"):
        probe("multilabel", MODEL, train=[str(colours)], test=[str(others)], labels=["a"] * 3)
    with pytest.raises(UserError, match=r"needs DATA with annotated objects .* or --labels FILE"):
        probe("multilabel", MODEL, train=[str(colours)])
    with pytest.raises(UserError, match="add --preset voc"):
        probe("multilabel", MODEL, train=["shapes:scenes?n=20&size=32"], steps=3)
    found = probe("multilabel", MODEL, train=["shapes:scenes?n=60&size=32"])
    assert found["scores"][0]["n"] == 12


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("quadratic", {}, "no probe 'quadratic'; there are: detect, fewshot, finetune"),
        ("knn", {"shots": [5]}, "--shots has no meaning for the probe knn: it takes --k, --temp"),
        ("linear", {"preset": "ms"}, "no preset 'ms' of a linear probe; there are: ns, moco, looc"),
        ("finetune", {"preset": "ns"}, "no preset 'ns' of fine-tuning"),
        ("fewshot", {"shots": [9]}, "class 'black' has 6 images, fewer than --shots 9"),
        (
            "rotation",
            {"class_map": "x.json"},
            "--class-map has no meaning for the probe rotation: it takes none",
        ),
    ],
)
def test_what_cannot_be_done_is_reported(colours: Path, kind: str, options: dict, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(UserError, match=said):
        probe(kind, MODEL, train=[str(colours)], **options)


def test_no_labels_and_one_image_a_class(colours: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no labels"):
        probe("knn", MODEL, train=[str(colours / "red")])
    for name in ("red", "blue"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_bytes((colours / name / "0.png").read_bytes())
    with pytest.raises(UserError, match="leaves nothing to test on"):
        probe("linear", MODEL, train=[str(tmp_path)])
    result = probe("linear", MODEL, train=[str(tmp_path)], test=[str(colours)])
    assert result["scores"][0]["n"] == 12
    assert result["scores"][0]["protocol"].partition(";")[0].endswith("/shared2of7classes")
    assert result["tests"][0]["left_out_images"] == 30
    assert "red" not in result["tests"][0]["left_out_classes"]


# classes that are shared only in part


def test_every_trained_class_stays_in_the_argmax() -> None:
    """A test set of one shared class is not answered right by having no choice."""
    from cuewise.probes.probe import top_hits

    got = match(np.array([0, 0, 1]), ("dog", "unknown"), ("cat", "dog", "owl"))
    assert got.rows.tolist() == [0, 1]
    assert (got.shared, got.dropped, str(got)) == (("dog",), ("unknown",), "/shared1of2classes")
    p = np.array([[0.5, 0.4, 0.1], [0.1, 0.8, 0.1]], np.float32)
    assert top_hits(p, got.labels, 1, got.right).tolist() == [False, True]
    assert top_hits(p, got.labels, 2, got.right).tolist() == [True, True]


@pytest.mark.slow
def test_a_class_map_names_pairs(colours: Path, others: Path, tmp_path: Path) -> None:
    for name, other in (("crimson", "red"), ("sky", "cyan"), ("white", "black"), ("pink", "yellow")):
        (tmp_path / "test" / name).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "test" / name / f"{i}.png").write_bytes((others / other / f"{i}.png").read_bytes())
    maps = {
        "map.json": json.dumps({"crimson": "red", "sky": ["cyan", "blue"], "white": "black", "pink": None}),
        "map.csv": "test,train\ncrimson,red\nsky,cyan\nsky,blue\nwhite,black\npink,\n",
    }
    for name, text in maps.items():
        (tmp_path / name).write_text(text)
        result = probe(
            "linear",
            MODEL,
            train=[str(colours)],
            test=[str(tmp_path / "test")],
            class_map=str(tmp_path / name),
        )
        assert result["scores"][0]["value"] == 1.0  # pixels of the training images, renamed
        assert result["scores"][0]["n"] == 9
        assert result["tests"][0]["classes"] == ["crimson", "sky", "white"]
        assert result["tests"][0]["left_out_classes"] == ["pink"]
        assert result["scores"][0]["protocol"].partition(";")[0].endswith("/shared3of4classes")
    alone = probe("linear", MODEL, train=[str(colours)], test=[str(tmp_path / "test")])
    assert alone["scores"][0]["n"] == 3  # only white has its name, and the images are black
    assert alone["scores"][0]["value"] == 0.0


def test_a_class_map_with_a_slip_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "map.json"
    for text, said in (
        ('{"crimsom": "red"}', "no test set has a class 'crimsom'; did you mean 'crimson'"),
        ('{"crimson": "rad"}', "training set has no class 'rad'; did you mean 'red'"),
        ("[]", "a JSON object"),
        ("{", "is not JSON"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=said):
            read_class_map(file, [("crimson", "sky")], ("red", "blue"))
    with pytest.raises(UserError, match="cannot read the class map"):
        read_class_map(tmp_path / "none.csv", [()], ())
    with pytest.raises(UserError, match=r"shares no class with the training set .* --class-map"):
        match(np.array([0]), ("crimson",), ("red",))


# models that are not plain

ODD = """
import torch
from torch import nn


class Odd(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how
        self.conv = nn.Conv2d(3, 8, 4, 4)

    def forward(self, x):
        f = self.conv(x).mean((2, 3))
        if self.how == "strict" and x.shape[-1] != 64:
            raise ValueError("only 64 pixels")
        nothing = torch.tensor(1.0)
        return {"tuple": (nothing, f), "dict": {"loss": nothing, "features": f}, "nan": f * float("nan"),
                "nothing": (nothing,), "strict": f}[self.how]


def make_tuple(): return Odd("tuple")
def make_dict(): return Odd("dict")
def make_nan(): return Odd("nan")
def make_nothing(): return Odd("nothing")
def make_strict(): return Odd("strict")
def make_trouble(): return 1 / 0
"""


@pytest.mark.slow
def test_models_that_return_other_things(
    colours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_models.py").write_text(ODD)
    monkeypatch.chdir(tmp_path)
    data = {"train": [str(colours)], "size": 32}
    for how in ("tuple", "dict"):
        assert probe("linear", f"odd_models:make_{how}", **data)["scores"][0]["value"] > 0.9
    for how, said in (
        ("nan", "the features hold NaN"),
        ("nothing", "returned tuple without a feature tensor"),
        ("strict", "does not take images of 32×32: only 64 pixels. Try another --size"),
        ("missing", "odd_models has no 'make_missing'"),
        ("trouble", "odd_models:make_trouble failed: ZeroDivisionError: division by zero"),
    ):
        with pytest.raises(UserError, match=said):
            probe("linear", f"odd_models:make_{how}", **data)
    for model, said in (
        (f"{MODEL}:none.pth", "no weights at none.pth"),
        ("runs/none", "no model 'runs/none'"),
    ):
        with pytest.raises(UserError, match=said):
            probe("linear", model, train=[str(colours)])
    (tmp_path / "e.safetensors").write_bytes(b"")
    for card, said in (("{", "e.json is damaged"), ('{"arch": "timm/x"}', "e.json has no 'size'")):
        (tmp_path / "e.json").write_text(card)
        with pytest.raises(UserError, match=said):
            probe("linear", str(tmp_path / "e.safetensors"), train=[str(colours)])


@pytest.mark.shell
def test_in_the_shell(
    colours: Path, others: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "probe",
        "knn",
        MODEL,
        "--train",
        str(colours),
        "--size",
        "24",
        "--test",
        str(others),
        "--k",
        "1",
    ]
    words += ["--json", str(tmp_path / "out.json")]
    done = subprocess.run(
        [sys.executable, "-m", "cuewise", *words], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert "knn1_t0.07/center24/42images_7classes" in done.stdout
    scores = json.loads((tmp_path / "out.json").read_text())["scores"]
    assert scores[0]["value"] == 1.0  # its own nearest neighbour
    assert main(words) == main(words) == 0
    assert "embedding train: 42 images, features from the cache" in capsys.readouterr().err
    assert json.loads((tmp_path / "out.json").read_text())["scores"] == scores
    assert main([*words, "--no-cache"]) == 0
    assert "from the cache" not in capsys.readouterr().err
    assert main([*words, "--shots", "2"]) == 2
    assert capsys.readouterr().err.startswith("cuewise: --shots has no meaning for the probe knn")
