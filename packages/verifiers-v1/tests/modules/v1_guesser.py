"""An environment of several turns: the environment plays the user."""

import verifiers.v1 as vf

__all__ = ["Guesser", "GuesserEnv"]


class Secret(vf.TaskData):
    secret: int


class GuessState(vf.State):
    won: bool = False


class GuessTask(vf.Task[Secret, GuessState]):
    @vf.reward
    async def won(self, trace) -> float:
        return float(trace.state.won)

    @vf.metric
    async def turns(self, trace) -> float:
        return float(trace.num_turns)


class SecretsConfig(vf.TasksetConfig):
    num_tasks: int = 2


class Guesser(vf.Taskset[GuessTask, SecretsConfig]):
    def load(self):
        for secret in ((7, 3, 5) * self.config.num_tasks)[: self.config.num_tasks]:
            yield GuessTask(Secret(prompt="guess 1..10", secret=secret), self.config.task)


class GuesserConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(max_turns=4)


class GuesserEnv(vf.Env[GuesserConfig]):
    async def run(self, task, agents):
        async with agents.player.interaction(task) as it:
            said = await it.turn()
            while not said.terminated:
                text = said.last_reply.strip()
                guess = int(text) if text.lstrip("-").isdigit() and len(text) < 9 else None
                if guess == task.data.secret:
                    it.trace.state.won = True
                    return
                hint = "number please" if guess is None else "higher" if guess < task.data.secret else "lower"
                said = await it.turn(hint)
