"""An infinite taskset."""

import itertools

import verifiers.v1 as vf

__all__ = ["Endless"]


class Task(vf.Task[vf.TaskData]):
    @vf.reward
    async def right(self, trace) -> float:
        return float(trace.last_reply == str(self.data.idx))


class Endless(vf.Taskset[Task, vf.TasksetConfig]):
    INFINITE = True

    def load(self):
        for i in itertools.count():
            yield Task(vf.TaskData(prompt=f"Number {i}?"), self.config.task)
