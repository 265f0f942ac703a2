"""Tasksets that are refused, fail, score strangely, or need more than a reply."""

import asyncio
import time

import verifiers.v1 as vf
from verifiers.v1.utils.score import verify_boxed_math_answer

__all__ = ["Strange"]


class Row(vf.TaskData):
    kind: str


class StrangeConfig(vf.TasksetConfig):
    kind: str = "plain"


class Task(vf.Task[Row]):
    @vf.reward
    async def nonempty(self, trace) -> float:
        return float(bool(trace.last_reply))


class Keyed(Task):
    @vf.reward(weight=0.5)
    async def parts(self, trace) -> dict[str, float]:
        text = trace.last_reply
        return {"has_digit": float(any(c.isdigit() for c in text)), "short": float(len(text) <= 4)}


class Mathematics(Task):
    @vf.reward
    async def equal(self, trace) -> float:
        return verify_boxed_math_answer(trace.last_reply, "1/2")


class WithRuntime(Task):
    @vf.reward
    async def wrote(self, trace, runtime) -> float:
        return float((await runtime.run(["sh", "-c", "echo yes"], {})).stdout == "yes\n")


class Prepared(Task):
    async def setup(self, trace, runtime) -> None:
        await runtime.write("prepared", b"here")

    async def finalize(self, trace, runtime) -> None:
        trace.info["found"] = (await runtime.read("prepared")).decode()

    @vf.metric
    async def found(self, trace) -> float:
        return float(trace.info["found"] == "here")


class Stopped(Task):
    @vf.stop
    async def said_stop(self, trace: vf.Trace) -> bool:
        return "stop" in trace.last_reply


class Container(Task):
    NEEDS_CONTAINER = True


class BadSetup(Task):
    async def setup(self, trace, runtime) -> None:
        raise LookupError("no such box")


class Slow(Task):
    async def setup(self, trace, runtime) -> None:
        await asyncio.sleep(30)


class Failing(Task):
    @vf.reward(weight=3.0)
    async def late(self, trace) -> float:
        await asyncio.sleep(0.05)
        return 1.0

    @vf.reward
    async def broken(self, trace) -> float:
        raise LookupError("no such table")

    @vf.reward
    async def words(self, trace) -> float:
        return "many"

    @vf.metric
    async def seconds(self, trace) -> float:
        raise ValueError(time.gmtime(0).tm_year)


class Lone(Task):
    """Its tools stand in a module that cannot be run."""

    @classmethod
    def toolsets(cls, config):
        return [Tools(vf.ToolsetConfig())]


class Tools(vf.Toolset[vf.ToolsetConfig, vf.State]):
    @vf.tool
    async def look(self) -> str:
        """Look."""
        return "nothing"


KINDS = {
    "plain": Task, "keyed": Keyed, "mathematics": Mathematics, "runtime": WithRuntime, "prepared": Prepared,
    "stopped": Stopped, "container": Container, "bad_setup": BadSetup, "slow": Slow, "failing": Failing,
    "lone": Lone,
}  # fmt: skip


class Strange(vf.Taskset[Task, StrangeConfig]):
    def load(self):
        if self.config.kind == "raises":
            raise LookupError("no data here")
        cls = KINDS[self.config.kind]
        for i in range(3):
            yield cls(Row(prompt=f"Say something, {i}.", kind=self.config.kind), self.config.task)
