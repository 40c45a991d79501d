"""The report room: audit documents in, one self-contained page out."""

from cuewise.report.card import write_card
from cuewise.report.page import write_report

__all__ = ["write_card", "write_report"]
