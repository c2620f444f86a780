"""In which order several sessions are measured, and which engines come up meanwhile."""

from itertools import groupby

from hybridwatch.measurement.phased_run import STAGES, PhaseStep, group_sizes, plan_steps
from hybridwatch.measurement.plan import TIMED_PHASES
from hybridwatch.records.run import Phase

WHOLE = tuple(Phase)
MUTE = tuple(phase for phase in Phase if phase is not Phase.ACCURACY)
SPEED = TIMED_PHASES


def order(steps):
    return [(step.phases[0], step.session) for step in steps]


def started(step):
    """The sessions whose engines are started during a step."""
    return {one for one in (step.ahead, step.next_up) if one is not None}


def test_what_is_broken_is_known_of_all_before_anything_else_is_measured():
    first, second, third = Phase.CONTRACT, Phase.ACCURACY, Phase.PERFORMANCE
    assert order(plan_steps([WHOLE] * 3, [3])) == [
        (phase, session) for phase in (first, second, third) for session in range(3)
    ]


def test_every_phase_of_every_session_is_measured_once():
    wanted = [WHOLE, MUTE, SPEED]
    for at_once in ([3], [2, 1], [1, 1, 1]):
        steps = plan_steps(wanted, at_once)
        for session, phases in enumerate(wanted):
            made = [phase for step in steps if step.session == session for phase in step.phases]
            assert sorted(made, key=list(Phase).index) == list(phases)
    assert {phase for stage in STAGES for phase in stage} == set(Phase)


def test_engines_come_up_while_sessions_before_them_are_measured():
    contracts = plan_steps([WHOLE] * 4, [4])[:4]
    assert [(step.ahead, step.next_up) for step in contracts] == [
        (1, 2),
        (None, 3),
        (None, None),
        (None, None),
    ]


def test_no_engine_is_started_ahead_after_its_own_turn():
    wanted = [WHOLE, (Phase.ACCURACY,), (Phase.CONTRACT,), SPEED]
    seen: set[int] = set()
    for step in plan_steps(wanted, [4]):
        assert not started(step) & (seen | {step.session})
        seen |= {step.session, *started(step)}


def test_nothing_comes_up_while_something_is_timed():
    for wanted in ([WHOLE] * 3, [SPEED] * 3, [SPEED, WHOLE, MUTE]):
        timed = [step for step in plan_steps(wanted, [3]) if step.phases[0] in TIMED_PHASES]
        assert {(step.ahead, step.next_up, step.clients) for step in timed} == {(None, None, False)}


def test_a_load_client_gets_ready_while_answers_are_measured():
    steps = plan_steps([WHOLE, MUTE, (Phase.ACCURACY,)], [3])
    assert [step.session for step in steps if step.clients] == [0]


def test_an_engine_is_ended_after_the_last_step_of_its_session():
    wanted = [WHOLE, MUTE, SPEED, (Phase.CONTRACT,)]
    steps = plan_steps(wanted, [4])
    for session in range(len(wanted)):
        own = [step.last for step in steps if step.session == session]
        assert own == [False] * (len(own) - 1) + [True]


def test_a_group_is_finished_before_the_next_one_begins():
    steps = plan_steps([WHOLE] * 5, [2, 3])
    groups = [key for key, _ in groupby(step.session < 2 for step in steps)]
    assert groups == [True, False]
    for step in steps:
        assert all((other < 2) == (step.session < 2) for other in started(step))


def test_a_single_session_has_its_phases_in_the_usual_order():
    assert plan_steps([WHOLE], [1]) == (
        PhaseStep(0, (Phase.CONTRACT,)),
        PhaseStep(0, (Phase.ACCURACY,), clients=True),
        PhaseStep(0, TIMED_PHASES, last=True),
    )


def test_as_many_engines_live_side_by_side_as_fit_into_the_memory():
    assert group_sizes([2, 2, 2, 2, 2], free=10) == (5,)
    assert group_sizes([2, 2, 2, 2, 2], free=5) == (2, 2, 1)
    assert group_sizes([9, 2, 2], free=5) == (1, 2)
    assert group_sizes([], free=5) == ()
