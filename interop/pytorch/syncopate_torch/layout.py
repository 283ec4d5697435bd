"""What travels: the pieces of a module's gradients, and the messages that a strategy makes of them.

A group of the strategy has a buffer, in which its members lie one after the other. A member is a gradient, or some rows
of one of its axes. A message is a part of such a buffer. A member with "rows" is of a sparse gradient: its touched rows
alone travel, in a message without a buffer, which has no dense members.
"""

import dataclasses
import typing

import torch

ENCODINGS = {"f16": torch.float16, "bf16": torch.bfloat16}
CUT_BYTES = 8  # messages of a group end at multiples of this
INDEX_BYTES = 8  # of a row that travels
COMPILED = "_orig_mod."  # what torch.compile puts before names
EMBEDDINGS = (torch.nn.Embedding, torch.nn.EmbeddingBag)


class Variable:
    """A parameter, and what of its sum is on its way."""

    def __init__(self, name, parameter, sparse):
        self.name, self.parameter, self.sparse = name, parameter, sparse
        self.pieces, self.messages = [], []  # the messages by their numbers
        self.left = 0  # messages that are not back; 0: the sum is there, or nothing was sent
        self.sent = False  # the gradient was taken, and nobody has used the sum
        self.sharded = False  # each rank has the sum of its part alone
        self.gradient = self.bucket = None  # with a barrier: where the sum goes, if it is dense, and what waits for it

    def put(self, gradient, ranks):
        """Each piece gets its part of the gradient, divided by the number of ranks."""
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, values = gradient.indices()[0], gradient.values() / ranks
            for piece in self.pieces:
                piece.put_rows(rows, values)
        else:
            for piece in self.pieces:
                torch.div(piece.of(gradient), ranks, out=piece.place)

    def sum(self):
        if self.sparse:
            return self._sum_of_rows()
        if len(self.pieces) == 1:
            return self.pieces[0].place.to(self.parameter.dtype)
        out = torch.empty_like(self.parameter)
        for piece in self.pieces:
            piece.of(out).copy_(piece.place)
        return out

    def _sum_of_rows(self):
        shape, indices, parts = self.parameter.shape, [], []
        for piece in self.pieces:
            rows, values = piece.rows_of_sum()
            whole = torch.zeros(len(rows), *shape[1:], dtype=self.parameter.dtype, device=rows.device)
            (whole if piece.axis == 0 else whole.narrow(piece.axis, piece.first, piece.length)).copy_(values)
            indices.append(rows + (piece.first if piece.axis == 0 else 0))
            parts.append(whole)
        return torch.sparse_coo_tensor(torch.cat(indices)[None], torch.cat(parts), shape).coalesce()


