"""Records in an object store: S3 as moto's server has it, over HTTP."""

import json
import logging
import os
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from random import Random

import pytest

from hybridwatch.cli.options import with_results
from hybridwatch.database.queries import open_index
from hybridwatch.errors import RecordError
from hybridwatch.records.codec import encode
from hybridwatch.records.file_parts import BULK_SUFFIX
from hybridwatch.records.store import (
    Intake,
    check_writable,
    find_record,
    list_records,
    read_baselines,
    read_run,
    results_folder,
    write_run,
)
from hybridwatch.records.store import mirror as mirrors
from hybridwatch.records.store.files import write_all
from hybridwatch.records.store.mirror import RETRIES, mirror_at
from hybridwatch.records.store.verdicts import read_profile
from tests.bad_way import BadWay
from tests.stacks import put_profile
from tests.store_builders import STARTED, Plan, run

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"  # noqa: S105 (that of the documentation)
KEY = "AKIAIOSFODNN7EXAMPLE"
URL = "s3://nightly-records/team/vllm"
PREFIX = "team/vllm/"
SMALL = Plan(documents=3, performance_trials=1)
BASELINE = """\
[[baseline]]
scenario = "smoke/x"
testbed = "t"
run = "dcc7e0b6"
reason = "{}"
date = 2026-11-21
"""


def small(number=1):
    return run(replace(SMALL, seed=number, started_at=STARTED + timedelta(hours=number)))


@pytest.fixture(scope="module")
def server():
    """An S3 on loopback: its host and port."""
    from moto.server import ThreadedMotoServer  # late: collecting need not wait for it

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    yield moto.get_host_and_port()
    moto.stop()


