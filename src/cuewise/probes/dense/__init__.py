"""Where things are: detection and segmentation on top of an encoder, trained, measured and drawn."""
