"""The version of the rules: which verdicts the same records give."""

from typing import Final

RULES_VERSION: Final = 1
"""Raise it when records that exist give another report: another verdict, number, doubt or order.

Stored verdicts name it, and an index of other rules is made again. It takes the place of a digest
of the sources, by which a corrected comment judged every store again. A test holds the reports of
all committed records, and of constructed ones, to the version they were reviewed under.
"""
