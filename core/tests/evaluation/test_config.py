from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from llenvs.core import Adapter, EnvironmentInfo, SingleTurnOptions, environment_registry
from llenvs.core.rewards import make_reward_functions
from llenvs.evaluation import (
    ConfigError,
    EvaluationConfig,
    RunFolderError,
    load_config,
    prepare_run,
    read_trajectories,
    run_config,
)
from llenvs.evaluation.yaml_source import parse_yaml
from llenvs.inference import SamplingParams

MISSION = """\
environments:
  - name: leg_counting
    adapter: reasoning_gym
    size: 100
    answer_extractor: tag_based
model:
  backend: openai
  model: gpt-4o
system_prompt: general_reasoning
output_dir: ./results
"""


class AdditionOptions(SingleTurnOptions):
    size: int = 10
    level: int = 1


@pytest.fixture(autouse=True)
def sums(addition: Any) -> Iterator[list[Any]]:
    """An adapter of the tests; gives the environments it made."""
    made: list[Any] = []

    class Sums(Adapter):
        name: ClassVar[str] = "sums"
        options = AdditionOptions

        def list_environments(self) -> list[EnvironmentInfo]:
            return [EnvironmentInfo("addition", "sums"), EnvironmentInfo("subtraction", "sums")]

        def create(self, name: str, options: Any) -> Any:
            make_reward_functions(options.extra_rewards)
            environment = addition(options.size, answer_extractor=options.answer_extractor)
            made.append(environment)
            return environment

    environment_registry.register(Sums())
    yield made
    environment_registry._registered.pop("sums")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(textwrap.dedent(text))
    return path


def problem(tmp_path: Path, text: str, **options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        prepare_run(load_config(write(tmp_path, text), **options)).close()
    return caught.value


# -- what works -------------------------------------------------------------------------------------------


def test_the_yaml_of_the_mission_is_read_as_written(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, MISSION))
    (environment,) = config.environments
    assert (environment.name, environment.adapter) == ("leg_counting", "reasoning_gym")
    assert environment.environment_options == {"size": 100, "answer_extractor": "tag_based"}
    assert (config.model.backend, config.model.model) == ("openai", "gpt-4o")
    assert (config.system_prompt, config.output_dir) == ("general_reasoning", Path("results"))
    assert (config.repeats, config.seed, config.log, config.num_tasks) == (1, 0, ("console",), None)


def test_a_configuration_runs(tmp_path: Path, sums: list[Any]) -> None:
    path = write(
        tmp_path,
        f"""\
        environments:
          - name: addition
            adapter: sums
            size: 4
            num_tasks: 3
          - {{name: sums/addition, label: more, task_indices: [1, 5], repeats: 2}}
        model: {{backend: scripted, script: "<answer>2</answer>", temperature: 0.5, sampling: {{max_tokens: 9}}}}
        system_prompt: general_reasoning
        num_tasks: 1   # an environment's own choice comes first
        seed: 3
        log: file
        output_dir: {tmp_path}/run
        """,
    )
    result = run_config(path)
    assert [each.closed for each in sums] == [1, 1]
    assert {label: (r.num_done, r.success_rate) for label, r in result.environments.items()} == {
        "test/addition": (3, 1 / 3),
        "more": (4, 1 / 2),
    }
    assert result.macro_success_rate == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert result.complete
    records = list(read_trajectories(tmp_path / "run"))
    assert len(records) == 7
    assert {r["environment"] for r in records} == {"test/addition", "more"}
    assert [r["task_index"] for r in result.environments["more"].trajectories()].count(5) == 2
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["num_done"], list(summary["environments"])) == (7, ["test/addition", "more"])
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["model"]["sampling"] == {"max_tokens": 9, "temperature": 0.5}
    assert config["environments"][0]["options"] == {"size": 4, "answer_extractor": "tag_based"}
    assert run_config(path).to_dict()["environments"]["more"]["num_done"] == 4


