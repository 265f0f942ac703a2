"""Sums of one digit: a taskset as people publish them for Verifiers v1."""

import verifiers.v1 as vf

__all__ = ["Sums"]


class Sum(vf.TaskData):
    """A row: the prompt and what it adds up to."""

    answer: str


class SumTask(vf.Task[Sum]):
    """One reply, right if the sum is in it."""

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        """1.0 if the reply holds the sum."""
        return float(self.data.answer in trace.last_reply.split())


class Sums(vf.Taskset[SumTask, vf.TasksetConfig]):
    """All pairs of 1 to 3."""

    def load(self):
        """The tasks, in order."""
        for a in range(1, 4):
            for b in range(1, 4):
                data = Sum(prompt=f"What is {a} + {b}? Answer with the number alone.", answer=str(a + b))
                yield SumTask(data, self.config.task)
