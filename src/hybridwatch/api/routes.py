"""Everything that is served: one table, of which the description and the server are made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from hybridwatch.api import answers, endpoints, queries
from hybridwatch.api.view import Snapshot
from hybridwatch.database.tokens import Scope

PREFIX: Final = "/v1"


@dataclass(frozen=True, slots=True)
class Route:
    """One question.

    Attributes:
        path: Below the prefix; names in braces are given to ``answer``.
        answer: Makes the answer: of the store, the names in the path, and the parameters.
        query: What may be asked.
        schema: What is answered.
        stamp: Of the store and the names in the path: what changes when the answer does. It costs
            little, and comes before the answer is made.
        refusals: What else may be answered, beside what every question may get.
        scope: What a token has to allow.
    """

    path: str
    answer: Callable[[Snapshot, endpoints.Named, Any], dict[str, Any]]
    query: type[queries.Nothing]
    schema: type[BaseModel]
    stamp: Callable[[Snapshot, endpoints.Named], str] = endpoints.stamp_of_store
    refusals: tuple[int, ...] = ()
    scope: Scope = Scope.READ

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return (self.answer.__doc__ or "").partition("\n")[0]


ROUTES: Final = (
    Route("/runs", endpoints.runs, queries.RunsQuery, answers.RunPage, refusals=(404,)),
    Route("/runs/{run}", endpoints.run, queries.Nothing, answers.RunItem, refusals=(404,)),
    Route(
        "/runs/{run}/report",
        endpoints.report,
        queries.Nothing,
        answers.ReportAnswer,
        stamp=endpoints.stamp_of_run,
        refusals=(404, 409),
    ),
    Route("/series", endpoints.series, queries.SeriesQuery, answers.SeriesPage, refusals=(404,)),
    Route(
        "/series/{series}",
        endpoints.levels,
        queries.LevelsQuery,
        answers.LevelPage,
        refusals=(404,),
    ),
    Route(
        "/alerts",
        endpoints.alerts,
        queries.AlertsQuery,
        answers.AlertPage,
        stamp=endpoints.stamp_of_alerts,
        refusals=(404,),
    ),
)
