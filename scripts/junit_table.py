"""Print the tests of a JUnit report that ran: result, seconds and name, one line each."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree


def result_of(case: ElementTree.Element) -> str:
    """How one test ended."""
    for tag, word in (("failure", "FAILED"), ("error", "ERROR"), ("skipped", "skipped")):
        if case.find(tag) is not None:
            return word
    return "passed"


def main(path: str) -> int:
    """Print the table of one report; 1 if the report holds no test at all."""
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    for case in cases:
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        print(f"{result_of(case):8} {float(case.get('time', '0')):8.2f} s  {name}")
    results = [result_of(case) for case in cases]
    print(", ".join(f"{results.count(word)} {word}" for word in sorted(set(results))) or "no test")
    return 0 if cases else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
