"""Monte Carlo tree search with priors.

Selection is PUCT: the action with the greatest ``Q + c * P * sqrt(N) / (1 + n)`` (Rosin 2011; Silver et al. 2017),
where Q is the mean return after the action, put into [0, 1] by the least and greatest return seen in the tree
(Schrittwieser et al. 2020), so that `exploration` means the same for rewards of any size.
"""

from __future__ import annotations

import math
import random
from typing import Any

from llenvs.core.action import Action
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import EpisodeOver, InvalidOption
from llenvs.core.search.best_of_n import check_positive, play
from llenvs.core.search.budget import Budget, Spender
from llenvs.core.search.policy import Policy, Proposer, Value, proposals
from llenvs.core.search.result import ActionStatistics, SearchResult
from llenvs.core.search.scoring import score
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory

_PATIENCE = 10  # descents in a row that end in known states before the next one must go where something is unknown


class _Node:
    """A state in the tree.

    `result` is the step that led to it; `visits` and `total` are over the returns after it; `known` when nothing
    below it is left to try.
    """

    __slots__ = ("action", "children", "known", "result", "state", "total", "visits")

    def __init__(self, state: State[Any], action: Action | None = None, result: StepResult | None = None) -> None:
        self.state, self.action, self.result = state, action, result
        self.visits, self.total, self.known = 0, 0.0, False
        self.children: list[_Edge] | None = None

    @property
    def reward(self) -> float:
        return 0.0 if self.result is None else self.result.rewards.total


class _Edge:
    """An action of a node, tried (`node`) or not yet."""

    __slots__ = ("action", "node", "prior")

    def __init__(self, action: Action, prior: float) -> None:
        self.action, self.prior = action, prior
        self.node: _Node | None = None


class _Range:
    """Least and greatest return seen."""

    def __init__(self) -> None:
        self.least, self.greatest = math.inf, -math.inf

    def add(self, value: float) -> None:
        self.least, self.greatest = min(self.least, value), max(self.greatest, value)

    def share(self, value: float) -> float:
        if self.greatest <= self.least:
            return 0.5
        return (value - self.least) / (self.greatest - self.least)


def mcts(
    env: Environment[Any],
    state: State[Any],
    propose: Proposer,
    *,
    budget: Budget,
    value: Value | None = None,
    rollout: Policy | None = None,
    rollout_depth: int = 20,
    exploration: float = 1.25,
    discount: float = 1.0,
    max_depth: int | None = None,
    seed: int = 0,
) -> SearchResult:
    """Grow a tree from `state` until the budget is spent.

    Args:
        env: any environment.
        state: where the search begins.
        propose: the actions of a state, with priors if they have some.
        budget: bounds; at least one. It is spent to the end unless the whole tree is known before.
        value: judges a new leaf.
        rollout: or else a policy that plays on from a new leaf; its rewards judge it. With neither, only rewards
            inside the tree count.
        rollout_depth: actions of a rollout at most.
        exploration: the c of PUCT, not negative.
        discount: of a reward one step later, in (0, 1].
        max_depth: actions from `state` at most; None: no bound.
        seed: of the rollouts.

    Returns:
        The best trajectory seen (rollouts included) and the statistics of the actions of `state`. To act once and
        search again, take ``result.trajectory.actions[0]`` where steps are deterministic, else the action most
        visited, ``result.root[0].action``.

    Raises:
        EpisodeOver: `state` is terminal.
        InvalidOption: an argument outside its range, naming it.
    """
    check_positive(rollout_depth=rollout_depth, max_depth=max_depth)
    if not budget.is_bounded:
        raise InvalidOption("budget", budget, "must bound steps or seconds")
    if not 0 < discount <= 1:
        raise InvalidOption("discount", discount, "must be above 0 and at most 1")
    if not exploration >= 0:
        raise InvalidOption("exploration", exploration, "must not be negative")
    if state.is_terminal:
        raise EpisodeOver(f"{env.spec.id}: nothing can be searched from a terminal state")
    spender = Spender(env, budget)
    rng = random.Random(seed)
    root, seen = _Node(state), _Range()
    best = Trajectory(state)
    best_score = score(best, value)
    idle = 0  # descents in a row that took no step
    while not root.known:
        before = spender.steps
        path = _descend(root, propose, spender, seen, exploration, discount, max_depth, idle >= _PATIENCE)
        if path is None:
            break
        leaf = path[-1]
        trajectory = _trajectory(state, path)
        played = trajectory
        if leaf.visits == 0 and not leaf.state.is_terminal and value is None and rollout is not None:
            played = play(spender, trajectory, rollout, rng, rollout_depth)
        ahead = 0.0
        for transition in reversed(played.transitions[len(trajectory) :]):
            ahead = transition.rewards.total + discount * ahead
        if value is not None and not leaf.state.is_terminal:
            ahead = float(value(leaf.state))
        _back_up(path, ahead, discount, seen)
        reached = score(played, value)
        if reached > best_score or (reached == best_score and 0 < len(played) < len(best)):
            best, best_score = played, reached
        idle = 0 if spender.steps > before else idle + 1
    tried = [edge.node for edge in root.children or () if edge.node is not None]
    statistics = [
        ActionStatistics(n.action, n.visits, n.reward + discount * n.total / n.visits)
        for n in tried
        if n.action is not None and n.visits
    ]
    statistics.sort(key=lambda s: (-s.visits, -s.mean_return))
    return SearchResult(
        best, best_score, spender.steps, spender.seconds, spender.exhausted, root=tuple(statistics)
    )