def test_short_forms_and_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, "environments: sums/addition\nmodel: {backend: scripted, script: a}\nnum_tasks: 5\n")
    config = load_config(path, overrides={"num_tasks": 2, "model.model": "m", "log": "console, file"})
    assert [each.name for each in config.environments] == ["sums/addition"]
    assert (config.num_tasks, config.log) == (2, ("console", "file"))
    with prepare_run(config) as prepared:
        (each,) = prepared.environments
        assert (each.label, list(each.task_indices), each.num_trajectories) == ("test/addition", [0, 1], 2)
        assert prepared.model == "m"
        assert prepared.backend is not None
        assert prepared.backend.model == "m"
    assert load_config(config.model_dump(exclude_unset=True)).model_dump() == config.model_dump()


def test_sampling_may_stand_beside_the_model(tmp_path: Path) -> None:
    path = write(tmp_path, "environments: sums/addition\nmodel: {backend: scripted, max_tokens: 5, stop: x}\n")
    with prepare_run(path, with_backend=False) as prepared:
        assert prepared.sampling == SamplingParams(max_tokens=5, stop=("x",))
        assert prepared.backend is None
        assert (prepared.model, prepared.backend_options) == ("", {})


def test_the_prompt_decides_how_answers_are_read_unless_told_otherwise(tmp_path: Path, sums: list[Any]) -> None:
    text = "environments: [{name: sums/addition%s}]\nmodel: {backend: scripted}\nsystem_prompt: math_boxed\n"
    with prepare_run(write(tmp_path, text % "")) as prepared:
        assert prepared.environments[0].environment.extractor.name == "boxed"  # type: ignore[attr-defined]
        assert prepared.notices == ()
    with prepare_run(write(tmp_path, text % ", answer_extractor: tag_based")) as prepared:
        assert prepared.environments[0].environment.extractor.name == "tag_based"  # type: ignore[attr-defined]
        (notice,) = prepared.notices
        assert "set answer_extractor to 'boxed'" in notice


SEGMENTED = """\
environments:
  - name: sums/addition
    num_tasks: 2
    segmentation:
      by: sentence
      max_segments: 8
      reward_functions: [{{type: format, pattern: '\\d', name: has_number, weight: 0.5}}]
  - {{name: sums/addition, label: lines, num_tasks: 1, segmentation: line}}
model: {{backend: scripted, script: "I add. It is 1.\\n<answer>1</answer>"}}
output_dir: {folder}
log: []
"""


def test_responses_by_segments(tmp_path: Path, sums: list[Any]) -> None:
    path = write(tmp_path, SEGMENTED.format(folder=tmp_path / "run"))
    result = run_config(path)
    assert [each.closed for each in sums] == [1, 1]
    by_sentence, by_line = result.environments.values()
    assert list(result.environments) == ["test/addition[sentence]", "lines"]
    assert (by_sentence.success_rate, by_line.success_rate) == (0.5, 1.0)
    assert by_sentence.signals["has_number"].mean == 2.0
    first, second, lines = sorted(
        read_trajectories(tmp_path / "run"), key=lambda r: (r["environment"] == "lines", r["task_index"])
    )
    said = ["I add.", " It is 1.\n", "<answer>1</answer>"]
    assert [turn["response"] for turn in first["turns"]] == [turn["response"] for turn in second["turns"]] == said
    assert [turn["reward"] for turn in first["turns"]] == [0.0, 0.5, 1.5]
    assert [turn["response"] for turn in lines["turns"]] == ["I add. It is 1.\n", "<answer>1</answer>"]
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["environments"][1]["segmentation"] == {"by": "line"}
    assert config["environments"][0]["spec"]["metadata"]["segmentation"]["max_segments"] == 8
    # what is done stays done, also when the short form is spelled out; another segmentation is another run
    text = path.read_text()
    assert run_config(write(tmp_path, text.replace("segmentation: line", "segmentation: {by: line}"))).complete
    for old, new in (
        ("by: sentence", "by: paragraph"),
        ("weight: 0.5", "weight: 0.25"),
        ("segmentation: line", "size: 10"),
    ):
        with pytest.raises(RunFolderError, match="environments"):
            run_config(write(tmp_path, text.replace(old, new)))


def test_limits_and_answer_formats_of_segmented_environments(tmp_path: Path) -> None:
    text = "environments: {name: sums/addition, answer_extractor: tag_based, segmentation: sentence}\n"
    text += "model: {backend: scripted, script: 'One. Two. Three.'}\n"
    text += "system_prompt: math_boxed\nmax_steps: 1\nlog: []\n"
    with prepare_run(write(tmp_path, text)) as prepared:
        (notice,) = prepared.notices
        assert notice.startswith("test/addition: ")
        assert "set answer_extractor to 'boxed'" in notice
        result = run_config(prepared)
    (figures,) = result.environments.values()
    assert (figures.num_done, figures.num_errors, figures.mean_reward) == (
        10,
        0,
        0.0,
    )  # one response, not one segment


