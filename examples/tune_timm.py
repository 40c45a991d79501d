"""Tune a timm model away from texture, look at it before and after, and load the result in timm.

python examples/tune_timm.py photos photos-val --model timm/resnet50:weights.safetensors
"""

import argparse
from pathlib import Path
from typing import Any

import timm
from safetensors.torch import load_file

import cuewise


def main(photos: str, val: str, model: str, out: Path, **settings: Any) -> dict[str, Any]:
    """`photos` needs no labels; accuracy is watched on `val`, one folder per class."""
    found = cuewise.tune(model, photos, out=out, val=val, **settings)
    name = model.removeprefix("timm/").partition(":")[0]
    network = timm.create_model(name)
    network.load_state_dict(load_file(out / "encoder.safetensors"))  # the classifier is still in it
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("val")
    parser.add_argument("--model", required=True, help="timm/NAME:FILE")
    parser.add_argument("--out", type=Path, default=Path("runs/tuned"))
    parser.add_argument("--away", default="texture")
    asked = vars(parser.parse_args())
    main(**asked)
    print(asked["out"] / "report.html")
