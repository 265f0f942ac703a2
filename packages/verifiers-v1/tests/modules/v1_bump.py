"""A taskset with a tool server whose tool changes the state of the rollout."""

import verifiers.v1 as vf

__all__ = ["Bumps"]


class Total(vf.State):
    total: int = 0


class Goal(vf.TaskData):
    goal: int


class Bumper(vf.Toolset[vf.ToolsetConfig, Total]):
    TOOL_PREFIX = None

    @vf.tool
    async def bump(self, n: int) -> str:
        """Add n to the total."""
        self.state.total += n
        return str(self.state.total)


class BumpTask(vf.Task[Goal, Total]):
    @classmethod
    def toolsets(cls, config):
        return [Bumper(vf.ToolsetConfig())]

    @vf.reward
    async def reached(self, trace) -> float:
        return float(trace.state.total == self.data.goal)


class Bumps(vf.Taskset[BumpTask, vf.TasksetConfig]):
    def load(self):
        for goal in (5, 8):
            yield BumpTask(Goal(prompt=f"Bump the total to {goal}.", goal=goal), self.config.task)


if __name__ == "__main__":
    Bumper.run()