def test_variables_of_the_process_and_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_NAME", "first")
    text = f"""\
        environments: sums/addition
        model: {{backend: scripted, script: "${{RUN_NAME}}"}}
        output_dir: {tmp_path}/${{RUN_NAME}}
        log: []
        system_prompt: "say ${{RUN_NAME}} if you must"
        """
    run_config(write(tmp_path, text))
    config = json.loads((tmp_path / "first" / "config.json").read_text())
    assert config["environments"][0]["prompt"]["messages"][0]["content"] == "say ${RUN_NAME} if you must"
    assert config["model"]["options"]["script"] == "first"
    monkeypatch.delenv("RUN_NAME")
    error = problem(tmp_path, text)
    assert (error.line, error.field) == (2, "model.script")
    assert "RUN_NAME is not set" in error.problem


def test_a_key_is_not_written_down() -> None:
    from llenvs.evaluation.resolved import without_secrets

    given = {"api_key": "sk-1", "max_tokens": 3, "headers": {"X": "y"}, "deep": [{"password": "p"}]}
    kept = {"api_key": "(hidden)", "max_tokens": 3, "headers": "(hidden)", "deep": [{"password": "(hidden)"}]}
    assert without_secrets(given) == kept


# -- what is refused --------------------------------------------------------------------------------------

