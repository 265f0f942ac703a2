"""One episode with a person as the policy."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from llenvs.core.action import Action
from llenvs.core.environment import Environment, StepResult
from llenvs.core.errors import InvalidOption, UnknownName
from llenvs.core.trajectory import Trajectory
from llenvs_cli.playing.answers import END_OF_ANSWER, AnswerReader
from llenvs_cli.playing.commands import COMMANDS, LITERAL_HINT, Answer, parse_entry, parse_tool_call
from llenvs_cli.terminal import visible
from llenvs_cli.views.chat import show_observation, show_tools
from llenvs_cli.views.rewards import number, show_rewards


class Session:
    """Shows observations of `env`, takes answers from `reader`, shows what they bring, until the episode ends."""

    def __init__(self, env: Environment[Any], reader: AnswerReader, out: Console, *, extractor: str = "") -> None:
        self._env = env
        self._reader = reader
        self._out = out
        self._extractor = extractor
        self._calls = 0

    def play(self, *, task_index: int | None = None, seed: int | None = None) -> Trajectory:
        """One episode; it comes back unfinished when the person leaves it (Ctrl-D, Ctrl-C, ``/quit``).

        Raises:
            KeyboardInterrupt: after the farewell.
            LLEnvsError: the environment failed, or has no such task.
        """
        options = {} if task_index is None else {"task_index": task_index}
        state, info = self._env.reset(seed=seed, options=options)
        trajectory = Trajectory(state)
        self._welcome(info)
        self._show(trajectory)
        while not trajectory.done:
            try:
                after = self._turn(trajectory)
            except EOFError:
                after = None
                self._out.print()
            except KeyboardInterrupt:
                self._out.print()
                self._farewell(trajectory)
                raise
            if after is None:
                self._farewell(trajectory)
                return trajectory
            trajectory = after
        self._conclude(trajectory)
        return trajectory

    def _turn(self, trajectory: Trajectory) -> Trajectory | None:
        """The trajectory after one entry of the person; None when the person leaves."""
        try:
            entry = parse_entry(self._reader.read())
            if isinstance(entry, Answer):
                return self._answer(trajectory, entry.text)
            if entry.name == "quit":
                return None
            if entry.name == "call":
                return self._step(trajectory, self._tool_call(trajectory, entry.rest))
        except (UnknownName, InvalidOption) as error:
            self._note(str(error), style="red")
            return trajectory
        if entry.name == "back":
            return self._back(trajectory)
        if entry.name == "show":
            self._show(trajectory)
        elif entry.name == "tools":
            self._show_all_tools(trajectory)
        else:
            self._help()
        return trajectory

    def _answer(self, trajectory: Trajectory, text: str) -> Trajectory:
        if not text and not self._reader.multiline:
            self._note("Nothing sent. Type an answer, or /help.")
            return trajectory
        return self._step(trajectory, Action(text=text))

    def _tool_call(self, trajectory: Trajectory, text: str) -> Action:
        tools = trajectory.final_state.observation.available_tools
        if not tools:
            raise InvalidOption("/call", text, "there are no tools here")
        name, arguments = parse_tool_call(text, tools)
        self._calls += 1
        return Action.from_tool_call(name, arguments, id=f"call_{self._calls}")

    def _step(self, trajectory: Trajectory, action: Action) -> Trajectory:
        result = self._env.step(trajectory.final_state, action)
        after = trajectory.append(action, result)
        self._show_understood(action, result)
        self._show(after)
        show_rewards(self._out, result.rewards)
        return after

    def _back(self, trajectory: Trajectory) -> Trajectory:
        if not len(trajectory):
            self._note("This is the first state.")
            return trajectory
        before = trajectory.branch(len(trajectory) - 1)
        self._show(before)
        return before

    def _welcome(self, info: dict[str, Any]) -> None:
        spec, tasks = self._env.spec, len(self._env)
        self._out.print(
            Text.assemble(
                (visible(spec.id), "bold"), f"  task {info.get('task_index')} of {tasks}, seed {info.get('seed')}"
            )
        )
        self._note("You answer in the model's place. /help lists what else you can type.")
        if self._reader.multiline:
            self._note(f"An answer may have several lines; a line with a single {END_OF_ANSWER} sends it.")
        if self._extractor:
            self._note(f"Your answer is read by {self._extractor}")

    def _show(self, trajectory: Trajectory) -> None:
        observation = trajectory.final_state.observation
        first = not len(trajectory)
        show_observation(self._out, observation, first=first)
        before = None if first else trajectory.transitions[-1].state
        offered = () if before is None else before.observation.available_tools
        if observation.available_tools and observation.available_tools != offered:
            self._note("Tools:")
            show_tools(self._out, observation.available_tools)

    def _show_all_tools(self, trajectory: Trajectory) -> None:
        tools = trajectory.final_state.observation.available_tools
        if tools:
            show_tools(self._out, tools, full=True)
        else:
            self._note("There are no tools here.")

    def _show_understood(self, action: Action, result: StepResult) -> None:
        understood = result.resolved_action
        if understood is None:
            if self._extractor:
                self._note("No answer was found in what you wrote.", style="yellow")
        elif understood.text != action.text:
            self._note(f"Understood as: {understood.text}")

    def _conclude(self, trajectory: Trajectory) -> None:
        last = trajectory.transitions[-1].result
        how = "cut off by the step limit" if last.truncated else "over"
        steps = len(trajectory)
        self._out.print()
        line = Text(f"Episode {how} after {steps} step{'' if steps == 1 else 's'}", style="bold")
        if steps > 1:
            line.append(f", reward in all {number(trajectory.total_reward)}")
        success = self._env.spec.is_success(last.rewards)
        if success is not None:
            line.append(": success" if success else ": no success", style="green" if success else "red")
        self._out.print(line)

    def _farewell(self, trajectory: Trajectory) -> None:
        steps = len(trajectory)
        self._note(
            f"Left after {steps} step{'' if steps == 1 else 's'}, reward so far {number(trajectory.total_reward)}."
        )

    def _help(self) -> None:
        for line in COMMANDS.values():
            self._out.print(f"  {line}")
        self._note(f"Anything else is an answer; {LITERAL_HINT}.")

    def _note(self, text: str, *, style: str = "dim") -> None:
        self._out.print(Text(visible(text), style=style), soft_wrap=True)
