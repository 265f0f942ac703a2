"""A tool environment: arithmetic of ReasoningGym, solved with a calculator and a tool that submits the answer.

Run it with the small model that is inside a package, its calls forced by a grammar::

    python examples/tools_calculator.py
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, TypedDict

from pydantic import Field

import llenvs
from llenvs import Action, Environment, EnvironmentSpec, RewardFunction, Signal, State
from llenvs.core import ToolEnvironment
from llenvs.core.tool_environment import TaskStart, Turn
from llenvs.core.tools import Tool, ToolResult
from llenvs.core.tools.errors import ToolFailed

Number = int | float

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
MAX_BITS = 4096  # of a result


# patterns as plain as these also end up in the grammar that forces a call
Expression = Annotated[str, Field(pattern=r"^[0-9+*/%(). -]{1,100}$")]
Answer = Annotated[str, Field(pattern=r"^[0-9./-]{1,20}$")]

SYSTEM_PROMPT = """\
Solve the problem with the tools. For example, for "2 + 3 =" first call
<tool_call>
{"name": "calculate", "arguments": {"expression": "2 + 3"}}
</tool_call>
and when its result is 5
<tool_call>
{"name": "submit_answer", "arguments": {"answer": "5"}}
</tool_call>"""


def calculate(expression: Expression) -> Number:
    """Compute an arithmetic expression exactly.

    Args:
        expression: Numbers, + - * / // % ** and parentheses, e.g. "(3 + 4) * 2".
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolFailed(f"{expression!r} is no arithmetic expression") from None
    return _value(tree.body)


def _value(node: ast.expr) -> Number:
    """The value of a syntax tree. Only numbers and `OPERATORS` are known; nothing is executed."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        number: Number = node.value  # type: ignore[assignment]
        return number
    if isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
        return SIGNS[type(node.op)](_value(node.operand))  # type: ignore[no-any-return]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return _combined(node.op, _value(node.left), _value(node.right))
    raise ToolFailed(f"{ast.unparse(node)!r} is not arithmetic")


def _combined(op: ast.operator, left: Number, right: Number) -> Number:
    if isinstance(op, ast.Pow) and abs(left) > 1 and abs(right) * max(1, int(abs(left)).bit_length()) > MAX_BITS:
        raise ToolFailed("the result would be too large")
    try:
        result = OPERATORS[type(op)](left, right)
    except (ArithmeticError, ValueError) as error:
        raise ToolFailed(str(error)) from None
    if isinstance(result, complex) or (isinstance(result, int) and result.bit_length() > MAX_BITS):
        raise ToolFailed("the result is no real number of reasonable size")
    return result  # type: ignore[no-any-return]


class Hidden(TypedDict):
    """Hidden state: the state of the task's own environment, and the answer once it is submitted."""

    task: State[Any]
    submitted: str | None


def submit_answer(hidden: Hidden, answer: Answer) -> tuple[str, Hidden]:
    """Submit the final answer. This ends the task.

    Args:
        answer: The number alone, e.g. "42".
    """
    hidden["submitted"] = answer
    return "Submitted.", hidden


class CalculatorEnvironment(ToolEnvironment[Hidden]):
    """Tasks of another environment, answered through `submit_answer`, with `calculate` on the way.

    The signals are the other environment's own, given with the last step.
    """

    def __init__(
        self, tasks: Environment[Any], *, max_steps: int = 8, reward_functions: Iterable[RewardFunction] = ()
    ) -> None:
        spec = EnvironmentSpec(
            f"calculator_{tasks.spec.name}",
            "examples",
            max_steps=max_steps,
            is_multi_turn=True,
            success_signal=tasks.spec.success_signal,
            success_threshold=tasks.spec.success_threshold,
            description=f"{tasks.spec.name} with a calculator",
        )
        tools = [calculate, Tool.from_callable(submit_answer, stateful=True, terminal=True)]
        super().__init__(spec, tools, reward_functions=reward_functions)
        self._tasks = tasks

    @property
    def num_tasks(self) -> int:
        """Those of the other environment."""
        return len(self._tasks)

    def _begin(self, task_index: int, seed: int, options: Mapping[str, Any]) -> TaskStart:
        task, _ = self._tasks.reset(seed=seed, options={"task_index": task_index})
        return TaskStart(task.observation.prompt, Hidden(task=task, submitted=None))

    def _react(self, action: Action, results: tuple[ToolResult, ...], turn: Turn) -> Turn:
        if results and results[-1].ok and results[-1].name == "calculate":
            words = f"The result is {results[-1].content}. If that is the final answer, call submit_answer."
            return replace(turn, prompt=words)
        return turn

    def _signals(self, state: State[Hidden], action: Action, next_state: State[Hidden]) -> Iterable[Signal]:
        if not next_state.is_terminal:
            return ()
        submitted = next_state.hidden["submitted"]
        answer = Action("" if submitted is None else f"<answer>{submitted}</answer>")
        return self._tasks.step(next_state.hidden["task"], answer).rewards

    def close(self) -> None:
        """Close the other environment too."""
        super().close()
        self._tasks.close()


def main() -> None:
    """Evaluate the small model on four tasks and show what it did."""
    from llenvs.evaluation import run_evaluation
    from llenvs.evaluation.conversation import Conversation
    from llenvs.evaluation.rollout import Rollout
    from llenvs.inference import PromptedToolsBackend, SamplingParams
    from llenvs.inference.backends import LlamaCppBackend

    def show(rollout: Rollout) -> None:
        if rollout.trajectory is not None:
            print(f"\ntask {rollout.task_index}: success {rollout.success}, signals {dict(rollout.signals)}")
            for message in Conversation.of(rollout.trajectory).chat:
                calls = ", ".join(f"{call.name}({dict(call.arguments)})" for call in message.tool_calls)
                print(f"  {message.role}: {message.content}{calls}")

    tasks = llenvs.make("reasoning_gym/chain_sum", size=4, seed=0, max_terms=3, max_digits=2)
    # the model's own template knows no tools: they are put into the prompt, and a grammar forces the calls
    model = PromptedToolsBackend(LlamaCppBackend(), "hermes", tool_choice="required")
    with CalculatorEnvironment(tasks, max_steps=4) as env, model:
        result = run_evaluation(
            env,
            model,
            sampling_params=SamplingParams(temperature=0.0, max_tokens=96),
            system_prompt=SYSTEM_PROMPT,
            log=(),
            on_trajectory=show,
        )
    print(f"\nsuccess {result.success_rate}, errors {result.num_errors}")


if __name__ == "__main__":
    main()
