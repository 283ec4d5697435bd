"""How busy the processors of this machine are."""


def processor_time():
    """Jiffies of all processors since the machine started: busy, and all."""
    with open("/proc/stat", encoding="ascii") as file:
        every = [int(x) for x in file.readline().split()[1:9]]
    return sum(every) - every[3] - every[4], sum(every)


def share_busy(before):
    """Which share of the time since `before`, a processor_time(), the processors were busy, from 0 to 1."""
    used, passed = (b - a for a, b in zip(before, processor_time()))
    return used / max(passed, 1)
