"""One of two who act on the same alerts at the same moment; started by ``test_database``."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from hybridwatch.analysis.alert_decisions import TriageConflict
from hybridwatch.analysis.alerts import Alert
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.decisions import TRIAGE_VARIABLE, Triage, open_triage
from tests.unit.analysis.alerts.builders import QUESTION, acknowledge, build_alerts, nights, noon


def look(triage: Triage, scenario: str) -> Alert:
    judged = nights(Verdict.REGRESSION, about=replace(QUESTION, scenario=scenario))
    (alert,) = build_alerts(judged, triage.decisions(), noon(0))
    return alert


def act(triage: Triage, alert: Alert, name: str) -> str:
    try:
        triage.decide(alert, acknowledge("mine"), name, noon(0))
    except TriageConflict as conflict:
        return f"told of {', '.join(entry.who for entry in conflict.meanwhile)}"
    return "won"


def overrule(triage: Triage, alert: Alert, name: str) -> str:
    """The planted defect: whoever is told acts again without asking anybody."""
    while act(triage, alert, name) != "won":
        alert = look(triage, alert.subject.scenario)
    return "won"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(place: str, name: str, rounds: int, planted: bool) -> None:
    os.environ[TRIAGE_VARIABLE] = place
    with open_triage(Path()) as triage:
        for number in range(rounds):
            alert = look(triage, f"round-{number}")
            say("ready")
            sys.stdin.readline()
            say((overrule if planted else act)(triage, alert, name))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), "overrule" in sys.argv)
