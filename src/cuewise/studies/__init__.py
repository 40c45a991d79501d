"""The papers' claims at lab scale: one study a file, trained over seeds, measured, and judged."""
