"""As much of JSON Schema (2020-12) as /openapi.json uses; a keyword that is not known here is an error, not ignored."""
import re

SILENT = {"description", "default"}
FRAMING = {"connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding"}  # HTTP's own


def resolve(node, root):
    """What a {"$ref": ...} refers to."""
    while "$ref" in node:
        target = root
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def check_headers(sent, response, root):
    """Raise ValueError when an answer's headers are not those that `response` and the document's "x-headers" describe."""
    sent = {name.lower(): value for name, value in sent.items() if name.lower() not in FRAMING}
    described = {name.lower(): resolve(node, root) for name, node in {**root["x-headers"], **response.get("headers", {})}.items()}
    for name, value in sent.items():
        if name not in described:
            raise ValueError(f"the header {name}: {value} is not described")
        rule = described[name]["schema"]
        check(int(value) if rule.get("type") == "integer" and value.isdigit() else value, rule, root, name)
    lacking = [name for name, header in described.items() if header["required"] and name not in sent]
    if lacking:
        raise ValueError(f"an answer without {', '.join(lacking)}")


def check(value, schema, root, at="$"):
    """Raise ValueError saying where `value` does not fit."""
    def no(why):
        raise ValueError(f"{at}: {why}: {str(value)[:80]}")

    for word, rule in schema.items():
        if word in SILENT:
            continue
        if word == "$ref":
            check(value, resolve(schema, root), root, at)
        elif word == "type":
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            fits = {"object": isinstance(value, dict), "array": isinstance(value, list), "string": isinstance(value, str),
                    "boolean": isinstance(value, bool), "number": number, "null": value is None,
                    "integer": number and value == int(value)}
            if not any(fits[t] for t in (rule if isinstance(rule, list) else [rule])):
                no(f"is no {rule}")
        elif word == "const":
            if value != rule:
                no(f"is not {rule}")
        elif word == "enum":
            if value not in rule:
                no(f"is none of {rule}")
        elif word == "oneOf":
            fit = 0
            for one in rule:
                try:
                    check(value, one, root, at)
                    fit += 1
                except ValueError:
                    pass
            if fit != 1:
                no(f"fits {fit} of {len(rule)}")
        elif word == "pattern":
            if isinstance(value, str) and not re.search(rule, value):
                no(f"does not match {rule}")
        elif word in ("minLength", "maxLength", "minItems", "maxItems"):
            if isinstance(value, str if word.endswith("Length") else list):
                if len(value) < rule if word.startswith("min") else len(value) > rule:
                    no(f"{word} is {rule}")
        elif word in ("minimum", "maximum", "exclusiveMinimum"):
            if isinstance(value, (int, float)):
                if {"minimum": value < rule, "maximum": value > rule, "exclusiveMinimum": value <= rule}[word]:
                    no(f"{word} is {rule}")
        elif word == "required":
            for name in rule if isinstance(value, dict) else []:
                if name not in value:
                    no(f"lacks {name}")
        elif word == "minProperties":
            if isinstance(value, dict) and len(value) < rule:
                no(f"{word} is {rule}")
        elif word == "properties":
            for name, one in rule.items():
                if isinstance(value, dict) and name in value:
                    check(value[name], one, root, f"{at}.{name}")
        elif word == "additionalProperties":
            for name in value if isinstance(value, dict) else []:
                if name in schema.get("properties", {}):
                    continue
                if rule is False:
                    no(f"has {name}, which is not described")
                elif isinstance(rule, dict):
                    check(value[name], rule, root, f"{at}.{name}")
        elif word == "items":
            for i, item in enumerate(value if isinstance(value, list) else []):
                check(item, rule, root, f"{at}[{i}]")
        else:
            raise ValueError(f"{at}: the keyword {word} is not known")
