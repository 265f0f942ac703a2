"""A multi-turn module: guess a number in three tries; with `keeps`, the tries are kept outside of the state."""

import verifiers as vf
from datasets import Dataset


class Guess(vf.MultiTurnEnv):
    def __init__(self, keeps=False, **kwargs):
        super().__init__(**kwargs)
        self.keeps, self.kept = keeps, {}

    async def setup_state(self, state):
        if self.keeps:
            self.kept[state["trajectory_id"]] = 3
        state["left"], state["won"] = 3, False
        return state

    async def env_response(self, messages, state, **kwargs):
        text = messages[-1]["content"].strip()
        if not text.lstrip("-").isdigit():
            return [vf.UserMessage(content="number please")]
        if self.keeps:
            self.kept[state["trajectory_id"]] -= 1
            state["left"] = self.kept[state["trajectory_id"]]
        else:
            state["left"] -= 1
        guess, secret = int(text), int(state["answer"])
        if guess == secret:
            state["won"] = True
            state["final_env_response"] = [vf.UserMessage(content="yes")]
            return []
        if state["left"] == 0:
            state["final_env_response"] = [vf.UserMessage(content="out of tries")]
            return []
        return [{"role": "user", "content": "higher" if guess < secret else "lower"}]


def won(state):
    return float(state["won"])


def left(state):
    return float(state["left"])


def load_environment(secrets: tuple = (7, 3, 9), max_turns: int = -1, keeps: bool = False):
    rows = [{"question": "Guess a number from 1 to 9.", "answer": str(secret)} for secret in secrets]
    rubric = vf.Rubric([won, left], [1.0, 0.1])
    return Guess(keeps, dataset=Dataset.from_list(rows), rubric=rubric, max_turns=max_turns)
