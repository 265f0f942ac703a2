import json

from llenvs.inference.prompts import get_fragment, get_system_prompt, list_prompts


def test_everything_registered_is_listed_under_its_kind(quick):
    lines = quick("prompts").stdout.splitlines()
    for kind in ("System prompts", "Fragments", "Question templates", "Model profiles"):
        assert kind in lines
    names = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("    ")]
    for each in list_prompts():
        assert each.name in names


def test_a_prompt_is_shown_fully(quick):
    shown = quick("prompts", "general_reasoning").stdout
    assert get_system_prompt("general_reasoning").render() in shown
    assert "answer extractor  tag_based" in shown


def test_raw_is_the_text_alone(quick):
    done = quick("prompts", "step_by_step", "--raw")
    assert done.stdout == get_fragment("step_by_step").text + "\n"


def test_a_name_of_several_things_needs_the_kind_for_raw(quick):
    done = quick("prompts", "answer_tags", "--raw")  # a fragment, and a set of few-shot examples
    assert done.returncode == 2
    assert "valid: with --kind, fragment and few-shot-set" in done.stderr
    done = quick("prompts", "answer_tags", "--raw", "--kind", "fragment")
    assert done.stdout == get_fragment("answer_tags").text + "\n"
    shown = quick("prompts", "answer_tags", "--kind", "few-shot-set", "--model", "gpt-4o").stdout
    assert "few-shot, example 1" in shown
    shown = quick("prompts", "--kind", "fragment").stdout.splitlines()
    assert shown[0] == "Fragments"
    assert "Model profiles" not in shown


def test_the_profile_of_a_model(quick):
    shown = quick("prompts", "--model", "google/gemma-2-9b-it").stdout
    assert shown.startswith("model profile gemma-2\n")
    assert "chat template of google/gemma-2-9b-it" in shown
    profile = json.loads(quick("prompts", "--model", "unheard-of", "--json").stdout)
    assert [each["name"] for each in profile] == ["generic"]


def test_a_prompt_as_a_model_sees_it(quick):
    explained = json.loads(quick("prompts", "general_reasoning", "--model", "gemma-2-9b-it", "--json").stdout)
    assert [each["role"] for each in explained["messages"]] == ["user"]  # Gemma 2 has no system role
    explained = json.loads(quick("prompts", "general_reasoning", "--model", "gpt-4o", "--json").stdout)
    assert [each["role"] for each in explained["messages"]] == ["system", "user"]
    shown = quick("prompts", "question_answer", "--model", "gpt-4o").stdout
    assert "Question: {question}" in shown


def test_mistakes_are_one_sentence(quick):
    cases = {
        ("general_resoning",): "unknown prompt 'general_resoning'; did you mean 'general_reasoning'",
        ("--raw",): "--raw: needs NAME",
        (
            "--kind",
            "fragments",
        ): "--kind: nothing is of this kind, got 'fragments'; valid: system-prompt, fragment",
        ("gemma-2", "--raw"): "--raw: this model profile has no text, got 'gemma-2'",
        ("gemma-2", "--model", "gpt-4o"): "NAME: a model profile has no text for a model",
    }
    for arguments, said in cases.items():
        done = quick("prompts", *arguments)
        assert done.returncode == 2, arguments
        assert done.stderr.startswith(f"Error: {said}"), done.stderr
        assert done.stderr.count("\n") == 1