HEAD = "environments:\n  - name: addition\n    adapter: sums\n"
SEGMENTED_HEAD = HEAD + "    segmentation:\n"
MODEL = "model:\n  backend: scripted\n"


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        (HEAD + "    siez: 3\n" + MODEL, 4, "environments[0].siez", "did you mean 'size'"),
        (HEAD + "    repeat: 3\n" + MODEL, 4, "environments[0].repeat", "did you mean 'repeats'"),
        (HEAD + "    size: big\n" + MODEL, 4, "environments[0].size", "valid integer"),
        (HEAD + "    options: {size: big}\n" + MODEL, 4, "environments[0].options.size", "valid integer"),
        (HEAD + "    size: 3\n    options: {size: 3}\n" + MODEL, 5, "environments[0].options.size", "given here"),
        (HEAD + "    options: {name: x}\n" + MODEL, 4, "environments[0].options.name", "is no option"),
        (HEAD + "    num_tasks: 0\n" + MODEL, 4, "environments[0].num_tasks", "greater than or equal to 1"),
        (HEAD + "    task_indices: [1, 99]\n" + MODEL, 4, "environments[0].task_indices", "valid: 0 to 9"),
        (HEAD + "    system_prompt: cod\n" + MODEL, 4, "environments[0].system_prompt", "did you mean 'code'"),
        (HEAD + "    answer_extractor: boxd\n" + MODEL, 4, "environments[0].answer_extractor", "boxed"),
        ("environments:\n  - name: additon\n    adapter: sums\n" + MODEL, 2, "environments[0].name", "addition"),
        ("environments:\n  - name: addition\n    adapter: sum\n" + MODEL, 3, "environments[0].adapter", "sums"),
        ("environments:\n  - adapter: sums\n" + MODEL, 2, "environments[0].name", "is missing"),
        ("environments: []\n" + MODEL, 1, "environments", "must be a list: [{name:"),
        (HEAD + "  - name: sums/addition\n" + MODEL, 4, "environments[1]", "give one of them a label"),
        (MODEL, 1, "environments", "is missing; it lists what to evaluate on"),
        (HEAD, 1, "model", "is missing; it names the backend"),
        (HEAD + "model: gpt-4o\n", 4, "model", "must be a mapping: {backend: openai,"),
        (HEAD + "model:\n  backend: scriptd\n", 5, "model.backend", "did you mean 'scripted'"),
        (HEAD + MODEL + "  temperatur: 1\n", 6, "model.temperatur", "did you mean 'temperature'"),
        (HEAD + MODEL + "  temperature: -1\n", 6, "model.temperature", "greater than or equal to 0"),
        (HEAD + MODEL + "  sampling:\n    top_p: 2\n", 7, "model.sampling.top_p", "less than or equal to 1"),
        (HEAD + MODEL + "  sampling:\n    topp: 1\n", 7, "model.sampling.topp", "did you mean 'top_p'"),
        (HEAD + MODEL + "  top_p: 1\n  sampling: {top_p: 1}\n", 6, "model.top_p", "given here and under"),
        (HEAD + MODEL + "  latency: soon\n", 6, "model.latency", "number of seconds"),
        (HEAD + MODEL + "  script: 3\n", 6, "model.script", "a list of texts"),
        (HEAD + MODEL + "  max_concurrency: 0\n", 6, "model.max_concurrency", "at least 1"),
        (HEAD + MODEL + "limit: 3\n", 6, "limit", "did you mean 'num_tasks'?"),
        (HEAD + MODEL + "sead: 3\n", 6, "sead", "did you mean 'seed'"),
        (HEAD + MODEL + "repeats: many\n", 6, "repeats", "valid integer"),
        (HEAD + MODEL + "log: consol\n", 6, "log", "did you mean 'console'?"),
        (HEAD + MODEL + "system_prompt: general_reasonin\n", 6, "system_prompt", "general_reasoning"),
        (HEAD + MODEL + "prompt: {templat: x}\n", 6, "prompt.templat", "template"),
        (HEAD + MODEL + "prompt:\n  system_prompt:\n    fragments: [helpfu]\n", 8,
         "prompt.system_prompt.fragments[0]", "did you mean 'helpful'"),
        (HEAD + "    extra_rewards: [length, formt]\n" + MODEL, 4, "environments[0].extra_rewards[1]", "'format'"),
        (HEAD + "    extra_rewards:\n    - {type: format, tga: x}\n" + MODEL, 5,
         "environments[0].extra_rewards[0].tga", "did you mean 'tag'"),
        (HEAD + "    segmentation: sentnce\n" + MODEL, 4,
         "environments[0].segmentation", "did you mean 'sentence'"),
        (HEAD + "    segmentation: true\n" + MODEL, 4, "environments[0].segmentation",
         "valid: sentence, line, paragraph, numbered_step, regex"),
        (SEGMENTED_HEAD + "      max_segments: 3\n" + MODEL, 4, "environments[0].segmentation",
         "needs the name of a segmenter under 'by'"),
        (SEGMENTED_HEAD + "      by: lin\n" + MODEL, 5, "environments[0].segmentation.by", "'line'"),
        (SEGMENTED_HEAD + "      by: line\n      split_line: true\n" + MODEL, 6,
         "environments[0].segmentation.split_line", "line has no such option"),
        (SEGMENTED_HEAD + "      by: sentence\n      split_line: true\n" + MODEL, 6,
         "environments[0].segmentation.split_line", "did you mean 'split_lines'?"),
        (SEGMENTED_HEAD + "      by: sentence\n      split_lines: 3\n" + MODEL, 6,
         "environments[0].segmentation.split_lines", "must be True or False, got 3"),
        (SEGMENTED_HEAD + "      by: line\n      max_segments: 0\n" + MODEL, 6,
         "environments[0].segmentation.max_segments", "must be a positive integer"),
        (SEGMENTED_HEAD + "      by: line\n      max_segment: 2\n" + MODEL, 6,
         "environments[0].segmentation.max_segment", "did you mean 'max_segments'?"),
        (SEGMENTED_HEAD + "      by: line\n      reward_functions:\n      - lengt\n" + MODEL, 7,
         "environments[0].segmentation.reward_functions[0]", "did you mean 'length'?"),
        (SEGMENTED_HEAD + "      by: line\n      reward_functions: 3\n" + MODEL, 6,
         "environments[0].segmentation.reward_functions", "must be a list of reward functions"),
        (SEGMENTED_HEAD + "      by: line\n      reward_functions:\n      - {type: format, tga: x}\n" + MODEL, 7,
         "environments[0].segmentation.reward_functions[0].tga", "did you mean 'tag'?"),
        (SEGMENTED_HEAD + "      by:\n      - line\n      - {by: regex, pattern: '('}\n" + MODEL, 7,
         "environments[0].segmentation.by[1].pattern", "is no regular expression"),
        (HEAD + "    segmentation: {by: regex}\n" + MODEL, 4,
         "environments[0].segmentation.pattern", "is needed for"),
        (HEAD + "    segmentation: {by: [line, sentence], boundary: some}\n" + MODEL, 4,
         "environments[0].segmentation.boundary", "valid: any, all, first"),
        (HEAD + "    segmentaton: line\n" + MODEL, 4,
         "environments[0].segmentaton", "did you mean 'segmentation'"),
        (HEAD + MODEL + "output_dir: ''\n", 6, "output_dir", "must be the path of a folder"),
        (HEAD + MODEL + "output_dir: 3\n", 6, "output_dir", "must be the path of a folder"),
        (HEAD + MODEL + "trajectory_timeout: .inf\n", 6, "trajectory_timeout", "finite"),
        (HEAD + MODEL + "log: {console: true}\n", 6, "log", "must be a list"),
        (HEAD + MODEL + "seed: 1 # \0\n", 6, "", "not valid YAML: character #x0000"),
        (HEAD + MODEL + "prompt: {system_prompt: none}\nsystem_prompt: code\n", 7, "system_prompt", "given twice"),
        (HEAD + MODEL + "seed: 1\nseed: 2\n", 7, "seed", "occurs twice (first in line 6)"),
        (HEAD + "    size: 3\n    size: 4\n" + MODEL, 5, "environments[0].size", "occurs twice (first in line 4)"),
        (HEAD + MODEL + "log: [console\n", 7, "", "not valid YAML"),
        ("environments: &a [*a]\n" + MODEL, 1, "environments[0]", "alias"),
        ("- a\n- b\n", 1, "", "must be a mapping"),
        ("", None, "", "is empty"),
    ],
)  # fmt: skip
def test_errors_name_line_field_and_what_is_valid(
    tmp_path: Path, text: str, line: int | None, field: str, says: str
) -> None:
    error = problem(tmp_path, text)
    assert (error.line, error.field) == (line, field)
    assert says in error.problem
    assert error.source.endswith("config.yaml")
    where = "config.yaml" if line is None else f"config.yaml, line {line}: "
    assert where in str(error)


