"""What plot() returns: altair's chart where altair is installed, else one that notebooks draw by themselves."""

import json

# As in `typing`, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Plot:
    """A chart in Vega-Lite. JupyterLab and VS Code draw it without any other package; with altair installed plot()
    returns a chart of altair's in its place.
    """

    def __init__(self, spec: "dict[str, Any]") -> None:
        self.spec = spec

    def to_dict(self) -> "dict[str, Any]":
        """The specification, with the data in it."""
        return self.spec

    def to_json(self) -> str:
        """The specification as JSON, for vega-embed, vl-convert and other tools."""
        return json.dumps(self.spec)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> "dict[str, Any]":
        # What is drawn here is the same in both versions; JupyterLab 4.6 knows the older only.
        older = self.spec | {"$schema": "https://vega.github.io/schema/vega-lite/v5.json"}
        drawn = {"application/vnd.vegalite.v6+json": self.spec, "application/vnd.vegalite.v5+json": older}
        return {**drawn, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Plot of {self.spec['title']['text']}, for a notebook or .to_json()>"


def chart(spec: str) -> "Any":
    """The chart of a specification in JSON."""
    try:
        import altair
    except ModuleNotFoundError:
        return Plot(json.loads(spec))
    return altair.Chart.from_dict(json.loads(spec))
