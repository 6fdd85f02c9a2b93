"""Print the tests of JUnit reports that ran: result, seconds and name, one line each."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree


def result_of(case: ElementTree.Element) -> str:
    """How one test ended."""
    for tag, word in (("failure", "FAILED"), ("error", "ERROR"), ("skipped", "skipped")):
        if case.find(tag) is not None:
            return word
    return "passed"


def main(paths: list[str]) -> int:
    """Print one table of some reports; 1 if they hold no test at all."""
    roots = [ElementTree.parse(path).getroot() for path in paths]
    cases = [case for root in roots for case in root.iter("testcase")]
    for case in cases:
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        print(f"{result_of(case):8} {float(case.get('time', '0')):8.2f} s  {name}")
    results = [result_of(case) for case in cases]
    print(", ".join(f"{results.count(word)} {word}" for word in sorted(set(results))) or "no test")
    return 0 if cases else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
