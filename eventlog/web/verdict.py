"""What stands first on the overview: the worst of what needs somebody, or one sentence. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.flow import state_sentence, waiting_reasons
from eventlog.core.plural import count_words, duration
from eventlog.sources.log.flow import Flow
from eventlog.web.addresses import address
from eventlog.web.banners import Banner, banners
from eventlog.web.first_steps import FirstStep, first_steps
from eventlog.web.reading import OLD_SECONDS, PageReading
from eventlog.web.words import word_of


class Verdict(Struct, frozen=True, kw_only=True):
    """One sentence for whoever is on call; a part of it may be a link."""

    state: str = "look here"
    before: str = ""
    link: str = ""
    to: str = ""
    after: str = ""


class Headline(Struct, frozen=True, kw_only=True):
    """The state of the log in a word; a sentence, or else the first of the banners, with how old it is; and on a
    first visit the steps that are left.
    """

    state: str
    verdict: Verdict | None = None
    age: str = ""
    banners: tuple[Banner, ...] = ()
    steps: tuple[FirstStep, ...] = ()


def headline(reading: PageReading) -> Headline:
    """Say how it goes, once: a banner says more than the sentence about the same."""
    found = sorted(banners(reading), key=lambda banner: word_of(banner.state).kind != "bad")
    steps = first_steps(reading)
    if steps and all(banner.state == "no publisher" for banner in found):
        return Headline(state="new", steps=steps)
    age = _age(reading)
    failing = reading.facts is not None and reading.facts.failing
    if found and not (reading.trouble or failing):
        return Headline(state=found[0].state, age=age, banners=tuple(found))
    said = _verdict(reading)
    if age:
        state = "old" if word_of(said.state).kind in ("good", "calm") else said.state
        said = replace(said, state=state, before=f"{age} {said.before}")
    return Headline(state=said.state, verdict=said, banners=tuple(found))


def _age(reading: PageReading) -> str:
    """Say since when nobody has measured; nothing where that is not long ago, or is said anyway."""
    age = 0.0 if reading.latest is None else reading.now - reading.latest.at
    if age <= OLD_SECONDS or reading.trouble:
        return ""
    return f"Measured {duration(age)} ago, and not since."


def _verdict(reading: PageReading) -> Verdict:
    """Say the first that is wrong, else that it flows."""
    loop, facts, flow = reading.loop, reading.facts, reading.flow
    if reading.trouble:
        age = ""
        if reading.latest is not None:
            age = f" The figures below are {duration(reading.now - reading.latest.at)} old."
        return Verdict(state="not read", before=f"The log cannot be read: {reading.trouble}{age}")
    if facts is not None and facts.failing:
        tables = ", ".join(dict.fromkeys(facts.failing.values()))
        why = "a trigger names a column that is gone. `eventlog check` says what to do."
        return Verdict(state="failing", before=f"Every write to {tables} fails: {why}")
    if loop is not None and loop.state == "failing" and not reading.fails_by_an_output:
        return Verdict(state="failing", before=f"The publisher fails: {loop.error or 'it does not say why.'}")
    if flow is None:
        return Verdict(before="Nothing has been measured yet.")
    if facts is not None:
        flow = replace(flow, tracked=bool(reading.triggers))
    # Sentences about outputs have the names that the rest of the page has.
    names = {output.noted: output.name for output in reading.places}
    flow = replace(flow, lags={names.get(noted, noted): lag for noted, lag in flow.lags.items()})
    if flow.state != "flowing" or facts is None:
        return _of_flow(flow)
    failed_rows = sum(facts.rows.get(status, 0) for status in "EF")
    if failed_rows:
        return Verdict(link=f"Not published: {count_words(failed_rows)}.", to=address("rows", status="EF"))
    if facts.triggers:
        return Verdict(before=f"Not current: {count_words(len(facts.triggers), 'trigger')}.")
    return _of_flow(flow)


def _of_flow(flow: Flow) -> Verdict:
    """Describe the state of the log, with the oldest row not held on purpose."""
    if not flow.is_late:
        return Verdict(state=flow.state, before=" ".join([state_sentence(flow), *waiting_reasons(flow)]))
    sentences = () if flow.state == "stuck" else (state_sentence(flow),)
    nobody = () if flow.publishing or sentences else ("No publisher works on this log.",)
    after = " ".join([f", has waited for {duration(flow.lag)}.", *nobody, *waiting_reasons(flow)])
    row, to = f"row {flow.oldest}", address("rows", flow.oldest or 0)
    return Verdict(state=flow.state, before=" ".join([*sentences, "The oldest, "]), link=row, to=to, after=after)
