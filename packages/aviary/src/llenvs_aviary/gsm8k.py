"""GSM8K with a calculator: the upstream's data set and environment, with bounds for the calculator.

Imports the upstream.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs_aviary.copying import copied_with_schemas_shared
from llenvs_aviary.options import GSM8KOptions
from llenvs_aviary.tasks import TaskSource, selected
from llenvs_aviary.upstream import load, quiet_datasets, versions

_upstream: Any = load("aviary.envs.gsm8k.env")

_MOST_BITS = 1 << 20
"""Of a number on the way to a result; a power of so many is computed in milliseconds."""
_MOST_DIGITS = 4300
"""Of a result: more make Python, and with it the upstream, fail when it turns the number into text."""
_LONGEST = 10_000
"""Characters of an expression."""


class TooLarge(OverflowError):
    """An expression whose result, or a number on the way to it, is too large to be computed."""


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        _check(abs(base).bit_length() * max(exponent, 0))
    return operator.pow(base, exponent)


def _product(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _check(left.bit_length() + right.bit_length())
    return operator.mul(left, right)


def _rounded(number: Any, digits: Any = None) -> Any:
    if isinstance(number, int) and isinstance(digits, int) and digits < 0:
        _check(-4 * digits)  # it computes ten to that power
    return round(number, digits)


def _check(bits: int) -> None:
    if bits > _MOST_BITS:
        raise TooLarge(f"a number of about {bits} bits is too large")


class BoundedEvaluator(_upstream.SafeMathEvaluator):
    """The upstream's evaluator, which refuses what would keep the process busy for seconds or hours."""

    SAFE_OPERATORS: ClassVar[dict[type, Callable[..., Any]]] = {
        **_upstream.SafeMathEvaluator.SAFE_OPERATORS,
        ast.Pow: _power,
        ast.Mult: _product,
    }
    SAFE_FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        **_upstream.SafeMathEvaluator.SAFE_FUNCTIONS,
        "round": _rounded,
    }

    @classmethod
    def check(cls, expr: str) -> None:
        """Evaluate `expr` within the bounds.

        Raises:
            TooLarge: it does not stay in them. What else is wrong with it is for the upstream to say.
        """
        if len(expr) > _LONGEST:
            raise TooLarge(f"an expression of {len(expr)} characters is too long")
        try:
            result = cls.evaluate(expr)
        except TooLarge:
            raise
        except Exception:  # noqa: BLE001 - the upstream meets the same, at once, and has an answer
            return
        if isinstance(result, int) and result.bit_length() > _MOST_DIGITS * 3.33:
            raise TooLarge(f"a result of more than {_MOST_DIGITS} digits is too large")


class BoundedCalculatorEnv(_upstream.CalculatorEnv):
    """The upstream's environment; it also notes what was submitted.

    Its tools are async here, since the upstream gives plain functions to other threads, which takes longer than
    they do.

    Attributes:
        submitted: the answer as text, None before it.
        correct: whether the upstream took it for right.
    """

    submitted: str | None = None
    correct: bool = False

    @functools.wraps(_upstream.CalculatorEnv.calculator)
    async def calculator(self, expr: str) -> Any:
        """See the upstream."""
        if isinstance(expr, str):
            try:
                BoundedEvaluator.check(expr.strip())
            except TooLarge as error:  # in the upstream's words for other failures
                text = f"Error using calculator: {error!r}."
                return text, self.config.tool_failure_reward, self.config.done_on_failure
        return super().calculator(expr)

    @functools.wraps(_upstream.CalculatorEnv.submit_answer)
    async def submit_answer(self, answer: str) -> Any:
        """See the upstream; what is neither text nor number fails like a text that is no number."""
        try:
            correct, reward, done = super().submit_answer(answer)
        except (TypeError, OverflowError):
            correct, reward, done = False, self.config.tool_failure_reward, True
        self.submitted, self.correct = str(answer), self.correct or bool(correct)
        return correct, reward, done


class GSM8KTasks(TaskSource):
    """The problems of one split."""

    success_signal = "correct"
    branching = "copy"  # its tools are methods, its state is None
    waits = False
    failure_prefixes = (*TaskSource.failure_prefixes, "Error using calculator: ")

    def __init__(self, options: GSM8KOptions) -> None:
        source = _upstream.GSM8K_PUBLIC_SOURCE
        if options.data_dir is not None:
            source = _folder(options.data_dir, options.split)
        config = {
            name: getattr(options, name)
            for name in (
                "correct_reward",
                "incorrect_reward",
                "tool_failure_reward",
                "tool_success_reward",
                "rel_tol",
                "done_on_failure",
            )
        }
        try:
            with quiet_datasets():
                data = _upstream.GSM8kDataset(options.split, config=config, hf_source=source)
        except Exception as error:
            where = (
                "the hub of Hugging Face (name local files with data_dir)" if source != options.data_dir else ""
            )
            raise UpstreamFailed("aviary/gsm8k", f"loading {where or source}", error) from error
        self._config = data.config
        rows = data.src_df
        self._rows = list(
            zip(
                map(str, rows["problem_id"]),
                map(str, rows["question"]),
                map(float, rows["answer_num"]),
                strict=True,
            )
        )
        self._order = selected(len(self._rows), options.size, options.seed)
        self._split, self._source = options.split, "openai/gsm8k" if options.data_dir is None else "files"

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return {**versions("fhaviary", "aviary-gsm8k"), "split": self._split, "source": self._source}

    def __len__(self) -> int:
        return len(self._order)

    def make(self, index: int) -> Any:
        """See `TaskSource`."""
        problem_id, question, answer = self._rows[self._order[index]]
        return BoundedCalculatorEnv(problem_id, question, answer, self._config)

    def copied(self, env: Any) -> Any:
        """See `TaskSource`."""
        return copied_with_schemas_shared(env)

    def size_of(self, env: Any) -> int:
        """See `TaskSource`; seen with `deep_size`, schemas left out."""
        return 4096

    def truth(self, env: Any) -> Mapping[str, Any]:
        """See `TaskSource`."""
        return {"answer": env.answer, "submitted": env.submitted}

    def outcome(self, env: Any) -> Mapping[str, float]:
        """See `TaskSource`."""
        return {"correct": float(env.correct), "submitted": float(env.submitted is not None)}


def _folder(data_dir: str, split: str) -> str:
    folder = Path(data_dir).expanduser()
    name = "test.jsonl" if split == "test" else "train.jsonl"
    if not (folder / name).is_file():
        raise InvalidOption("data_dir", data_dir, f"holds no {name}", valid=f"a folder with {name}")
    return str(folder)
