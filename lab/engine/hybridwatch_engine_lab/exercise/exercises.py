"""What each fix does, as something to see: the modules of the fixes say it."""

from typing import Final

from hybridwatch_engine.fixes.fix import Exercise
from hybridwatch_engine.fixes.registry import FIXES

EXERCISES: Final[dict[str, Exercise]] = {
    fix_id: fix.exercise for fix_id, fix in FIXES.items() if fix.exercise is not None
}
"""By fix; a fix made of parts is seen by its parts."""
