"""Search over any environment: states are values, so every one can be tried again in another way."""

from llenvs.core.search.beam import beam_search
from llenvs.core.search.best_of_n import best_of_n
from llenvs.core.search.budget import Budget
from llenvs.core.search.mcts import mcts
from llenvs.core.search.policy import Policy, Proposer, Value
from llenvs.core.search.result import SearchResult

__all__ = ["Budget", "Policy", "Proposer", "SearchResult", "Value", "beam_search", "best_of_n", "mcts"]
