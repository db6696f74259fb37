"""The result of a check as JUnit XML, which continuous integration shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from specmine.model.text import escaped


def junit(document: Mapping[str, Any]) -> str:
    """Return a test suite: a formula a case, violated as a failure, unknown as skipped."""
    formulas, counts = document["formulas"], document["counts"]
    suite = ElementTree.Element(
        "testsuite",
        name="specmine check",
        tests=str(len(formulas)),
        failures=str(counts["violated"]),
        skipped=str(counts["unknown"]),
        errors="0",
    )
    for each in formulas:
        words = escaped(" ".join(each["text"].split()))
        # what is asserted is part of the text: a case keeps its name when that is learned anew
        name = escaped(each["name"]) if each["name"] else words.partition(" ~ ")[0]
        case = ElementTree.SubElement(suite, "testcase", classname="specmine.check", name=name)
        evidence = escaped(json.dumps(each["evidence"], ensure_ascii=False))
        if each["verdict"] == "violated":
            ElementTree.SubElement(case, "failure", message=words).text = evidence
        elif each["verdict"] == "unknown":
            ElementTree.SubElement(case, "skipped", message=escaped(str(each["evidence"].get("reason", words))))
        else:
            ElementTree.SubElement(case, "system-out").text = evidence
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
