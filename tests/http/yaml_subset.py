"""YAML as far as the files of docs/ use it, strictly: block mappings and lists indented by two, plain and double-quoted
texts on one line, `|` blocks, whole-line comments. Anything else is a ValueError with its line."""
import json
import re

KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):(?: (.+))?$")


class Reader:
    def __init__(self, text):
        self.lines = [(number, line) for number, line in enumerate(text.split("\n"), 1)
                      if line.strip() and not line.lstrip().startswith("#")]
        self.at = 0
        for number, line in self.lines:
            if "\t" in line or line != line.rstrip():
                raise ValueError(f"line {number}: a tab, or blanks at the end: {line!r}")

    def indent(self):
        """Of the line at hand; -1 at the end."""
        if self.at == len(self.lines):
            return -1
        line = self.lines[self.at][1]
        return len(line) - len(line.lstrip(" "))

    def fail(self, why):
        number, line = self.lines[min(self.at, len(self.lines) - 1)]
        raise ValueError(f"line {number}: {why}: {line}")

    def scalar(self, text):
        if text.startswith('"'):
            try:
                return json.loads(text)
            except ValueError:
                self.fail("a quoted text that does not end as it should")
        if text[0] in "'[]{},&*!%@`>" or text[-1] == ":" or ": " in text or " #" in text:
            self.fail("quote this text")
        return text

    def block(self, indent):
        lines = []
        while self.indent() >= indent:
            lines.append(self.lines[self.at][1][indent:])
            self.at += 1
        if not lines:
            self.fail("an empty block")
        return "\n".join(lines) + "\n"

    def value(self, indent):
        """The mapping or list whose lines begin at `indent`."""
        if self.indent() != indent:
            self.fail(f"should be indented by {indent}")
        if not self.lines[self.at][1][indent:].startswith("- "):
            return self.mapping(indent)
        items = []
        while self.indent() == indent and self.lines[self.at][1][indent:].startswith("- "):
            number, line = self.lines[self.at]
            self.lines[self.at] = (number, line[:indent] + "  " + line[indent + 2:])
            items.append(self.mapping(indent + 2))
        return items

    def mapping(self, indent):
        result = {}
        while self.indent() == indent:
            match = KEY.match(self.lines[self.at][1][indent:])
            if not match or match.group(1) in result:
                self.fail("a key that is none, or is there already")
            key, text = match.groups()
            plain = self.scalar(text) if text and text != "|" else None
            self.at += 1
            result[key] = plain or (self.block(indent + 2) if text else self.value(indent + 2))
        if self.indent() > indent:
            self.fail(f"should be indented by {indent}")
        return result


def read(text):
    reader = Reader(text)
    result = reader.value(0)
    if reader.at != len(reader.lines):
        reader.fail("belongs to nothing")
    return result
