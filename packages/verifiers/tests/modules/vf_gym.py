"""A GymEnv: walk to a cell; the environment object lives in the rollout's state."""

import random

import verifiers as vf


class Line:
    def __init__(self, length=6):
        self.length = length

    def reset(self, seed=0):
        self.goal = random.Random(seed).randrange(1, self.length)
        self.place = 0
        return f"goal {self.goal}, place 0", {}

    def step(self, action):
        self.place += {"right": 1, "left": -1}[action]
        done = self.place == self.goal
        return f"place {self.place}", 1.0 if done else -0.1, done, abs(self.place) > 20, {}


def load_environment(num_train: int = 3, num_eval: int = 50):
    return vf.GymEnv(
        env_cls=Line,
        action_parser=lambda text: {"r": "right", "l": "left"}[text.strip()[:1]],
        num_train_episodes=num_train,
        num_eval_episodes=num_eval,
        max_episode_steps=12,
        seed=5,
    )
