"""One clue per file: a few numbers per image that hold one cue and nothing else."""