@pytest.fixture
def bucket(server, monkeypatch):
    """An empty bucket, as its owner sees it; credentials are where boto3 finds them."""
    import boto3

    endpoint = "http://{}:{}".format(*server)
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    owner = boto3.resource("s3", endpoint_url=endpoint, region_name="us-east-1")
    bucket = owner.create_bucket(Bucket="nightly-records")
    yield bucket
    bucket.objects.delete()
    bucket.delete()


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Give the same results folder as another machine has it; each call is a machine of its own."""

    def machine(name):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / name))
        mirrors._mirror.cache_clear()
        return results_folder(URL)

    yield machine
    mirrors._mirror.cache_clear()


def the_mirror(results):
    mirror = mirror_at(results)
    assert mirror is not None
    return mirror


def names_in(bucket):
    return sorted(one.key.removeprefix(PREFIX) for one in bucket.objects.all())


def names_of(results):
    return sorted(
        path.relative_to(results).as_posix()
        for path in (results / "records").rglob("*")
        if path.is_file()
    )


def test_a_run_is_sent_and_read_elsewhere(bucket, elsewhere):
    original = small()
    here = elsewhere("here")
    written = write_run(here, original)
    assert names_in(bucket) == names_of(here)
    there = elsewhere("there")
    (record,) = list_records(there)
    assert record.name == written.name
    assert read_run(record) == original
    assert find_record(there, "latest") == record


def test_a_profile_is_sent_and_read_elsewhere(bucket, elsewhere):
    original = small()
    here = elsewhere("here")
    write_run(here, original)
    path = put_profile(here, original)
    there = elsewhere("there")
    list_records(there)
    assert read_profile(there / path.relative_to(here)) == read_profile(path)


def test_what_is_next_to_a_record_is_brought_when_it_is_read(bucket, elsewhere):
    write_run(elsewhere("here"), small())
    there = elsewhere("there")
    (record,) = list_records(there)
    assert not read_run(record, bulk=False).trials[0].answers
    assert names_of(there) == [record.relative_to(there).as_posix()]
    read_run(record)
    assert len(names_of(there)) == 2


def test_many_records_go_in_and_out_over_a_bad_way(bucket, server, elsewhere, monkeypatch):
    rng = Random(1)
    failing = set(rng.sample(range(400), 20))
    slow = set(rng.sample(sorted(set(range(400)) - failing), 20))

    def fate(number):
        at = number % 600  # on the way in, and once more on the way out
        if at in failing:
            return "lost" if at % 2 else "refused"
        return "slow" if at in slow else ""

    runs = [small(number) for number in range(200)]
    with BadWay(server, fate) as way:
        monkeypatch.setenv("AWS_ENDPOINT_URL", way.url)
        here = elsewhere("here")
        for start in range(0, len(runs), 50):
            write_all(here, [(one, encode(one)) for one in runs[start : start + 50]])
        assert way.seen["lost"] + way.seen["refused"] >= 20
        assert way.seen["slow"] >= 20
        there = elsewhere("there")
        records = list_records(there)
    assert len(records) == len(names_in(bucket)) // 2 == 200
    assert {read_run(path, bulk=False).id for path in records} == {one.id for one in runs}
    assert read_run(records[7]) == runs[7]


def test_a_store_that_refuses_everything_is_asked_so_many_times_and_named(
    bucket, server, elsewhere, monkeypatch
):
    here = elsewhere("here")
    with BadWay(server, lambda _: "refused") as way:
        monkeypatch.setenv("AWS_ENDPOINT_URL", way.url)
        with pytest.raises(RecordError, match=rf"^{URL}: cannot be listed: .*503") as refused:
            list_records(here)
    assert len(way.requests) == RETRIES + 1
    assert len(str(refused.value).splitlines()) == 1


def test_what_could_not_be_sent_is_kept_and_sent_by_the_next_command(
    bucket, server, elsewhere, monkeypatch
):
    here = elsewhere("here")
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    with BadWay(server, lambda _: "refused") as way:
        monkeypatch.setenv("AWS_ENDPOINT_URL", way.url)
        with pytest.raises(RecordError, match=f"kept in {here}, and the next command with"):
            write_run(here, small())
    assert names_in(bucket) == []
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    (record,) = list_records(elsewhere("here"))
    assert read_run(record) == small()
    assert names_in(bucket) == names_of(here)


def test_a_process_that_is_killed_before_it_sent_has_lost_nothing(bucket, elsewhere, monkeypatch):
    here = elsewhere("here")
    with monkeypatch.context() as patch:
        patch.setattr("hybridwatch.records.store.mirror.Mirror._send", lambda *_: None)
        write_run(here, small())
    assert names_in(bucket) == []
    list_records(elsewhere("here"))
    assert names_in(bucket) == names_of(here)


def test_what_another_process_is_writing_is_not_taken_for_gone(bucket, elsewhere):
    here = elsewhere("here")
    one = small()
    folder = here / "records" / "epyc-9654-2c-linux"
    files = [folder / f"{encode(one).stem}.json"]
    with the_mirror(here).adding(files):
        folder.mkdir(parents=True)
        files[0].write_bytes(encode(one).record)
        the_mirror(here).refresh(fresh_s=0)
        assert files[0].is_file()


def test_a_name_that_has_other_bytes_there_is_refused_and_removed_here(bucket, elsewhere):
    original = small()
    here = elsewhere("here")
    record = write_run(here, original)
    bucket.Object(PREFIX + record.relative_to(here).as_posix()).put(Body=b"{}")
    there = elsewhere("there")
    with pytest.raises(RecordError, match=r"\.json is there already and says something else"):
        write_run(there, original)
    assert names_of(there) == []
    with pytest.raises(RecordError, match=r"\.json: expected \d+ bytes as in .*, found 2; records"):
        list_records(elsewhere("here"))


def test_the_same_record_may_be_added_twice(bucket, elsewhere):
    original = small()
    write_run(elsewhere("here"), original)
    write_run(elsewhere("there"), original)
    assert len(names_in(bucket)) == 2


def test_what_the_store_has_no_longer_is_set_aside(bucket, elsewhere, caplog):
    here = elsewhere("here")
    record = write_run(here, small())
    bucket.objects.delete()
    assert list_records(elsewhere("here")) == []
    assert len(list((here / "gone").rglob(record.name))) == 1
    assert "2 gone" in caplog.text


def test_a_store_that_is_away_shows_what_was_there(bucket, elsewhere, monkeypatch, caplog):
    here = elsewhere("here")
    record = write_run(here, small())
    assert list_records(here) == [record]
    mirror = the_mirror(here)

    def away(_folder):
        raise RecordError("away")

    monkeypatch.setattr(mirror.bucket, "sizes", away)
    mirror.refresh(fresh_s=0)
    assert "away; showing what was there before" in caplog.text
    assert list_records(here) == [record]


def test_two_listings_in_a_moment_are_one(bucket, server, elsewhere, monkeypatch):
    with BadWay(server, lambda _: "") as way:
        monkeypatch.setenv("AWS_ENDPOINT_URL", way.url)
        here = elsewhere("here")
        list_records(here)
        before = len(way.requests)
        list_records(here)
        assert len(way.requests) == before


def test_baselines_are_those_of_the_store(bucket, elsewhere):
    here = elsewhere("here")
    place = bucket.Object(f"{PREFIX}baselines.toml")
    place.put(Body=BASELINE.format("first").encode())
    assert [one.reason for one in read_baselines(here)] == ["first"]
    place.put(Body=BASELINE.format("second").encode())
    assert [one.reason for one in read_baselines(elsewhere("here"))] == ["second"]


def test_no_secret_is_shown_or_kept(bucket, server, elsewhere, monkeypatch, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    here = elsewhere("here")
    write_run(here, small())
    with BadWay(server, lambda _: "refused") as way:
        monkeypatch.setenv("AWS_ENDPOINT_URL", way.url)
        with pytest.raises(RecordError) as refused:
            list_records(elsewhere("there"))
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (SECRET, KEY):
        assert secret not in str(refused.value) + caplog.text
        assert secret.encode() not in kept


def test_a_store_that_cannot_be_written_is_found_out_before_measuring(bucket, elsewhere):
    here = elsewhere("here")
    check_writable(here)
    assert names_in(bucket) == []
    bucket.delete()
    try:
        with pytest.raises(RecordError, match=f"{URL}: .writable-.* cannot be written: "):
            check_writable(here)
    finally:
        bucket.create()


def test_a_record_is_taken_in_once(bucket, elsewhere):
    original = small()
    write_run(elsewhere("here"), original)
    intake = Intake(elsewhere("there"))
    assert intake.add(original, encode(original)) is False


def test_a_record_is_judged_once_for_every_machine_that_shares_a_database(
    bucket, elsewhere, tmp_path, monkeypatch
):
    monkeypatch.setenv("HYBRIDWATCH_DATABASE", f"sqlite:///{tmp_path}/shared.sqlite")
    here = elsewhere("here")
    write_run(here, small(1))
    read = []
    open_index(here, lambda *step: read.append(step))
    there = elsewhere("there")
    write_run(there, small(2))
    open_index(there, lambda *step: read.append(step))
    open_index(elsewhere("here"), lambda *step: read.append(step))
    assert read == [(0, 1), (1, 1), (0, 1), (1, 1), (0, 0)]


def test_messages_name_the_store_and_not_its_mirror(bucket, elsewhere):
    assert with_results(elsewhere("here")) == f" --results {URL}"


def test_file_urls_are_folders(tmp_path):
    assert results_folder(f"file://{tmp_path}/my%20results") == tmp_path / "my results"
    assert results_folder("results").name == "results"
    assert mirror_at(tmp_path) is None


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("ftp://host/x", "one of 'ftp'"),
        ("s3://user:secret@bucket/x", "a user, a password or options in it"),
        ("s3://bucket/x?token=secret", "a user, a password or options in it"),
        ("s3:///x", "one without a bucket"),
        ("file://other/x", "a file URL of another machine"),
    ],
)
def test_other_urls_are_refused_without_what_may_be_secret(url, found):
    with pytest.raises(RecordError) as refused:
        results_folder(url)
    assert str(refused.value).endswith(f"found {found}")
    assert "secret" not in str(refused.value)


def test_stores_with_like_names_have_mirrors_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    urls = ("s3://a/b", "s3://a-b", "gs://a/b", "s3://a/b/")
    folders = [results_folder(url) for url in urls]
    assert len(set(folders)) == 3
    assert folders[0] == folders[3]


def test_a_damaged_marker_is_named(tmp_path):
    (tmp_path / ".remote.json").write_text(json.dumps([]))
    with pytest.raises(RecordError, match=r"\.remote\.json: expected the URL of an object store"):
        mirror_at(tmp_path)


def test_names_next_to_records_are_not_listed_as_records(bucket, elsewhere):
    here = elsewhere("here")
    write_run(here, small())
    assert [path.name.endswith(BULK_SUFFIX) for path in islice(list_records(here), 2)] == [False]
