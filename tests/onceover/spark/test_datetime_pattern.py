"""Datetime patterns that Spark takes in another sense: what Spark makes of them, and which the check names."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from onceover.spark.datetime_pattern import DatetimePattern

# What `to_timestamp` makes of a text by the pattern, and how each doubt begins.
READ = [
    ("yyyy-MM-dd HH:mm", "2013-02-05 12:15", "2013-02-05 12:15:00", []),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2013-02-05T06:07:30.5+01:00", "2013-02-05 05:07:30.5", []),
    ("dd.MM.yy H.m", "5.2.13 6.7", None, []),
    ("d.M.yy H.m", "5.2.13 6.7", "2013-02-05 06:07:00", []),
    ("MMM d, yyyy h:mm:ss a", "Feb 5, 2013 12:15:00 AM", "2013-02-05 00:15:00", []),
    ("yyyyDDD", "2013036", "2013-02-05 00:00:00", []),
    ("HH:mm MM/dd/yyyy", "06:07 02/05/2013", "2013-02-05 06:07:00", []),
    ("[yyyy-MM-dd][ 'mm' HH:mm]", "2013-02-05", "2013-02-05 00:00:00", []),
    ("yyyy-MM", "2013-02", "2013-02-01 00:00:00", []),
    (
        "yyyy-MM-dd hh:mm",
        "2013-02-05 12:15",
        "2013-02-05 00:15:00",
        ["`hh` without `a` reads 12:15 as 00:15, and not 13:15"],
    ),
    ("yyyy-MM-dd hh:mm", "2013-02-05 13:15", None, ["`hh` without `a`"]),
    ("yyyy-MM-dd K:mm", "2013-02-05 12:15", None, ["`K` without `a` reads no hour from 12:00 on"]),
    ("yyyy-MM-dd KK:mm a", "2013-02-05 12:15 PM", None, ["`KK` does not read 12:15 PM"]),
    ("yyyy-MM-dd HH:mm a", "2013-02-05 01:15 PM", None, ["`HH` beside `a` does not read 01:15 PM"]),
    ("yyyy-MM-dd kk:mm", "2013-02-05 00:15", None, ["`kk` does not read 00:15"]),
    ("yyyy-MM-DD", "2013-02-05", None, ["`DD` is the day of the year"]),
    ("yyyy-DD", "2013-36", "2013-02-05 00:00:00", ["`DD` is the day of the year, 36 for 5 February"]),
    ("yyyy-mm-dd", "2013-02-05", "2013-01-05 00:02:00", ["`mm` is the minute, here in a date"]),
    ("dd/mm/yyyy HH:mm", "05/07/2013 06:07", "2013-01-05 06:07:00", ["`mm` is the minute, here in a date"]),
    ("yyyy-mm-dd HH:MM", "2013-02-05 06:07", "2013-07-05 06:02:00", ["`mm` is the minute", "`MM` is the month"]),
    ("yyyyMMdd HHMM", "20130205 0607", None, ["`MM` is the month, here in a time of day"]),
    ("yyyy-MM-dd HH:mm:SS", "2013-02-05 06:07:30", "2013-02-05 06:07:00.3", ["`SS` is a fraction of a second"]),
    ("yyyy-MM-dd HH:mm:ss.ss", "2013-02-05 06:07:30.12", None, ["`ss` is the second once more"]),
    ("yyyy-dd", "2013-05", "2013-01-05 00:00:00", ["it has the day and no month"]),
    ("yyyy-MM-dd HH:ss", "2013-02-05 06:07", "2013-02-05 06:00:07", ["it has the second and no minute"]),
    ("yyyy-MM-dd HH:mm z", "2013-02-05 06:07 EST", "2013-02-05 11:07:00", ["`z` reads a zone's short name"]),
]
WRITTEN = [  # 2013-12-30 00:15:45.678
    ("yyyy-MM-dd HH:mm:ss.SSS", "2013-12-30 00:15:45.678", []),
    ("mm", "15", []),
    ("EEE h a", "Mon 12 AM", []),
    ("HH:mm a", "00:15 AM", []),
    ("yyyy-MM-dd hh", "2013-12-30 12", ["`hh` without `a` writes 01:15 and 13:15 alike"]),
    ("KK a", "00 AM", ["`KK` writes 12:15 PM as 00:15 PM"]),
    ("kk", "24", ["`kk` writes 00:15 as 24:15"]),
    ("yyyy-MM-DD", "2013-12-364", ["`DD` is the day of the year"]),
    ("yyyy-mm", "2013-15", ["`mm` is the minute, here in a date"]),
    ("HH:MM", "00:12", ["`MM` is the month, here in a time of day"]),
    ("mm:SS", "15:67", ["`SS` is a fraction of a second"]),
]


@pytest.mark.parametrize(("pattern", "doubts", "reads"), [
    *((pattern, doubts, True) for pattern, _, _, doubts in READ),
    *((pattern, doubts, False) for pattern, _, doubts in WRITTEN),
])  # fmt: skip
def test_pattern_that_its_author_hardly_means_is_named(pattern: str, doubts: list[str], reads: bool) -> None:
    found = DatetimePattern(pattern, reads).list_doubts()
    assert [doubt.what[: len(words)] for doubt, words in zip(found, doubts, strict=True)] == doubts


@pytest.mark.spark
def test_spark_reads_and_writes_patterns_as_the_doubts_say(spark: SparkSession) -> None:
    read = [f'CAST(try_to_timestamp("{text}", "{pattern}") AS STRING)' for pattern, text, _, _ in READ]
    written = [f"date_format(TIMESTAMP '2013-12-30 00:15:45.678', '{pattern}')" for pattern, _, _ in WRITTEN]

    (row,) = spark.sql(f"VALUES ({', '.join([*read, *written])})").collect()

    assert list(row) == [*(value for _, _, value, _ in READ), *(value for _, value, _ in WRITTEN)]
