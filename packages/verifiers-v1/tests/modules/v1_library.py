"""A taskset with one tool server for all its tasks."""

import verifiers.v1 as vf

__all__ = ["Library"]


class Title(vf.TaskData):
    answer: str


class Catalogue(vf.Toolset[vf.SharedToolsetConfig, vf.State]):
    async def setup(self) -> None:
        self.titles = {"moby": "Moby-Dick", "emma": "Emma"}

    @vf.tool
    async def find(self, word: str) -> str:
        """Find a title."""
        return self.titles[word]


class TitleTask(vf.Task[Title]):
    @vf.reward
    async def named(self, trace) -> float:
        return float(self.data.answer in trace.last_reply)


class Library(vf.Taskset[TitleTask, vf.TasksetConfig]):
    @classmethod
    def toolsets(cls, config):
        return [Catalogue(vf.SharedToolsetConfig())]

    def load(self):
        for answer in ("Moby-Dick", "Emma"):
            yield TitleTask(Title(prompt="Which book?", answer=answer), self.config.task)


if __name__ == "__main__":
    Catalogue.run()
