"""Which Python an adapter's metadata asks for."""

import pytest

from llenvs.container.python_choice import PythonNeeds

ALL = ["3.12", "3.13", "3.11", "3.14"]


@pytest.mark.parametrize(
    ("requires", "dependencies", "suitable"),
    [
        (">=3.11", (), ALL),
        ("", ("numpy", "pydantic>=2"), ALL),
        (">=3.12", (), ["3.12", "3.13", "3.14"]),
        (">=3.11,<3.13", (), ["3.12", "3.11"]),
        ("==3.11.*", (), ["3.11"]),
        (">=3.20", (), []),
        # an upstream that needs a newer Python than the adapter
        (">=3.11", ("llenvs-core", "harbor==0.26.0; python_version >= '3.12'"), ["3.12", "3.13", "3.14"]),
        (">=3.11", ("harbor==0.26.0; python_full_version >= '3.13'",), ["3.13", "3.14"]),
        # one that stops at some Python
        (">=3.11", ("old; python_version < '3.12'",), ["3.11"]),
        # a backport is for Pythons that are too old anyway
        (">=3.11", ("tomli; python_version < '3.11'", "upstream"), ALL),
        # extras and other platforms say nothing about Python
        (">=3.11", ("wandb; extra == 'wandb'", "pywin32; sys_platform == 'win32'"), ALL),
        # one of two releases on each Python: all are as good
        (">=3.11", ("a<2; python_version < '3.13'", "a>=2; python_version >= '3.13'"), ALL),
    ],
)
def test_suitable_versions(requires, dependencies, suitable):
    assert PythonNeeds(requires, dependencies).suitable_versions(ALL) == suitable


def test_order_of_preference_begins_with_this_python():
    import sys

    versions = PythonNeeds("", ()).suitable_versions()
    assert versions[0] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert sorted(versions) == sorted(set(versions))
    assert set(ALL) <= set(versions)


def test_reads_a_project_and_core_metadata(tmp_path):
    lines = [
        "[project]",
        'requires-python = ">=3.12"',
        """dependencies = ["a", "b; python_version >= '3.13'"]""",
    ]
    (tmp_path / "pyproject.toml").write_text("\n".join(lines))
    needs = PythonNeeds(">=3.12", ("a", "b; python_version >= '3.13'"))
    assert PythonNeeds.from_project(tmp_path) == needs
    text = (
        "Metadata-Version: 2.4\nName: x\nVersion: 1\nRequires-Python: >=3.12\n"
        "Requires-Dist: a\nRequires-Dist: b; python_version >= '3.13'\n\nRequires-Dist: of the description\n"
    )
    assert PythonNeeds.from_metadata(text) == needs
