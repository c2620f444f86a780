"""``hybridwatch gpu pack``: what a build needs on a machine without a network."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import examples
from hybridwatch.engines.builds import named_build
from hybridwatch.errors import BuildError
from hybridwatch_lab.gpu.pack import PackRequest, make_pack, read_left_out, read_machine
from hybridwatch_lab.gpu.pack.resolve import GIVEN

_MB: Final = 10**6


@click.command(
    "pack",
    epilog=examples(
        "hybridwatch gpu pack --for machine.txt --build cuda-0.33.0 --out /tmp/pack-0.33.0",
    ),
)
@click.option(
    "--for",
    "machine",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What `pip list` prints on the machine (any format), or `pip inspect`.",
)
@click.option(
    "--build",
    default="cuda-0.33.0",
    show_default=True,
    shell_complete=completion.builds,
    help="The engine build to pack.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write: carry/ goes to the machine, wheels/ has what was fetched.",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    default=Path(sys.executable),
    help="An interpreter here with the machine's version of Python.  [default: this one]",
)
@click.option(
    "--glibc", default="2.34", show_default=True, help="The machine's C library, or an older one."
)
@click.option(
    "--piece-mb",
    type=click.FloatRange(min=0.001),
    default=36,
    show_default=True,
    help="Largest size of a piece, in millions of bytes.",
)
@click.option(
    "--any-torch",
    is_flag=True,
    help="Take the machine's torch and Triton as they are. vLLM's kernels call torch through its "
    "stable ABI since 0.24.0, so an older torch may do.",
)
@click.option("--keep", multiple=True, help="Pack this entry of engine/pack.toml anyway.")
@click.option("--leave-out", "also", multiple=True, help="Leave out this optional entry, too.")
@click.option(
    "--find-links",
    "wheels",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Take every package from this folder and none from an index; may be repeated.",
)
def command(
    *,
    machine: Path,
    build: str,
    out: Path,
    python: Path,
    glibc: str,
    piece_mb: float,
    any_torch: bool,
    keep: tuple[str, ...],
    also: tuple[str, ...],
    wheels: tuple[Path, ...],
) -> None:
    """Pack what a CUDA build needs on a machine that has torch but no network.

    This finds the smallest set of wheels, leaves out what is never loaded (engine/pack.toml), and
    writes pieces with a script that makes an environment from them on the machine.
    """
    spec = named_build(build)
    if spec.accelerator != "cuda":
        raise BuildError(f"{build}: expected a build for CUDA, such as cuda-0.33.0")
    spec = named_build(spec.variant_of, spec.home) if spec.variant_of else spec
    left_out = read_left_out(spec.home, keep=keep, also=also)
    if any_torch:
        left_out = replace(left_out, as_it_is=left_out.as_it_is | {*GIVEN})
    piece_bytes = int(piece_mb * _MB)
    request = PackRequest(
        spec, read_machine(machine), left_out, out, piece_bytes, python, glibc, wheels
    )
    pack = make_pack(request, say=click.echo)
    size = sum(piece.size for piece in pack.pieces)
    click.echo(
        f"{len(pack.packages)} packages in {len(pack.pieces)} pieces, {size / _MB:.1f} MB; "
        f"left out of their wheels: {sum(pack.left_behind.values()) / _MB:.0f} MB, unpacked"
    )
    click.echo(f"carry {pack.folder} over, then run there: bash put-together.sh --into DIR")
