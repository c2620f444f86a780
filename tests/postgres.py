"""A PostgreSQL server of our own: in a temporary folder, on a socket there, gone with the tests.

It needs the programs of Debian's package ``postgresql``; the server refuses to run as root, so for
root it runs as the user ``postgres`` or ``nobody``.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

MISSING = "no PostgreSQL server to start; on Debian: sudo apt-get install postgresql"


@dataclass(frozen=True)
class Server:
    """A running server, which can be stopped and started again."""

    programs: Path
    folder: Path

    @property
    def url(self) -> str:
        return f"postgresql://hybridwatch@/postgres?host={self.folder}"

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = self.folder / "log"
        self._call("pg_ctl", "start", "-w", "-D", self.folder / "data", "-l", log, "-o", options)

    def stop(self) -> None:
        self._call("pg_ctl", "stop", "-m", "immediate", "-D", self.folder / "data")

    def make(self) -> None:
        self._call("initdb", "-U", "hybridwatch", "-A", "trust", "-N", "-D", self.folder / "data")

    def _call(self, program: str, *words: str | Path) -> None:
        subprocess.run(
            [self.programs / program, *words],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            user=_user(),
            group=None if _user() is None else pwd.getpwnam(str(_user())).pw_gid,
        )


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _programs() -> Path | None:
    found = shutil.which("pg_ctl")
    if found:
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return installed[-1].parent if installed else None


@contextmanager
def running() -> Iterator[Server | None]:
    """Start a server; ``None`` where there is none to start."""
    programs = _programs()
    if programs is None or not (programs / "initdb").exists():
        yield None
        return
    # Not below pytest's folder, where nobody else may look; a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if user := _user():
        shutil.chown(folder, user)
    server = Server(programs, folder)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@contextmanager
def schema_of(server: Server) -> Iterator[str]:
    """Give the URL of a schema of its own."""
    name = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    yield f"{server.url}&options=-csearch_path%3D{name}"
