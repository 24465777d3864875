"""The keys and values that a TOML may have, and the message for each other one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.onceover.config.small_pipeline import SMALLEST, mistakes, written

from onceover.config.pipeline_file import read_pipeline
from onceover.config.pipelines import find
from onceover.errors import ConfigurationError
from onceover.model.batch_plan import SHARDING
from onceover.model.contract import Contract, Key
from onceover.model.measures import Measure
from onceover.model.pipeline import Pipeline

PROJECT = Path(__file__).parents[3]


def test_the_shipped_pipeline_is_what_its_file_says() -> None:
    flights = find("flights", PROJECT)

    assert flights.contract.keys == (Key("origin", "value.origin"), Key("carrier", "value.carrier"))
    assert flights.contract.measures == (
        Measure("flights", "count", "*"),
        Measure("delay_sum", "sum", "value.dep_delay"),
        Measure("delay_max", "max", "value.dep_delay"),
    )
    assert flights.contract.window_minutes == 60
    assert (flights.contract.horizon_ms, flights.contract.skew_ms) == (172_800_000, 86_400_000)
    assert (flights.ingest.allowed_lateness_ms, flights.ingest.idle_after_ms) == (3_600_000, 5_000)
    assert flights.storage.raw_root == "/onceover/raw"


def test_all_that_can_be_left_out_has_a_default(tmp_path: Path) -> None:
    orders = read_pipeline(written(tmp_path, SMALLEST))

    assert orders.name == "orders"
    assert orders.contract.format == "json"
    assert orders.contract.tombstone == "quarantine"
    assert orders.contract.keys == ()
    assert (orders.contract.horizon_ms, orders.contract.skew_ms) == (30 * 86_400_000, 86_400_000)
    assert orders.ingest.group == "onceover-orders"
    assert orders.ingest.interval_ms == 2_000
    assert orders.repair.max_tries == 3
    assert orders.kafka == {}


def test_a_bound_may_be_none(tmp_path: Path) -> None:
    text = SMALLEST + '[contract.bounds]\nhorizon = "none"\nskew = "90s"\n'

    orders = read_pipeline(written(tmp_path, text))

    assert (orders.contract.horizon_ms, orders.contract.skew_ms) == (None, 90_000)


def test_every_mistake_is_named_at_once_with_file_key_and_remedy(tmp_path: Path) -> None:
    text = """
    colour = "red"
    [contract]
    topik = "orders"
    window_minutes = 7
    schema = "paid_at STRING"
    event_time = ""
    [contract.keys]
    window_start = "value.a"
    Country = "value.country"
    amount = "value.b"
    xmin = "value.c"
    [contract.measures]
    amount = { sum = "value.amount" }
    largest = { maximum = "value.amount" }
    all = { sum = "*" }
    fine = { avg = "value.x", scale = 19 }
    coarse = { sum = "value.x", scale = 2 }
    plain = "value.x"
    [contract.bounds]
    horizon = "2 weeks"
    [ingest]
    idle_after = "0s"
    max_records_per_batch = true
    offset_store = "checkpoint"
    sharding = "backlogs"
    sink = "transaction"
    [storage]
    raw_root = "/raw/../etc"
    [repair]
    eager = "yes"
    [kafka]
    security.protocol = "SSL"
    group.id = "mine"
    "sasl.password" = "hunter2"
    """

    expected = [
        "contract.topic: missing; take a topic's name: at most 249 letters, digits, dots, _ and -, but not . or ..",
        "contract.topik: unknown key; did you mean `topic`?",
        "contract.window_minutes: 7 does not divide a day of 1440 minutes; take 6",
        "contract.event_time: is empty; write SQL such as to_timestamp(value.at)",
        "contract.keys.window_start: each table of aggregates already has a column of that name; take another name",
        "contract.keys.Country: cannot be a column's name; take a small letter, then at most 40 small letters, "
        "digits or _",
        "contract.keys.xmin: each PostgreSQL table already has a column of that name; take another name",
        "contract.measures.amount: a key has the same name; rename one of them",
        "contract.measures.largest: a measure has exactly one operation; "
        'write largest = { sum = "value.x" }, or count, count_if, min, max, avg, min_by, max_by, approx_count_distinct',
        "contract.measures.all.sum: only a count takes *; name what to take, such as value.x",
        "contract.measures.fine.scale: '19' is no number of digits; write one from 0 to 18",
        "contract.measures.coarse.scale: only an avg has a scale; leave it out",
        "contract.measures.plain: 'value.x' is not a table; write [contract.measures.plain] above its keys",
        "contract.bounds.horizon: '2 weeks' is not a duration; "
        'write it like "90s", "15m", "1h" or "2d", at most 3650d',
        "ingest.idle_after: '0s' is too short; take at least \"1ms\"",
        "ingest.max_records_per_batch: 'True' is not a whole number; write a number from 1, below 2^31",
        "ingest.offset_path: a checkpoint needs its path on HDFS; take an absolute path such as "
        "/checkpoints/flights, without hdfs://, spaces, //, /./, /../ or a / at the end, or leave it out",
        f"ingest.sharding: 'backlogs' is not one of {', '.join(SHARDING)}; did you mean `backlog`?",
        "ingest.sink: 'transaction' is not one of append, transactional; did you mean `transactional`?",
        "repair.eager: 'yes' is neither true nor false; write true or false, without quotes",
        "storage.raw_root: '/raw/../etc' is not valid; take an absolute path such as /onceover/raw, without "
        "hdfs://, spaces, //, /./, /../ or a / at the end",
        "kafka.group.id: not one of the client properties a pipeline may set; remove it; group and isolation are in "
        "[ingest]",
        "kafka.sasl.password: a secret does not belong in this file; put it into the environment as "
        "ONCEOVER_KAFKA_SASL_PASSWORD, or into a file named there as ONCEOVER_KAFKA_SASL_PASSWORD_FILE",
        "colour: unknown key; known are contract, ingest, kafka, repair, storage",
    ]
    assert sorted(mistakes(tmp_path, text)) == sorted(f"pipelines/orders.toml: {each}" for each in expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[contract]\ntopic = orders\n", "not TOML: Invalid value (at line 2, column 9)"),
        ("[contract]\n[contract]\n", "line 2"),
        ("", "contract: missing; write [contract] above its keys"),
    ],
)
def test_a_malformed_file_is_reported_in_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert message in mistakes(tmp_path, text)[0]


def test_a_file_in_another_encoding_is_reported_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, SMALLEST)
    path.write_bytes(b"# one\n# caf\xe9\n")

    with pytest.raises(ConfigurationError, match="line 2 is not UTF-8"):
        read_pipeline(path)


@pytest.mark.parametrize("root", ["raw", "/raw/", "//raw", "hdfs://host/raw", "/raw dir", "/", "/a:b", "/raw/."])
def test_a_raw_root_is_an_absolute_clean_path(tmp_path: Path, root: str) -> None:
    assert "storage.raw_root" in mistakes(tmp_path, SMALLEST + f'[storage]\nraw_root = "{root}"\n')[0]


def test_a_text_pipeline_has_no_fields(tmp_path: Path) -> None:
    text = SMALLEST.replace('schema = "paid_at STRING"', 'format = "text"\nschema = "a INT"\nrequired = ["a"]')

    messages = mistakes(tmp_path, text)

    assert [line.split(": ")[1] for line in messages] == ["contract.schema", "contract.required"]


def test_json_needs_a_schema(tmp_path: Path) -> None:
    (message,) = mistakes(tmp_path, SMALLEST.replace('schema = "paid_at STRING"', ""))

    assert "contract.schema: missing, and format is json; list the fields" in message


def test_a_pipeline_needs_a_measure(tmp_path: Path) -> None:
    (message,) = mistakes(tmp_path, SMALLEST.replace('{ orders = { count = "*" } }', "{}"))

    assert "contract.measures: is empty" in message


@pytest.mark.parametrize("name", ["Orders.toml", "my orders.toml", "2orders.toml", "o" * 42 + ".toml"])
def test_a_files_name_must_do_as_a_tables_name(tmp_path: Path, name: str) -> None:
    assert "cannot be a pipeline's name; rename the file" in mistakes(tmp_path, SMALLEST, name)[0]


def test_client_properties_are_passed_on_as_text(tmp_path: Path) -> None:
    text = SMALLEST + '[kafka]\nsecurity.protocol = "SSL"\n"fetch.min.bytes" = 1\n"socket.keepalive.enable" = true\n'

    kafka = read_pipeline(written(tmp_path, text)).kafka

    assert kafka == {"security.protocol": "SSL", "fetch.min.bytes": "1", "socket.keepalive.enable": "true"}


def as_csv(layout: str) -> str:
    """Return a pipeline of compressed CSV with that table."""
    of_csv = 'format = "csv"\ncompression = "zstd"\nschema'
    return f"{SMALLEST.replace('schema', of_csv, 1)}[contract.csv]\n{layout}\n"


@pytest.mark.parametrize("text", [SMALLEST, as_csv('separator = ";"\nnull = "NULL"')])
def test_a_contract_comes_back_from_its_definition(tmp_path: Path, text: str) -> None:
    contract = read_pipeline(written(tmp_path, text)).contract

    again = Contract.from_definition(contract.definition())

    assert again == contract
    assert again.fingerprint() == contract.fingerprint()
    assert hash(again) == hash(contract)


def test_fingerprint_stays_where_a_later_part_is_not_used(tmp_path: Path) -> None:
    assert (
        not {"csv", "compression", "wire_format"}
        & read_pipeline(written(tmp_path, SMALLEST)).contract.definition().keys()
    )
    of_csv = read_pipeline(written(tmp_path, as_csv("separator = '|'"))).contract
    assert of_csv.definition()["csv"] == {"separator": "|", "quote": '"', "null": ""}


@pytest.mark.parametrize(
    ("layout", "mistake"),
    [
        ('separator = ""', "csv.separator: '' is not one character; write one, such as"),
        ('separator = "||"', "csv.separator: '||' is not one character"),
        (r'separator = "\n"', r"csv.separator: '\n' is not one character"),
        (r'quote = "\u0000"', r"csv.quote: '\x00' is not one character"),
        ("quote = ','", "csv.quote: is the separator too; take two characters"),
        ("separator = '\"'", "csv.quote: is the separator too; take two characters"),
        ("comma = ','", "csv.comma: unknown key"),
    ],
)
def test_csv_table_is_checked(tmp_path: Path, layout: str, mistake: str) -> None:
    (message,) = mistakes(tmp_path, as_csv(layout))

    assert f"contract.{mistake}" in message


@pytest.mark.parametrize("form", ["json", "text"])
def test_csv_table_belongs_to_csv(tmp_path: Path, form: str) -> None:
    text = as_csv("").replace('format = "csv"', f'format = "{form}"')

    assert f'contract.csv: format is {form}; take the table out, or set format = "csv"' in mistakes(tmp_path, text)[0]


def test_csv_and_compression_are_as_written(tmp_path: Path) -> None:
    assert (
        "contract.schema: missing, and format is csv"
        in mistakes(tmp_path, as_csv("").replace('schema = "paid_at STRING"', ""))[0]
    )
    assert "'zst' is not one of none, gzip, zstd" in mistakes(tmp_path, as_csv("").replace('"zstd"', '"zst"'))[0]


def test_fingerprint_changes_with_sql_and_not_with_policy(tmp_path: Path) -> None:
    def fingerprint(text: str) -> str:
        return read_pipeline(written(tmp_path, text)).contract.fingerprint()

    first = fingerprint(SMALLEST)

    assert fingerprint(SMALLEST + '[ingest]\nallowed_lateness = "2h"\n[repair]\nmax_tries = 9\n') == first
    assert fingerprint(SMALLEST.replace("paid_at)", "paid_at )")) != first
    assert fingerprint(SMALLEST.replace("orders = {", "sales = {")) != first


def test_a_pipeline_goes_to_sparks_workers_and_into_sets() -> None:
    import pickle

    flights = find("flights", PROJECT)

    assert isinstance(pickle.loads(pickle.dumps(flights)), Pipeline)
    assert {flights, find("flights", PROJECT)} == {flights}
