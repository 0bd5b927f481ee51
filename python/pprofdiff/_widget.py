"""The flame graph's widget, which reports the selected frame to Python."""

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(
        f"the widget of a flame graph needs {e.name}: pip install anywidget", name=e.name
    ) from None

# Replaces typing.TYPE_CHECKING: importing `typing` takes longer than importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._native import FlameGraph

# The graph is inside a sandboxed iframe, as in every notebook. It posts the selected frame as a message.
SCRIPT = """
function render({ model, el }) {
  el.innerHTML = model.get("_html");
  const graph = el.querySelector("iframe");
  const hear = ({ source, data }) => {
    if (source !== graph.contentWindow) return;
    model.set({ frame: data.frame, stack: data.stack });
    model.save_changes();
  };
  addEventListener("message", hear);
  return () => removeEventListener("message", hear);
}
export default { render };
"""


class FlameGraphWidget(anywidget.AnyWidget):
    """A flame graph in a notebook. Created by FlameGraph.widget().

    `frame` is the name of the frame that was selected last, by a click or with the arrow keys, and `stack` is the list
    of names in its stack, root first. Without a selection, `frame` is None and `stack` is empty. `observe(function,
    "stack")` calls a function after each selection.
    """

    _esm = SCRIPT
    _html = traitlets.Unicode().tag(sync=True)
    frame = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    stack = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, graph: "FlameGraph") -> None:
        super().__init__(_html=graph._repr_html_())
