"""The templates, and the filters that they use."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader

from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import escaped

from . import words


def environment() -> Environment:
    """Return the templates: everything is escaped; what an older document does not have is empty."""
    made = Environment(
        loader=PackageLoader("specmine.web"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "name": words.name,
        "units": lambda text: typeset(escaped(str(text))),
        "plain": lambda text: escaped(str(text)),
        "function_address": words.function_address,
    }
    for each in made.list_templates():  # now, not when first asked for: by then the files may be out of reach
        made.get_template(each)
    return made