@dataclasses.dataclass
class Piece:
    """Rows first .. first + length - 1 of an axis of a variable's gradient."""

    variable: Variable
    axis: int
    first: int
    length: int
    dtype: torch.dtype  # in which it travels
    touched_rows: typing.Optional[int] = None  # how many of them one iteration touches, if these alone travel
    place: typing.Optional[torch.Tensor] = None  # in its group's buffer; None: touched rows travel,
    rows: typing.Optional[tuple] = None  # and these are their numbers and values

    def of(self, tensor):
        return tensor.narrow(self.axis, self.first, self.length) if tensor.dim() else tensor

    @property
    def sends_rows(self):
        return self.touched_rows is not None

    @property
    def elements(self):
        return self.of(self.variable.parameter).numel()

    @property
    def bytes(self):
        wide = torch.empty(0, dtype=self.dtype).element_size()
        if not self.sends_rows:
            return self.elements * wide
        return self.touched_rows * (self.elements // self.row_count() * wide + INDEX_BYTES)

    def row_count(self):
        return self.length if self.axis == 0 else self.variable.parameter.shape[0]

    def row_shape(self):
        return tuple(self.of(self.variable.parameter).shape[1:])

    def put_rows(self, rows, values):
        if self.axis == 0:
            mine = (rows >= self.first) & (rows < self.first + self.length)
            rows, values = rows[mine] - self.first, values[mine]
        else:
            values = self.of(values)
        if self.place is None:
            self.rows = rows, values.to(self.dtype).contiguous()
        else:
            self.place.zero_()
            self.place.index_copy_(0, rows, values.to(self.dtype))

    def rows_of_sum(self):
        """Where the sum travelled dense these are the rows that are not zero."""
        if self.place is None:
            return self.rows
        rows = self.place.reshape(self.row_count(), -1).ne(0).any(1).nonzero().flatten()
        return rows, self.place[rows]

    def split(self, parts):
        """Along its axis, the first ones with one more."""
        out, first = [], self.first
        for k in range(min(parts, self.length)):
            length = self.length // parts + (k < self.length % parts) if parts <= self.length else 1
            rows = self.touched_rows
            if self.axis == 0:
                rows = rows // parts + (k < rows % parts)
            out.append(Piece(self.variable, self.axis, first, length, self.dtype, rows))
            first += length
        return out


@dataclasses.dataclass
class Run:
    """A group that each rank updates a part of: its buffer, the pieces in it and where each starts, and its messages."""

    buffer: torch.Tensor
    pieces: list
    starts: list
    messages: range


class Message:
    """What is sent at once: a part of a group's buffer, or touched rows of some pieces (buffer is None)."""

    def __init__(self, group, pieces, buffer=None):
        self.pieces, self.buffer = pieces, buffer
        self.server = group.get("server")
        self.gathered = group.get("algorithm") == "all_gather"
        self.sharded = group.get("sharded", "none") != "none"
        self.share = None  # of a sharded one: what this rank updates (parts.py)
        self.urgency = group.get("needed", 0)
        self.variables = [p.variable for p in pieces]
        self.bytes = sum(p.bytes for p in pieces) if buffer is None else buffer.numel() * buffer.element_size()
        self.missing = len(pieces)
        self.word = None  # its number, as rank 0 tells it
        self.written = None  # on a GPU the event after which all of it is in the buffer
        self.summed = None  # on a GPU the event after which the sum is there

    @property
    def single(self):
        """It goes from rank to rank: served, or its rows are gathered."""
        return bool(self.server or self.gathered)


class Layout:
    """`variables` by parameter, `messages`, `buffers`, `runs` (groups that are updated in parts) and `order`: the fixed
    order of messages, or None."""

    def __init__(self, strategy, module):
        self.variables, self.messages, self.buffers, self.runs = {}, [], [], []
        named = variables_of(module, strategy["groups"])
        places = {}
        for g, group in enumerate(strategy["groups"]):
            pieces, first = [p for m in group["variables"] for p in pieces_of(m, group, named)], len(self.messages)
            slices = [(place, s["bytes"]) for place, s in enumerate(strategy.get("slices", [])) if s["group"] == g]
            dense, rows = [p for p in pieces if not p.sends_rows], [p for p in pieces if p.sends_rows]
            if dense:
                self._cut(group, dense, [size for _, size in slices])
            if group.get("partition_bytes"):
                self.messages += [Message(group, [piece]) for piece in rows]
            elif rows:
                self.messages.append(Message(group, rows))
            places.update(zip(range(first, len(self.messages)), [place for place, _ in slices]))
        self.order = sorted(places, key=places.get) if places else None
        for variable in named.values():
            check_cover(variable)
            self.variables[variable.parameter] = variable
        for i, message in enumerate(self.messages):
            for variable in message.variables:
                variable.messages.append(i)

    def _cut(self, group, pieces, slices):
        like = pieces[0].variable.parameter
        buffer = torch.zeros(sum(p.elements for p in pieces), dtype=pieces[0].dtype, device=like.device)
        self.buffers.append(buffer)
        starts, start = [], 0
        for piece in pieces:
            starts.append(start)
            shape = piece.of(piece.variable.parameter).shape
            piece.place = buffer[start : start + piece.elements].view(shape)
            piece.variable.pieces.append(piece)
            start += piece.elements
        wide = buffer.element_size()
        ends = ends_of_slices(slices, start, wide) if slices else ends_of_parts(group, pieces, starts, wide)
        for begin, end in zip([0, *ends], ends):
            inside = [p for p, at in zip(pieces, starts) if at < end and at + p.elements > begin]
            self.messages.append(Message(group, inside, buffer[begin:end]))
        if self.messages[-1].sharded:
            check_sharded(group, pieces)
            messages = range(len(self.messages) - len(ends), len(self.messages))
            self.runs.append(Run(buffer, pieces, starts, messages))


SHARDED = ("none", "optimizer")


def check_sharded(group, pieces):
    if group["sharded"] not in SHARDED:
        raise ValueError(f"sharded is {group['sharded']!r} and none of {', '.join(SHARDED)}; for parameters see fsdp.py")
    if group.get("server") or "encoding" in group:
        raise ValueError("a group is updated in parts, and served or encoded too")
    for piece in pieces:
        variable = piece.variable
        variable.sharded = True
        if variable.sparse:
            raise ValueError(f"{variable.name}: its gradients are sparse, and cannot be updated in parts")
        if piece.elements != variable.parameter.numel():
            raise ValueError(f"{variable.name}: a part of it is in a group that is updated in parts")


def ends_of_slices(slices, elements, wide):
    ends = [sum(slices[: k + 1]) // wide for k in range(len(slices))]
    if ends[-1] != elements:
        raise ValueError("the slices of a group do not add up to its gradients")
    return ends


def ends_of_parts(group, pieces, starts, wide):
    """Where messages end: at the largest size, and between two pieces of one variable."""
    partition = group.get("partition_bytes", 0)
    most = max(partition // CUT_BYTES * CUT_BYTES // wide, 1) if partition else 0
    ends, begin, last = [], 0, None
    for piece, start in zip(pieces, starts):
        if piece.variable is last and begin < start:
            ends.append(start)
            begin = start
        end, last = start + piece.elements, piece.variable
        while most and end - begin >= most:
            begin += most
            ends.append(begin)
    return ends if begin == end else [*ends, end]


def variables_of(module, groups):
    """Check that the groups name each of the module's parameters, and no others; returns Variables by name."""
    sparse = {m.weight for m in module.modules() if isinstance(m, EMBEDDINGS) and m.sparse}
    named = {name.replace(COMPILED, ""): p for name, p in module.named_parameters() if p.requires_grad}
    names = [member if isinstance(member, str) else member.get("name") for g in groups for member in g["variables"]]
    odd = sorted(set(map(str, names)) ^ set(named))
    if odd or not names:
        raise ValueError(f"the groups are not of this module: {', '.join(odd[:3])}")
    return {name: Variable(name, p, p in sparse) for name, p in named.items()}


def pieces_of(member, group, named):
    """A member's piece; or several, where its touched rows are more than a message holds."""
    member = {"name": member} if isinstance(member, str) else member
    variable = named[member["name"]]
    parameter, rows = variable.parameter, member.get("rows")
    if rows is not None and not variable.sparse:
        raise ValueError(f"{variable.name}: its touched rows are to travel, but its gradients are not sparse")
    if rows is not None and not group.get("server") and group.get("algorithm") != "all_gather":
        raise ValueError(f"{variable.name}: touched rows can be served or gathered, but not all-reduced")
    if rows is None and group.get("algorithm") == "all_gather":
        raise ValueError(f"{variable.name}: only touched rows of sparse gradients can be gathered")
    axis, first = member.get("axis", 0), member.get("from", 0)
    size = parameter.shape[axis] if axis < parameter.dim() else 1
    end = member.get("to", size)
    if not 0 <= first < end <= size:
        raise ValueError(f"{variable.name}: it has no rows {first} to {end} along axis {axis}")
    dtype = ENCODINGS[group["encoding"]] if "encoding" in group else parameter.dtype
    piece = Piece(variable, axis, first, end - first, dtype, rows)
    if rows is None:
        return [piece]
    most = group.get("partition_bytes", 0)
    pieces = piece.split(max(-(-piece.bytes // most), 1)) if most else [piece]
    variable.pieces += pieces
    return pieces


def check_cover(variable):
    """The pieces of a variable are all of it, each row once."""
    reached = 0
    pieces = sorted(variable.pieces, key=lambda p: p.first)
    size = variable.parameter.shape[pieces[0].axis] if variable.parameter.dim() else 1
    for piece in pieces:
        if piece.axis != pieces[0].axis or piece.first != reached:
            raise ValueError(f"the groups are not of this module: {variable.name} is not in them once")
        reached += piece.length
    if reached != size:
        raise ValueError(f"the groups are not of this module: {variable.name} ends at {reached} of {size}")
