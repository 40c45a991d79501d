"""cuewise: choose which visual cues an encoder learns; see which cues any vision model relies on."""

__version__ = "0.1.0"
