"""What is installed on a machine, in every form in which pip tells it."""

import json

import pytest
from packaging.version import Version

from hybridwatch.errors import BuildError
from hybridwatch_lab.gpu.pack.resolve import read_machine

FORMS = {
    "table": "Package    Version       Editable project location\n---------- -------------\n"
    "numpy      2.4.6\ntorch      2.11.0+cu130\nMy_Tool    1.0           /src/my-tool\n\n"
    "[notice] A new release of pip is available\n",
    "freeze": "# comment\nnumpy==2.4.6\ntorch==2.11.0+cu130\nMy.Tool==1.0\n",
    "json": json.dumps(
        [
            {"name": "numpy", "version": "2.4.6"},
            {"name": "torch", "version": "2.11.0+cu130"},
            {"name": "my-tool", "version": "1.0"},
        ]
    ),
    "inspect": json.dumps(
        {
            "installed": [
                {"metadata": {"name": "numpy", "version": "2.4.6"}},
                {"metadata": {"name": "torch", "version": "2.11.0+cu130"}},
                {"metadata": {"name": "my-tool", "version": "1.0"}},
            ],
            "environment": {"python_version": "3.12"},
        }
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_pip_is_read(tmp_path, form) -> None:
    path = tmp_path / "machine.txt"
    path.write_text(FORMS[form])
    machine = read_machine(path)
    assert machine.packages == {
        "numpy": Version("2.4.6"),
        "torch": Version("2.11.0+cu130"),
        "my-tool": Version("1.0"),
    }
    assert machine.python == ("3.12" if form == "inspect" else "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found no package"),
        ("numpy @ file:///tmp/numpy.whl\n", "line 1: expected a package and its version"),
        ("numpy==2.4.6\nwhat is this?\n", "line 2"),
        ("numpy==two\n", "numpy: expected a version, found 'two'"),
        ('{"installed": 1}', "expected `pip list --format json` or `pip inspect`"),
        ("[1]", "expected `pip list --format json` or `pip inspect`"),
    ],
)
def test_what_names_no_packages_is_refused_by_line(tmp_path, text, words) -> None:
    path = tmp_path / "machine.txt"
    path.write_text(text)
    with pytest.raises(BuildError) as refused:
        read_machine(path)
    assert words in str(refused.value)
    assert "machine.txt" in str(refused.value)


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(BuildError, match=r"nowhere\.txt"):
        read_machine(tmp_path / "nowhere.txt")
