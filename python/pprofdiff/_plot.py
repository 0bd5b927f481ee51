"""The charts of plot(): an altair chart if altair is installed, otherwise a chart that notebooks render."""

import json

# Replaces typing.TYPE_CHECKING: importing `typing` takes longer than importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Plot:
    """A Vega-Lite chart. JupyterLab and VS Code render it without any other package. If altair is installed, plot()
    returns an altair chart instead.
    """

    def __init__(self, spec: "dict[str, Any]") -> None:
        self.spec = spec

    def to_dict(self) -> "dict[str, Any]":
        """Returns the specification, including the data."""
        return self.spec

    def to_json(self) -> str:
        """Returns the specification as JSON, for vega-embed, vl-convert and other tools."""
        return json.dumps(self.spec)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> "dict[str, Any]":
        # JupyterLab 4.6 supports only Vega-Lite 5. The chart looks the same in both versions.
        older = self.spec | {"$schema": "https://vega.github.io/schema/vega-lite/v5.json"}
        bundle = {"application/vnd.vegalite.v6+json": self.spec, "application/vnd.vegalite.v5+json": older}
        return {**bundle, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Plot of {self.spec['title']['text']}, for a notebook or .to_json()>"


def chart(spec: str) -> "Any":
    """Creates the chart of a JSON specification."""
    try:
        import altair
    except ModuleNotFoundError:
        return Plot(json.loads(spec))
    return altair.Chart.from_dict(json.loads(spec))
