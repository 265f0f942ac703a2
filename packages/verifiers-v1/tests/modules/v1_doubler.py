"""A taskset of sums: one reply each."""

import verifiers.v1 as vf

__all__ = ["Doubler"]


class Sum(vf.TaskData):
    answer: str


class DoublerConfig(vf.TasksetConfig):
    num_tasks: int = 20
    failing: bool = False


class SumTask(vf.Task[Sum]):
    @vf.reward(weight=2.0)
    async def exact(self, trace) -> float:
        return float(trace.last_reply.removeprefix("<answer>").removesuffix("</answer>") == self.data.answer)

    @vf.reward(weight=-0.5)
    async def length(self, trace) -> float:
        return min(len(trace.last_reply), 100) / 100

    @vf.metric
    async def turns(self, trace) -> float:
        return float(trace.num_turns)


class FailingTask(SumTask):
    @vf.reward
    async def broken(self, trace) -> float:
        raise LookupError("no such table")


class Doubler(vf.Taskset[SumTask, DoublerConfig]):
    def load(self):
        cls = FailingTask if self.config.failing else SumTask
        for i in range(self.config.num_tasks):
            data = Sum(prompt=f"What is {i}+{i} ?", system_prompt="Be short.", answer=str(2 * i))
            yield cls(data, self.config.task)
