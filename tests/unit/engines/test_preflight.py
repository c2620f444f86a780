"""What does not fit a build is told in one line before anything is made; no GPU is needed."""

import zipfile
from pathlib import Path

import pynvml
import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.install import install
from hybridwatch.engines.preflight import cuda_version, require_gpu, require_python, require_wheels
from hybridwatch.errors import BuildError
from tests.checkout import make_checkout
from tests.pretended_nvml import Card, pretend

CHECKOUT = Path(__file__).parents[3]
CUDA = """
[builds."huge-1.0"]
release = "1.0"
accelerator = "cuda"
distribution = "vllm"
python = "3.11"
torch = "torch==2.11.0,!=2.11.0+cpu"
lock = "locks/huge.txt"
"""
LOCK = """\
cuda-toolkit==13.0.2
six==1.17.0
torch==2.11.0,!=2.11.0+cpu
vllm==1.0
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildSpec:
    root = tmp_path / "checkout"
    make_checkout(root, "smoke/example")
    (root / "engine" / "locks" / "huge.txt").write_text(LOCK)
    with (root / "engine" / "builds.toml").open("a") as file:
        file.write(CUDA)
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(root))
    return named_build("huge-1.0", root)


def have_gpu(monkeypatch, *cards: Card, cuda: int = 13020) -> None:
    library = pretend(monkeypatch, *cards)
    monkeypatch.setattr(library, "nvmlSystemGetCudaDriverVersion_v2", lambda: cuda, raising=False)


def wheels(folder: Path, *names: str) -> Path:
    """Wheels that hold nothing but their metadata."""
    folder.mkdir()
    for name in names:
        project, version = name.split("-")[:2]
        info = f"{project}-{version}.dist-info"
        with zipfile.ZipFile(folder / f"{name}.whl", "w") as archive:
            archive.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
            )
            archive.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{info}/RECORD", "")
    return folder


NEEDED = "huge-1.0 needs an NVIDIA driver for CUDA 13.0 (580 or newer); "


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (
            pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
            'no NVIDIA driver on this machine: NVML says "NVML Shared Library Not Found"',
        ),
        (
            pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
            'no NVIDIA driver on this machine: NVML says "Driver Not Loaded"',
        ),
    ],
)
def test_without_a_driver_nothing_is_made_measured_or_hidden(build, monkeypatch, code, line):
    pretend(monkeypatch, broken=code)
    for words in (["engine", "install", "huge-1.0"], ["run", "smoke", "--build", "huge-1.0"]):
        told = CliRunner().invoke(cli, words)
        assert told.exit_code == 2
        assert told.stderr == f"hybridwatch: {NEEDED}{line}\n"
    assert not (build.home / ".engines").exists()


def test_a_driver_that_is_too_old_is_told_with_its_number(build, monkeypatch):
    pretend(monkeypatch, Card())
    with pytest.raises(BuildError) as caught:
        require_gpu(build)
    assert str(caught.value) == f"{NEEDED}this is driver 570.133.20, which goes up to CUDA 12.8"


@pytest.mark.parametrize("cuda", [13000, 13020, 14000])
def test_a_driver_of_the_same_major_version_or_a_later_one_will_do(build, monkeypatch, cuda):
    have_gpu(monkeypatch, Card(), cuda=cuda)
    require_gpu(build)


def test_a_driver_that_shows_no_gpu_is_told(build, monkeypatch):
    have_gpu(monkeypatch, Card())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(BuildError, match=r"needs an NVIDIA GPU; driver \S+ shows none to this p"):
        require_gpu(build)


def test_where_the_lock_names_no_cuda_any_driver_will_do(build, monkeypatch):
    build.lock_file.write_text("six==1.17.0\n")
    assert cuda_version(build) is None
    pretend(monkeypatch, Card())
    require_gpu(build)
    pretend(monkeypatch, broken=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    with pytest.raises(BuildError, match=r"^huge-1\.0 needs an NVIDIA driver; no NVIDIA driver"):
        require_gpu(build)


def test_a_build_for_cpus_asks_for_no_driver(build, monkeypatch):
    pretend(monkeypatch, broken=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    require_gpu(named_build("tiny-1.0", build.home))


def test_with_a_gpu_it_is_the_missing_environment_that_is_told(build, monkeypatch):
    have_gpu(monkeypatch, Card())
    with pytest.raises(BuildError, match="is missing; run: hybridwatch engine install huge-1"):
        require_installed(build)


@pytest.mark.parametrize(
    ("oldest", "newest", "expected"),
    [
        ("3.99", None, r"3\.99 or newer"),
        ("3.10", "3.10", r"3\.10 to 3\.10"),
    ],
)
def test_another_python_is_told(build, monkeypatch, oldest, newest, expected):
    have_gpu(monkeypatch, Card())
    unfit = build.model_copy(update={"python": oldest, "newest_python": newest})
    with pytest.raises(BuildError, match=rf"^huge-1\.0 needs Python {expected}; this is 3\.\d"):
        install(unfit, say=lambda _: None)
    require_python(build)


def test_a_folder_that_lacks_a_wheel_is_told_with_its_name(build, monkeypatch, tmp_path):
    have_gpu(monkeypatch, Card())
    folder = wheels(
        tmp_path / "wheels",
        "torch-2.11.0-py3-none-any",
        "cuda_toolkit-13.0.2-py3-none-any",
        "vllm-1.0-py3-none-any",
    )
    words = ["engine", "install", "huge-1.0", "--find-links", str(folder)]
    told = CliRunner().invoke(cli, words)
    assert told.exit_code == 2
    (line,) = told.stderr.splitlines()
    assert line.startswith("hybridwatch: huge-1.0 needs a wheel of six==1.17.0 for Python 3.")
    assert line.endswith(f"; in {folder} there is none")
    assert not build.environment.exists()


def test_a_torch_for_cpus_is_told_before_anything_is_made(build, monkeypatch, tmp_path):
    have_gpu(monkeypatch, Card())
    folder = wheels(
        tmp_path / "wheels",
        "torch-2.11.0+cpu-py3-none-any",
        "six-1.17.0-py3-none-any",
        "cuda_toolkit-13.0.2-py3-none-any",
        "vllm-1.0-py3-none-any",
    )
    told = CliRunner().invoke(cli, ["engine", "install", "huge-1.0", "--find-links", str(folder)])
    assert told.exit_code == 2
    assert "needs a wheel of torch!=2.11.0+cpu,==2.11.0 for Python 3." in told.stderr
    assert told.stderr.endswith(f"; in {folder} there is 2.11.0+cpu\n")
    assert not build.environment.exists()


def test_every_cuda_build_of_ours_says_what_its_torch_is_made_for():
    found = {
        build.name: cuda_version(build)
        for build in load_builds(CHECKOUT).values()
        if build.accelerator == "cuda"
    }
    assert found
    assert {version[0] for version in found.values() if version is not None} == {13}
    assert None not in found.values()


def test_of_many_other_versions_the_newest_are_told(build, tmp_path):
    names = (f"six-1.{minor}-py3-none-any" for minor in range(8))
    folder = wheels(tmp_path / "wheels", *names)
    with pytest.raises(BuildError, match=r"there is 1\.3, 1\.4, 1\.5, 1\.6, 1\.7$"):
        require_wheels(build, ("six==1.17.0",), [folder])