def _descend(
    root: _Node,
    propose: Proposer,
    spender: Spender,
    seen: _Range,
    exploration: float,
    discount: float,
    max_depth: int | None,
    into_the_unknown: bool,
) -> list[_Node] | None:
    """From the root to a new node, to an end, or to the greatest depth; None when the budget is spent."""
    path = [root]
    while True:
        node = path[-1]
        if node.state.is_terminal or (max_depth is not None and len(path) > max_depth):
            _learn(path)
            return path
        if node.children is None:
            node.children = [_Edge(action, prior) for action, prior in proposals(propose, node.state)]
        if not node.children:
            _learn(path)
            return path
        edges = [e for e in node.children if not (into_the_unknown and e.node is not None and e.node.known)]
        edge = max(edges, key=lambda e: _promise(node, e, seen, exploration, discount))
        if edge.node is None:
            taken = spender.step(node.state, edge.action)
            if taken is None:
                return None
            edge.node = _Node(taken.next_state, edge.action, taken)
            path.append(edge.node)
            if taken.done:
                _learn(path)
            return path
        path.append(edge.node)


def _learn(path: list[_Node]) -> None:
    """Nothing is left to try below the last node; nor, perhaps, below those before it."""
    path[-1].known = True
    for node in reversed(path[:-1]):
        node.known = all(edge.node is not None and edge.node.known for edge in node.children or ())
        if not node.known:
            return


def _promise(node: _Node, edge: _Edge, seen: _Range, exploration: float, discount: float) -> float:
    child = edge.node
    visits = 0 if child is None else child.visits
    # an action not tried yet is thought as good as its state
    expected = node.total / node.visits if node.visits else 0.0
    if child is not None and child.visits:
        expected = child.reward + discount * child.total / child.visits
    return seen.share(expected) + exploration * edge.prior * math.sqrt(max(1, node.visits)) / (1 + visits)


def _back_up(path: list[_Node], ahead: float, discount: float, seen: _Range) -> None:
    for node in reversed(path):
        node.visits += 1
        node.total += ahead
        seen.add(node.reward + discount * ahead)
        ahead = node.reward + discount * ahead


def _trajectory(state: State[Any], path: list[_Node]) -> Trajectory:
    trajectory = Trajectory(state)
    for node in path[1:]:
        if node.action is not None and node.result is not None:
            trajectory = trajectory.append(node.action, node.result)
    return trajectory
