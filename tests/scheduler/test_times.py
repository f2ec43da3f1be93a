"""AS-30: when a task runs next, against a walk over every minute of a zone's clock."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.scheduler.times import BadValue, check_value, following, matches, next_run, to_instant
from bowerbird.store.rows.schedules import TaskRow

ROME = ZoneInfo("Europe/Rome")
MINUTE = timedelta(minutes=1)


def task(kind: str, value: str, created: str = "2026-03-01T00:00:00+00:00", **more: object) -> TaskRow:
    return TaskRow(id="a1b2c3d4", prompt="x", type=kind, value=value, created_at=created, **more)  # type: ignore[arg-type]


# ---------------------------------------------------------------- cron against a walk

fields = st.tuples(
    st.sets(st.integers(0, 59), min_size=1, max_size=4),
    st.sets(st.integers(0, 23), min_size=1, max_size=6),
    st.sampled_from(["*", "1-15", "28-31", "29"]),
    st.sampled_from(["*", "3,10,11", "4", "1-12/2"]),
    st.sampled_from(["*", "0", "1-5"]),
)
DAYS = {"*": range(1, 32), "1-15": range(1, 16), "28-31": range(28, 32), "29": [29]}
MONTHS = {"*": range(1, 13), "3,10,11": [3, 10, 11], "4": [4], "1-12/2": range(1, 13, 2)}
WEEKDAYS = {"*": range(7), "0": [0], "1-5": range(1, 6)}


def shows(wall: datetime, line: tuple[set[int], set[int], str, str, str]) -> bool:
    """Whether a minute of the wall clock is meant by a cron line."""
    minutes, hours, days, months, weekdays = line
    if wall.minute not in minutes or wall.hour not in hours or wall.month not in MONTHS[months]:
        return False
    day, weekday = wall.day in DAYS[days], (wall.weekday() + 1) % 7 in WEEKDAYS[weekdays]
    # Where both name days, one of the two is enough.
    return (day or weekday) if days != "*" and weekdays != "*" else (day and weekday)


def walked(
    line: tuple[set[int], set[int], str, str, str], zone: ZoneInfo, start: datetime, end: datetime
) -> list[datetime]:
    """Walk over the instants of every minute: a wall time counts when it is first shown, or skipped over."""
    found: list[datetime] = []
    seen = start.astimezone(zone).replace(tzinfo=None)
    at = start
    while at < end:
        at += MINUTE
        wall = at.astimezone(zone).replace(tzinfo=None)
        # Minutes of the wall clock that come now for the first time: one, none in an hour that comes again,
        # all of a gap at its end.
        fresh: list[datetime] = []
        while seen < wall:
            seen += MINUTE
            fresh.append(seen)
        if any(shows(minute, line) for minute in fresh):
            found.append(at)
    return found


@settings(max_examples=25, deadline=None)
@given(
    line=fields,
    zone=st.sampled_from(["Europe/Rome", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"]),
    around=st.sampled_from(
        ["2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-05", "2026-10-04"]
    ),
    shift=st.integers(-2000, 500),
)
def test_a_cron_line_means_the_minutes_that_a_walk_over_the_clock_finds(
    line: tuple[set[int], set[int], str, str, str], zone: str, around: str, shift: int
) -> None:
    """AS-30: a skipped local time fires at the first valid instant, a doubled one once."""
    start = from_iso(f"{around}T01:00:00+00:00") + timedelta(minutes=shift)
    end = start + timedelta(days=2)
    minutes, hours, *rest = line
    text = " ".join([",".join(map(str, sorted(minutes))), ",".join(map(str, sorted(hours))), *rest])
    expected = walked(line, ZoneInfo(zone), start, end)
    got: list[datetime] = []
    for at in matches(text, ZoneInfo(zone), start):
        if at > end:
            break
        got.append(at)
    assert got == expected, text


def test_half_past_two_in_rome_comes_once_on_each_day_of_both_clock_changes() -> None:
    """AS chapter, acceptance 10."""
    for first, count in (("2026-03-27T12:00:00+00:00", 5), ("2026-10-23T12:00:00+00:00", 5)):
        found = list(islice(matches("30 2 * * *", ROME, from_iso(first)), count))
        days = [at.astimezone(ROME).date() for at in found]
        assert days == [days[0] + timedelta(days=n) for n in range(count)]
    spring = list(islice(matches("30 2 * * *", ROME, from_iso("2026-03-28T12:00:00+00:00")), 1))
    assert to_iso(spring[0]) == "2026-03-29T01:00:00.000000+00:00"  # 03:00, where 02:30 is skipped
    autumn = list(islice(matches("30 2 * * *", ROME, from_iso("2026-10-24T12:00:00+00:00")), 2))
    assert [to_iso(at)[:16] for at in autumn] == ["2026-10-25T00:30", "2026-10-26T01:30"]


@given(
    st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31)),
    st.sampled_from(["Europe/Rome", "Pacific/Apia"]),
)
def test_a_wall_time_is_the_first_instant_at_which_clocks_show_it_or_a_later_one(
    wall: datetime, name: str
) -> None:
    zone = ZoneInfo(name)
    instant = to_instant(wall, zone)
    shown = instant.astimezone(zone).replace(tzinfo=None)
    assert shown >= wall
    if shown == wall:
        before = (instant - timedelta(hours=2)).astimezone(zone).replace(tzinfo=None)
        assert before < wall
    else:
        assert (instant - timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None) < wall


def test_a_whole_day_that_a_zone_skipped_is_its_end() -> None:
    apia = ZoneInfo("Pacific/Apia")
    assert (
        to_instant(datetime(2011, 12, 30, 12), apia).astimezone(apia).isoformat()[:16] == "2011-12-31T00:00"
    )


# ---------------------------------------------------------------- the three types


def test_a_cron_task_made_at_half_past_seven_for_eight_does_not_run_before() -> None:
    """AS chapter, acceptance 8."""
    made = task("cron", "0 8 * * *", "2026-03-02T07:30:00+00:00")
    assert next_run(made, from_iso("2026-03-01T00:00:00+00:00")) == from_iso("2026-03-02T08:00:00+00:00")
    assert next_run(made, from_iso("2026-03-02T07:31:00+00:00")) == from_iso("2026-03-02T08:00:00+00:00")


def test_an_interval_counts_from_the_making_then_from_the_last_start() -> None:
    """AS-30."""
    made = task("interval", "90", "2026-03-02T07:30:00+00:00")
    assert next_run(made, datetime.now(UTC)) == from_iso("2026-03-02T07:31:30+00:00")
    ran = task("interval", "90", "2026-03-02T07:30:00+00:00", last_run="2026-03-05T00:00:00+00:00")
    assert next_run(ran, datetime.now(UTC)) == from_iso("2026-03-05T00:01:30+00:00")


@pytest.mark.parametrize(
    ("value", "tz", "instant"),
    [
        ("2026-07-01T09:00", "Europe/Rome", "2026-07-01T07:00"),
        ("2026-07-01T09:00+00:00", "Europe/Rome", "2026-07-01T09:00"),
        ("2026-07-01T09:00:00Z", "UTC", "2026-07-01T09:00"),
        ("2026-03-29T02:30", "Europe/Rome", "2026-03-29T01:00"),
        ("2026-10-25T02:30", "Europe/Rome", "2026-10-25T00:30"),
    ],
)
def test_a_time_without_offset_is_one_of_its_zone(value: str, tz: str, instant: str) -> None:
    """AS-30."""
    at = next_run(task("once", value, tz=tz), datetime.now(UTC))
    assert at is not None and to_iso(at)[:16] == instant
    over = task("once", value, tz=tz, last_run="2027-01-01T00:00:00+00:00")
    assert next_run(over, datetime.now(UTC)) is None


def test_the_next_three_runs_are_those_that_follow() -> None:
    """UI-35."""
    start = from_iso("2026-10-25T00:30:00+00:00")
    found = following(task("cron", "30 2 * * *", tz="Europe/Rome"), start, 3)
    assert [to_iso(at)[:16] for at in found] == ["2026-10-25T00:30", "2026-10-26T01:30", "2026-10-27T01:30"]
    assert following(task("interval", "60"), start, 2) == [start, start + timedelta(seconds=60)]


# ---------------------------------------------------------------- rubbish


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("cron", "* * * * * *"), ("cron", "* * * *"), ("cron", "61 * * * *"), ("cron", "0 0 30 2 *"),
        ("cron", "R * * * *"), ("cron", "@daily"), ("cron", ""), ("cron", "*/0 * * * *"), ("cron", "{}"),
        ("interval", "{}"), ("interval", "nan"), ("interval", "inf"), ("interval", "0"), ("interval", "-5"),
        ("interval", "1e300"), ("once", "{}"), ("once", "tomorrow"), ("once", "2026-13-01T00:00"),
        ("once", "9999-12-31T23:59-23:00"),
    ],
)  # fmt: skip
def test_what_says_no_time_is_named(kind: str, value: str) -> None:
    """AS-31."""
    with pytest.raises(BadValue):
        check_value(kind, value, "UTC")


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(["cron", "interval", "once"]), value=st.text(max_size=40), tz=st.text(max_size=12)
)
def test_no_text_does_more_than_be_refused(kind: str, value: str, tz: str) -> None:
    """AS-31: whatever people and models write."""
    for zone in ("UTC", tz):
        try:
            check_value(kind, value, zone)
        except BadValue as error:
            assert str(error)
