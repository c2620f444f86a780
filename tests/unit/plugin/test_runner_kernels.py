"""What stands in for a kernel: known by its source, and only by that. No Triton is needed."""

import linecache

import numpy as np
import pytest
from hybridwatch_engine.cpu.runner_kernels import launch, sampling

HELPER = "def helper(x):\n    return x + {}\n"
KERNEL = 'def kernel(out_ptr, n, WIDTH=4):\n    """Count."""\n    helper(n)  # {}\n'


class Function:
    """A function under the interpreter."""

    def __init__(self, source, **names):
        file = f"<kernel {source!r}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), names)  # noqa: S102 - the source is ours, above
        self.fn = next(
            names[name] for name in ("kernel", "helper") if hasattr(names.get(name), "__code__")
        )
        self.arg_names = ["out_ptr", "n", "WIDTH"]
        self.pre_run_hooks = ()
        self.__name__ = self.fn.__name__


def kernel(comment="as released", added=1):
    return Function(KERNEL.format(comment), helper=Function(HELPER.format(added)))


def test_a_comment_changes_nothing():
    assert launch.digest(kernel("as released")) == launch.digest(kernel("as it was"))


def test_a_function_that_a_kernel_calls_is_part_of_it():
    assert launch.digest(kernel(added=1)) != launch.digest(kernel(added=2))


@pytest.fixture
def launched(monkeypatch):
    """Launch a kernel that something stands in for, or the same after a change."""
    calls: list[tuple[object, ...]] = []

    def counted(*, out, n, grid, **more):
        if n < 0:
            raise launch.UnservedError
        calls.append(("stand-in", out.tolist(), n, grid, more))

    monkeypatch.setattr(sampling, "ranks", counted)
    monkeypatch.setitem(launch._STAND_INS, launch.digest(kernel()), (sampling, "ranks", {}))

    def interpreted(*_, **__):
        calls.append(("interpreter",))

    run = launch._run(interpreted)

    class Tensor:
        def numpy(self):
            return np.arange(2)

    def call(changed, n):
        run(changed, Tensor(), n, grid=(3,), warmup=False)
        return calls

    return call


def test_a_stand_in_gets_arrays_the_grid_and_defaults(launched):
    assert launched(kernel(), 5) == [("stand-in", [0, 1], 5, (3,), {"WIDTH": 4})]


def test_a_call_that_is_not_served_is_interpreted(launched):
    assert launched(kernel(), -1) == [("interpreter",)]


def test_a_changed_kernel_is_interpreted(launched):
    assert launched(kernel(added=2), 5) == [("interpreter",)]
