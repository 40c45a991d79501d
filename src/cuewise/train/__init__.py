"""The training loop and all that keeps a run alive: schedules, processes, checkpoints, dials, logs."""
