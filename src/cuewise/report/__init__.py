"""The report: audit documents in, one self-contained page out."""

from cuewise.report.card import write_card
from cuewise.report.page import write_report
from cuewise.report.sweep import sweep_figures

__all__ = ["sweep_figures", "write_card", "write_report"]
