"""Scorers: what an extracted answer is worth.

make_scorer("numeric").score("$2,300.", "2300").value   # 1.0
"""

from llenvs_huggingface.scoring.build import UnknownScorer, make_scorer, scorer_names
from llenvs_huggingface.scoring.scorer import Score, Scorer

__all__ = ["Score", "Scorer", "UnknownScorer", "make_scorer", "scorer_names"]