def test_an_override_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    error = problem(tmp_path, HEAD + MODEL, overrides={"model.backend": "scriptd"})
    assert str(error).startswith("command line: model.backend: unknown backend 'scriptd'")


def test_an_override_reaches_into_lists(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "    size: 5\n" + MODEL)
    config = load_config(path, overrides={"environments.0.size": 3})
    assert config.environments[0].environment_options == {"size": 3}
    assert config.environments[0].adapter == "sums"
    with pytest.raises(ConfigError, match=r"^command line: environments\.1\.size: '1' is no item of a list of 1"):
        load_config(path, overrides={"environments.1.size": 3})


def test_the_first_problem_of_the_file_comes_first(tmp_path: Path) -> None:
    error = problem(tmp_path, "seed: x\nenvironments: []\nmodel: 3\nlog: nowhere\n")
    assert error.line == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml: no such file"):
        load_config(tmp_path / "missing.yaml")


def test_everything_is_checked_before_anything_runs(tmp_path: Path, sums: list[Any]) -> None:
    text = HEAD + "  - {name: sums/addition, label: second, size: x}\n" + MODEL
    problem(tmp_path, text)
    assert [each.closed for each in sums] == [1]


def test_an_environment_that_cannot_be_segmented_is_closed(tmp_path: Path, sums: list[Any]) -> None:
    problem(tmp_path, HEAD + "    segmentation: {by: line, max_segments: 0}\n" + MODEL)
    assert [each.closed for each in sums] == [1]


def test_names_and_defaults_may_come_from_a_merge() -> None:
    source = parse_yaml("base: &b {size: 3, level: 2}\nenvironments:\n  - <<: *b\n    size: 4\n")
    assert source.data["environments"] == [{"size": 4, "level": 2}]
    assert source.lines["environments", 0, "size"] == 4


def test_a_mapping_needs_no_file() -> None:
    config = load_config({"environments": ["sums/addition"], "model": {"backend": "scripted"}})
    assert isinstance(config, EvaluationConfig)
    with pytest.raises(ConfigError, match=r"^environments\[0\]\.name: unknown environment"):
        prepare_run({"environments": ["sums/x"], "model": {"backend": "scripted"}})
