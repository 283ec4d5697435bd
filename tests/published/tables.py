"""tables.py PART WHOLE: every figure of PART, tables of `syncopate compare`, stands in WHOLE as well, in the same row."""
import sys


def figures(path):
    """(cluster, model, row) -> figure"""
    out, cluster, models = {}, "", []
    with open(path, encoding="utf-8") as file:
        for line in file:
            row, columns = line[:32].strip(), line[32:].split()
            if line.endswith(" devices\n"):
                cluster = line
            elif row == "ms an iteration":
                models = columns
            elif columns and cluster:
                out.update({(cluster, model, row): figure for model, figure in zip(models, columns, strict=True)})
    return out


part, whole = figures(sys.argv[1]), figures(sys.argv[2])
different = [key for key, figure in part.items() if whole.get(key) != figure]
assert len(part) > 500, f"only {len(part)} figures were read"
if different:
    sys.exit(f"{len(different)} figures differ, the first: {different[0]}")
