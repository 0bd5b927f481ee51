"""The widget of a flame graph: tells Python which frame was chosen in it."""

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(
        f"the widget of a flame graph needs {e.name}: pip install 'pprofdiff[notebook]'", name=e.name
    ) from None

# As in `typing`, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._native import FlameGraph

# The graph is in the sandboxed frame in which notebooks show it anyway, and says what is chosen in it.
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
    """A flame graph in a notebook, made by FlameGraph.widget().

    `frame` is the name in the box that was chosen last, by a click or with the arrow keys, and `stack` the names of its
    stack, root first. Where no frame is chosen, frame is None and stack empty. `observe(function, "stack")` calls a
    function with each choice.
    """

    _esm = SCRIPT
    _html = traitlets.Unicode().tag(sync=True)
    frame = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    stack = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, graph: "FlameGraph") -> None:
        super().__init__(_html=graph._repr_html_())
