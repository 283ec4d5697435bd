"""Which modules fully_shard has to be called on so that its groups are a strategy's.

fully_shard(module) takes all parameters of the module that no earlier call took from a module inside; so does
fully_shard([a, b]), as one group. It gathers before the first of these modules runs and frees after the last one, so
each must be one that is called. Some are not: a container, whose parameters are read by the module around it, and the
output projection of nn.MultiheadAttention. Their parameters count as those of the module around them.

A group gets the largest modules whose parameters are all in it, and the modules that have parameters of their own in
it and other groups inside. Those are wrapped before.
"""

import torch

from .layout import variables_of

NEVER_CALLED = (torch.nn.modules.linear.NonDynamicallyQuantizableLinear,)


class Tree:
    """A module's tree, in which each module knows the groups of its own parameters and of all inside."""

    def __init__(self, module, group_of):
        self.root, self.group_of = module, group_of
        self.names, self.own, self.inside = {}, {}, {}
        self._visit(module, "", module)

    def _visit(self, module, name, home):
        home = module if is_called(module) else home
        self.names.setdefault(module, name)
        self.own.setdefault(module, set())
        groups = {self.group_of[p] for p in module.parameters(recurse=False) if p in self.group_of}
        self.own[home] |= groups
        for child_name, child in module.named_children():
            self._visit(child, f"{name}.{child_name}" if name else child_name, home)
            groups |= self.inside[child]
        self.inside[module] = groups

    def units(self, group, module=None):
        """The topmost modules that a call for this group has to name."""
        module = module or self.root
        if group not in self.inside[module]:
            return []
        if is_called(module) and (self.inside[module] == {group} or group in self.own[module]):
            return [module]
        return [unit for child in module.children() for unit in self.units(group, child)]

    def called(self, module):
        """The name of a module, for people."""
        return f"{self.names[module] or 'the model itself'} ({type(module).__name__})"


def is_called(module):
    return type(module).forward is not torch.nn.Module.forward and not isinstance(module, NEVER_CALLED)


def words_for(k, group):
    """How a group is named to people."""
    names = group["variables"]
    return f"group {k} ({', '.join(names[:2])}{', ...' if len(names) > 2 else ''})"


def whole_variables(module, groups):
    """The module's variables by name, once each is known to be in one group, whole, and such as fully_shard takes. What
    needs no gradient is in no group, and is sharded with its module."""
    variables, seen = variables_of(module, groups), {}
    for k, group in enumerate(groups):
        for member in group["variables"]:
            if not isinstance(member, str):
                raise ValueError(f"group {k}: a part of {member.get('name')}: fully_shard takes whole variables")
            if member in seen:
                raise ValueError(f"{member} is in group {seen[member]} and in group {k}")
            seen[member] = k
            if variables[member].sparse:
                raise ValueError(f"{member}: its gradients are sparse, which fully_shard cannot sum")
            if not variables[member].parameter.dim():
                raise ValueError(f"{member}: it is a scalar, which fully_shard cannot cut: give it the shape (1,)")
        types = sorted({str(variables[member].parameter.dtype) for member in group["variables"]})
        if len(types) > 1:
            raise ValueError(f"{words_for(k, group)} is of {' and '.join(types)}: fully_shard wants one type in a group")
    return variables


def plan_calls(module, groups, variables):
    """[(group, modules)] in the order in which fully_shard is to be called: what lies inside another comes first. Raises
    a ValueError that names the group whose variables are those of no modules."""
    group_of = {variables[name].parameter: k for k, group in enumerate(groups) for name in group["variables"]}
    tree = Tree(module, group_of)
    for part, own in tree.own.items():
        if len(own) > 1:
            one, other = sorted(own)[:2]
            raise ValueError(
                f"{words_for(other, groups[other])} is no set of whole modules: {tree.called(part)} has variables of "
                f"group {one} too"
            )
    calls = in_order(tree, [tree.units(k) for k in range(len(groups))])
    check_taken(tree, calls, groups)
    return calls


def in_order(tree, units):
    """What has other groups inside comes after them. Where two lie in each other there is no such order."""
    calls, waiting = [], list(range(len(units)))
    while waiting:
        inside = {k: {g for unit in units[k] for g in tree.inside[unit]} - {k} for k in waiting}
        k = next((k for k in waiting if not inside[k] & set(waiting)), waiting[0])
        calls.append((k, units[k]))
        waiting.remove(k)
    return calls


def check_taken(tree, calls, groups):
    """Do what fully_shard will do, and see that each call takes its group's variables and no others."""
    wrapped = set()
    for k, units in calls:
        taken = [p for unit in units for p in parameters_of(unit, wrapped) if p in tree.group_of]
        strange = next((p for p in taken if tree.group_of[p] != k), None)
        if strange is not None:
            raise ValueError(
                f"{words_for(k, groups[k])} is no set of whole modules: {tree.called(units[0])} has variables of group "
                f"{tree.group_of[strange]} too"
            )
        if len(set(taken)) != len(groups[k]["variables"]):
            raise ValueError(f"{words_for(k, groups[k])} is no set of whole modules that are called")
        wrapped |= set(units)


def parameters_of(module, wrapped):
    """Without those of modules inside that have been wrapped."""
    yield from module.parameters(recurse=False)
    for child in module.children():
        if child not in wrapped:
            yield from parameters_of(child, wrapped)
