"""A module of tools alone, and one whose tools change the state of the rollout."""

import verifiers as vf
from datasets import Dataset

CALLED = []


def add(x: int, y: int) -> int:
    """Add two integers.

    Args:
        x: the first
        y: the second
    """
    CALLED.append((x, y))
    return x + y


async def div(a: float, b: float = 1.0) -> float:
    """Divide a by b."""
    return a / b


def put(item: str, basket: list) -> str:
    """Put an item into the basket."""
    basket.append(item)
    return ", ".join(basket)


def right(completion, answer):
    return float(answer in (completion[-1]["content"] or ""))


class Basket(vf.StatefulToolEnv):
    async def setup_state(self, state):
        state["basket"] = []
        return state

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        return {**tool_args, "basket": state["basket"]}


def filled(state, info):
    return len(set(state["basket"]) & set(info["wanted"])) / len(info["wanted"])


def load_environment(stateful: bool = False, strict: bool = False):
    if stateful:
        rows = [{"question": f"Fetch {a} and {b}.", "info": {"wanted": [a, b]}} for a, b in ("ab", "cd", "ef")]
        env = Basket(dataset=Dataset.from_list(rows), rubric=vf.Rubric([filled]), max_turns=6)
        env.add_tool(put, args_to_skip=["basket"])
        return env
    rows = [{"question": f"compute {i}+{i + 1} with the tool", "answer": str(2 * i + 1)} for i in range(20)]
    return vf.ToolEnv(
        tools=[add, div],
        max_turns=3,
        stop_errors=[ZeroDivisionError] if strict else None,
        dataset=Dataset.from_list(rows),
        rubric=vf.Rubric([right]),
    )
