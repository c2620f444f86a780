"""HTML into which every text goes harmlessly: nothing of it is markup, nothing steers the page."""

from typing import Any, Self

import markupsafe

from hybridwatch.plain_text import visible


class Markup(markupsafe.Markup):
    """As markupsafe's; characters that nobody sees and that turn text around become escapes."""

    @classmethod
    def escape(cls, s: Any, /) -> Self:
        """Make HTML of whatever is put into some."""
        return super().escape(s if hasattr(s, "__html__") else visible(str(s)))
