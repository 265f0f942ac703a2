"""Which environments there are, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from llenvs.core.errors import NotInstalled
from llenvs.core.options import EnvironmentOptions
from llenvs_aviary.options import (
    CustomOptions,
    DummyOptions,
    GSM8KOptions,
    HotPotQAOptions,
    NotebookOptions,
    PaperOptions,
    RemoteOptions,
)

_PAPER_NEEDS = (
    "papers, a language model and an embedding model (keys such as OPENAI_API_KEY, or settings for paper-qa)"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An environment in the list.

    Attributes:
        category: "offline" for those that need neither network nor keys once their data is at hand.
        module: of the upstream, that must be importable; None for those in its core.
        extra: of this package, that installs the module.
        needs: what else it needs, in words.
    """

    description: str
    category: str
    options: type[EnvironmentOptions]
    module: str | None = None
    extra: str | None = None
    needs: str = ""


def _labbench(description: str, data: str) -> Entry:
    needs = f"{data} from the hub of Hugging Face, {_PAPER_NEEDS}"
    return Entry(description, "papers", PaperOptions, "aviary.envs.labbench", "labbench", needs)


_LAB, _LAB2 = "futurehouse/lab-bench", "EdisonScientific/labbench2 (gated: accept its terms and log in)"

ENTRIES: dict[str, Entry] = {
    "dummy": Entry("write a story of five words by calling a tool", "offline", DummyOptions),
    "gsm8k": Entry(
        "grade school mathematics with a calculator", "offline", GSM8KOptions, "aviary.envs.gsm8k", "gsm8k"
    ),
    "hotpotqa": Entry(
        "questions over two pages, with search in Wikipedia",
        "offline",
        HotPotQAOptions,
        "aviary.envs.hotpotqa",
        "hotpotqa",
        "pages given as a file, or the network",
    ),
    "custom": Entry("your own environment, functional environment or task data set", "open", CustomOptions),
    "remote": Entry("the tasks of an aviary TaskDatasetServer", "open", RemoteOptions, None, None, "the server"),
    "notebook": Entry(
        "write and run the cells of a notebook",
        "code",
        NotebookOptions,
        "aviary.envs.notebook",
        "notebook",
        "Docker and the image aviary-notebook-env, or use_docker=False",
    ),
    "litqa2": _labbench("LAB-Bench: questions on recent papers", f"{_LAB} and futurehouse/aviary-paper-data"),
    "figqa": _labbench("LAB-Bench: questions on figures", _LAB),
    "figqa2": _labbench("LAB-Bench 2: questions on figures", _LAB2),
    "figqa-text": _labbench("LAB-Bench: questions on figures, as text", _LAB),
    "tableqa": _labbench("LAB-Bench: questions on tables", _LAB),
    "tableqa2": _labbench("LAB-Bench 2: questions on tables", _LAB2),
    "tableqa-text": _labbench("LAB-Bench: questions on tables, as text", _LAB),
    "lfrqa": Entry(
        "long answers from retrieved documents",
        "papers",
        PaperOptions,
        "aviary.envs.lfrqa",
        "lfrqa",
        f"dataset_options with data (a CSV file or a list of LFRQAQuestion), {_PAPER_NEEDS}",
    ),
}
ALIASES = {"labbench": "litqa2"}
"""Other names for some of them: a family that upstream has no data set of that name for."""


def require(name: str, entry: Entry) -> None:
    """Make sure that the upstream's part for `name` can be imported.

    Raises:
        NotInstalled: it is missing, with the command that installs it.
    """
    if find_spec("aviary") is None:
        raise NotInstalled("fhaviary (import name aviary)", "aviary")
    if entry.module is None:
        return
    try:
        missing = find_spec(entry.module) is None
    except ModuleNotFoundError:
        missing = True
    if missing:
        command = f'pip install "llenvs-aviary[{entry.extra}]"'
        error = NotInstalled(f"aviary-{entry.extra}, the upstream of aviary/{name},", "aviary")
        detail = f"; it also needs {entry.needs}" if entry.needs else ""
        error.command = command
        error.args = (f"{error.what} is not installed; run: {command}{detail}",)
        raise error
