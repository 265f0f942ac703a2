"""Branch from any state: several answers to one task, and a state that travels as JSON."""

import llenvs
from llenvs import Action, State, Trajectory

env = llenvs.make("reasoning_gym/countdown", seed=42)
state, _ = env.reset(options={"task_index": 0})
print(state.observation.prompt)

for answer in ["139", "15 - 4 + 95 + 36 - 32 + 29"]:
    branch = Trajectory(state).step(env, Action(text=f"<answer>{answer}</answer>"))
    print(f"{answer!r:32} reward {branch.total_reward}")

copy = State.from_json(state.to_json())
assert copy == state
