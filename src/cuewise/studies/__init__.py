"""The papers' claims at lab scale: one study per file, trained over seeds, measured and judged."""
