"""A git history over a release's Python: small edits that change nothing, and one that does."""

import ast
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.checkout import commit, git

RUNNER = "v1/worker/gpu_model_runner.py"
PLACES = (
    "v1/core/*.py",
    "v1/core/sched/*.py",
    "v1/engine/*.py",
    "v1/worker/*.py",
    "v1/sample/*.py",
    "v1/metrics/*.py",
    "model_executor/layers/*.py",
    "model_executor/model_loader/*.py",
    "config/*.py",
    "entrypoints/openai/**/*.py",
    "tokenizers/*.py",
    "utils/*.py",
)
"""Where commits edit: what an engine runs, and what it only imports."""


@dataclass(frozen=True)
class Fault:
    """One wrong line: what stands in a file, and what takes its place."""

    path: str
    right: str
    wrong: str


STATE_FAULTS = (
    Fault(RUNNER, "        is_prefilling[num_reqs:] = False\n", ""),
    Fault(
        "v1/attention/backends/mamba_attn.py",
        "num_computed_tokens[num_reqs - num_prefills : num_reqs] > 0",
        "num_computed_tokens[num_reqs - num_prefills : num_reqs] >= 0",
    ),
)
SLOW_STEP = Fault(
    RUNNER,
    "    @torch.inference_mode()\n    def execute_model(",
    "    def execute_model(self, *args, **kwargs):\n"
    "        begin = time.thread_time()\n"
    "        output = self._execute_step(*args, **kwargs)\n"
    "        end = time.thread_time()\n"
    "        while time.thread_time() < end + 0.06 * (end - begin):\n"
    "            pass\n"
    "        return output\n\n"
    "    @torch.inference_mode()\n    def _execute_step(",
)
"""A step works 6 % more in the model runner, as much on a busy machine as on a quiet one."""
BREAKS = (
    "\nfrom vllm.v1 import nowhere\n",
    "\nundefined_name\n",
    "\nraise RuntimeError('not finished')\n",
)


@dataclass(frozen=True)
class History:
    """A repository of commits."""

    repo: Path
    shas: tuple[str, ...]
    culprit: str
    broken: tuple[str, ...]


def a_history(
    folder: Path, package: Path, fault: Fault, *, seed: int, commits: int = 64, broken: int = 5
) -> History:
    """Make a history.

    Args:
        folder: A new folder.
        package: The installed package ``vllm`` of a release.
        fault: What one of the commits plants.
        seed: Of everything that is drawn.
        commits: How many behind the first.
        broken: How many of them have an engine that does not start; the next one starts again.
    """
    rng = random.Random(seed)
    tree = folder / "vllm"
    shutil.copytree(package, tree, ignore=_without_compiled)
    git(folder, "init", "-q")
    git(folder, "config", "gc.auto", "0")
    shas = [commit(folder, "The release", {})]
    culprit = rng.randrange(1, commits + 1)
    dumb = set(rng.sample([n for n in range(1, commits) if n != culprit], broken))
    edits = _edits(tree, fault, rng)
    whole = {"__init__.py": (tree / "__init__.py").read_text()}
    mended: dict[str, str] = {}
    for number in range(1, commits + 1):
        files, mended = dict(mended), {}
        path = next(edits)
        files[path] = _rewritten(files.get(path) or (tree / path).read_text(), rng)
        if number == culprit:
            files[fault.path] = _planted(tree / fault.path, fault)
        if number in dumb:
            mended = whole
            files["__init__.py"] = whole["__init__.py"] + rng.choice(BREAKS)
        under_vllm = {f"vllm/{name}": text for name, text in files.items()}
        shas.append(commit(folder, f"Rewrite {path} (#{1000 + number})", under_vllm))
    assert (tree / "__init__.py").read_text() == whole["__init__.py"]
    return History(folder, tuple(shas), shas[culprit], tuple(shas[n] for n in sorted(dumb)))


def _without_compiled(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or ".so" in name]


def _planted(file: Path, fault: Fault) -> str:
    text = file.read_text()
    assert text.count(fault.right) == 1
    return text.replace(fault.right, fault.wrong)


def _edits(tree: Path, fault: Fault, rng: random.Random) -> Iterator[str]:
    """Yield files to edit, at random; never that of the fault."""
    paths = sorted(
        {str(path.relative_to(tree)) for place in PLACES for path in tree.glob(place)}
        - {fault.path, "__init__.py"}
    )
    while True:
        path = rng.choice(paths)
        if _returns((tree / path).read_text()):
            yield path


def _returns(text: str) -> list[ast.Return]:
    """Find plain ``return`` statements of one line, outside of compiled kernels."""
    if "triton" in text or "numba" in text:
        return []
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Return)
        and node.value is not None
        and node.lineno == node.end_lineno
        and text.splitlines()[node.lineno - 1].lstrip().startswith("return ")
    ]


def _rewritten(text: str, rng: random.Random) -> str:
    """Give a value a name before it is returned."""
    node = rng.choice(_returns(text))
    lines = text.splitlines(keepends=True)
    line = lines[node.lineno - 1]
    indent, _, value = line.partition("return ")
    name = f"value_{rng.randrange(10**6)}"
    lines[node.lineno - 1] = f"{indent}{name} = {value}{indent}return {name}\n"
    return "".join(lines)
