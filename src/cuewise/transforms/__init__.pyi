"""Written by `python -m cuewise.stub` from what the cue operators declare: change those, not this file."""

from typing import Literal

from cuewise.transforms.transform import CueTransform as CueTransform
from cuewise.transforms.transform import transform_of as transform_of

class Anisotropic(CueTransform):
    def __init__(
        self,
        *,
        steps: int | tuple[int, int] | None = None,
        kappa: float = 20.0,
        gamma: float = 0.1,
        mode: Literal["channel", "vector", "medpy3d"] = "channel",
        option: int = 1,
    ) -> None:
        """Smooth texture, keep edges (Perona–Malik diffusion).

        steps: a number, or low and high to draw from [20 at 224 pixels, fewer below]
        kappa: difference above which an edge is kept, in grey levels [20.0]
        gamma: size of a step [0.1]
        mode: channel, vector or medpy3d [channel]
        option: conductance: 1 exponential, 2 rational, 3 Tukey [1]
        """

class Bilateral(CueTransform):
    def __init__(
        self,
        *,
        diameter: int = 9,
        sigma_range: float = 75.0,
        sigma_space: float = 75.0,
    ) -> None:
        """Smooth fine texture, keep edges.

        diameter: of the disc of neighbours, in pixels [9]
        sigma_range: how far colours may differ, in grey levels of 0–255 [75.0]
        sigma_space: how far neighbours count, in pixels [75.0]
        """

class Cartoon(CueTransform):
    def __init__(
        self,
        *,
        passes: int = 7,
    ) -> None:
        """Flat colours and dark outlines, no texture.

        passes: of the bilateral filter [7]
        """

class Cast(CueTransform):
    def __init__(
        self,
        *,
        light: str | None = None,
        strength: float = 1.0,
    ) -> None:
        """A colour cast, as of another light.

        light: warm, cold, green or magenta [drawn]
        strength: 0 is no cast [1.0]
        """

class Corrupted(CueTransform):
    def __init__(
        self,
        *,
        corruption: str = "gaussian_noise",
        severity: int = 3,
        scale_to_image: bool = False,
    ) -> None:
        """One of the ImageNet-C corruptions at severity 1 to 5.

        corruption: its name, e.g. fog [gaussian_noise]
        severity: 1 to 5 [3]
        scale_to_image: radii are of 224 px; multiply them by side/224
        """

class Gaussian(CueTransform):
    def __init__(
        self,
        *,
        sigma: float | None = None,
        form: str = "supervised",
    ) -> None:
        """Blur texture and edges alike.

        sigma: width in pixels [drawn by form]
        form: how sigma is drawn: supervised, ssl [supervised]
        """

class Grey(CueTransform):
    def __init__(self) -> None:
        """Remove colour."""

class Hue(CueTransform):
    def __init__(
        self,
        *,
        turn: float | None = None,
    ) -> None:
        """Rotate all colours on the colour circle.

        turn: part of the circle [drawn from 0.1 to 0.9]
        """

class Lowpass(CueTransform):
    def __init__(
        self,
        *,
        keep: float = 0.25,
        shape: Literal["square", "circle"] = "square",
    ) -> None:
        """Keep low spatial frequencies only.

        keep: part of the frequencies that is kept, 0 to 1 [0.25]
        shape: of the kept part: square or circle [square]
        """

class Patch(CueTransform):
    def __init__(
        self,
        *,
        patch_size: str = "",
        overlap: Literal["allow", "distinct", "avoid"] = "allow",
        augment: str = "",
    ) -> None:
        """Shuffled square patches: keep texture and colour, destroy shape.

        patch_size: low:high in pixels [16:72 at 224 pixels, in proportion elsewhere]
        overlap: of patches in the source: allow, distinct, avoid [allow]
        augment: of each patch: rot90, vflip, hflip, with commas
        """

class Quilting(CueTransform):
    def __init__(
        self,
        *,
        patch: str | int = "auto",
        tries: int = 800,
    ) -> None:
        """Keep patches of texture, destroy their layout (image quilting).

        patch: of the examples: a side in pixels, auto or paper [auto]
        tries: random blocks of which the best is taken [800]
        """

class Robust(CueTransform):
    def __init__(
        self,
        *,
        steps: int | tuple[int, int] | None = None,
        kappa: float = 20.0,
        gamma: float = 0.1,
        mode: Literal["channel", "vector", "medpy3d"] = "channel",
    ) -> None:
        """Smooth texture, stop at edges altogether (Tukey diffusion).

        steps: a number, or low and high to draw from [20 at 224 pixels, fewer below]
        kappa: scale of the differences that are smoothed, in grey levels [20.0]
        gamma: size of a step [0.1]
        mode: channel, vector or medpy3d [channel]
        """

class Rotation(CueTransform):
    def __init__(
        self,
        *,
        quarters: int | None = None,
    ) -> None:
        """Rotate the image by quarter turns.

        quarters: 0 to 3 [drawn from 1 to 3; 2 where the image is not square]
        """

class Silhouette(CueTransform):
    def __init__(
        self,
        *,
        rounds: int = 4,
    ) -> None:
        """Keep the main object's outer shape, black on white (best effort).

        rounds: of GrabCut [4]
        """

class Sketch(CueTransform):
    def __init__(
        self,
        *,
        width: float = 1.0,
        sensitivity: float = 1.0,
    ) -> None:
        """Keep outlines as dark lines on white.

        width: of the lines: σ in pixels at 224 px [1.0]
        sensitivity: larger draws fainter edges too [1.0]
        """

class Stylized(CueTransform):
    def __init__(
        self,
        *,
        styles: str | None = None,
        strength: float = 1.0,
        encoder: str | None = None,
        decoder: str | None = None,
    ) -> None:
        """The layout of the image with the texture and colours of a random style.

        styles: a folder of style images [256 drawn styles]
        strength: 0 the image, 1 the full style [1.0]
        encoder: AdaIN's encoder, a file of weights
        decoder: AdaIN's decoder, a file of weights
        """

class Texture(CueTransform):
    def __init__(
        self,
        *,
        patch: str | int = "auto",
        neighbours: int = 24,
        random: int = 10,
        sigma: float = 1.0,
        backtrack: float = 0.5,
        stages: int = 5,
        mirror_random: bool = False,
    ) -> None:
        """Keep local texture, destroy all layout (multiresolution synthesis).

        patch: of the examples: a side in pixels, auto or paper [auto]
        neighbours: k, the resolved neighbours that a candidate is compared on (published: 50) [24]
        random: m, random candidates per pixel (published: 50) [10]
        sigma: σ of the robust difference of colours [1.0]
        backtrack: p, share of the pixels of a stage that the stage before resolves [0.5]
        stages: T, levels of the pyramid [5]
        mirror_random: reproduce a sign slip of the published program
        """

class Tiles(CueTransform):
    def __init__(
        self,
        *,
        tiles: int = 4,
    ) -> None:
        """Shuffle tiles: keep the parts, remove their configuration.

        tiles: tiles per side [4]
        """

class Word(CueTransform):
    def __init__(
        self,
        *,
        text: str = "",
        share: float = 0.6,
    ) -> None:
        """Paste a word on the image (typographic attack).

        text: the word [drawn from eight common ones]
        share: width of the label relative to the image [0.6]
        """
