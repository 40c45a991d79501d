"""From a folder of images to a report: two encoders that differ in one dial, audited side by side.

python examples/own_folder.py photos photos-val --out runs/own --epochs 50
python examples/own_folder.py                          # on embedded images, small: some minutes on two cores

Images may lie flat or in one folder per class; to measure, `photos` and `photos-val` need class folders.
"""

import argparse
from pathlib import Path
from typing import Any

import cuewise

AUDITS = "accuracy,shape_bias,similarity,sketch"
SHAPES = "shapes:aligned?rho=1&palette=one&size=48&n={n}&part={part}"


def main(photos: str, val: str, out: Path, only: str = AUDITS, **settings: Any) -> dict[str, Any]:
    """Pretrain with and without patch negatives, then compare; returns what is in report.html."""
    dials: dict[str, dict[str, Any]] = {"plain": {}, "shape": {"negatives": "patch", "alpha": 2}}
    for name, dial in dials.items():
        cuewise.pretrain(photos, out=out / name, method="simclr", val=val, **settings, **dial)
    return cuewise.compare(
        *(out / name for name in dials),
        out=out / "compared",
        train=photos,
        test=val,
        only=only,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", nargs="?", default=SHAPES.format(n=3200, part="train"))
    parser.add_argument("val", nargs="?", default=SHAPES.format(n=800, part="test"))
    parser.add_argument("--out", type=Path, default=Path("runs/own"))
    parser.add_argument("--model", default="cuewise/resnet-tiny")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=128)
    asked = vars(parser.parse_args())
    main(**asked)
    print(asked["out"] / "compared" / "report.html")
