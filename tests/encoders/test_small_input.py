"""The side that is asked for: 1 or more, and a warning where it is far below the one the model was made for."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
from safetensors.torch import save_file

from cuewise import UserError
from cuewise.encoders import libraries, load_encoder
from cuewise.encoders.load import load_whole, save_encoder

NAME = "timm/mobilenetv3_small_050"


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_said", set())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("weights") / "w.safetensors"
    save_file(timm.create_model(NAME.removeprefix("timm/")).state_dict(), file)
    return f"{NAME}:{file}"


@pytest.mark.parametrize("size", [0, -5])
def test_a_side_below_one_pixel_is_refused(size: int, trained: str) -> None:
    for model in ("cuewise/resnet-tiny", trained, "nowhere", timm.create_model("resnet10t")):
        with pytest.raises(UserError, match=f"^--size {size}: must be 1 or more$"):
            load_encoder(model, size=size)


def test_a_side_far_below_the_models_own_is_said_once(
    trained: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert load_whole(trained, size=55).card.size == 55
    line = "was made for 224 pixels; at 55 its scores say little. Leave out --size, or give 56 or more\n"
    assert capsys.readouterr().err == f"WARNING: {NAME} {line}"
    for size in (None, 56, 224, 300):
        load_encoder(trained, size=size)
    assert capsys.readouterr().err == ""


def test_nothing_is_said_of_random_weights(capsys: pytest.CaptureFixture[str]) -> None:
    load_encoder(NAME, size=32)  # to train, at that size
    load_encoder("cuewise/resnet-tiny", size=4)
    assert capsys.readouterr().err == ""


def test_an_encoder_on_disk_was_made_for_the_side_of_its_card(
    trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_encoder(load_encoder(trained, size=96), tmp_path / "encoder.safetensors")
    load_encoder(str(tmp_path), size=24)
    assert capsys.readouterr().err == ""
    load_encoder(str(tmp_path), size=23)
    assert f"WARNING: {tmp_path} was made for 96 pixels; at 23 " in capsys.readouterr().err


def test_a_model_that_is_built_for_a_size_has_a_side_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "w.safetensors"
    save_file(timm.create_model("vit_tiny_patch16_224").state_dict(), file)
    load_encoder(f"timm/vit_tiny_patch16_224:{file}", size=48)
    assert "vit_tiny_patch16_224 was made for 224 pixels; at 48 " in capsys.readouterr().err


def test_a_module_that_says_what_it_was_made_for(capsys: pytest.CaptureFixture[str]) -> None:
    load_encoder(timm.create_model("resnet10t"), size=32)
    assert "WARNING: ResNet was made for 176 pixels; at 32 " in capsys.readouterr().err
