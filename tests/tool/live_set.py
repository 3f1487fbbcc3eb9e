"""The largest live set of a plan's schedule on one position, over all ways in which its streams may
run beside each other. No placement of the buffers has a smaller arena.

A state of a run is a set of entries that run at the same time: at most one of each stream, none of
them ordered with another by streams and waits. What comes before one of them has ended, everything
else has not begun. A buffer's instance is live from the first write to the last use before the next
write that follows a read; persistent buffers, feeds and results are live all along.
"""

import itertools

import numpy as np

NEVER = 1 << 40
COMPUTE = 0  # the stream of kernels, whose entries are looked at call by call


class Order:
    """Which entries come before which."""

    def __init__(self, entries):
        self.place = []  # of each entry in its stream
        self.before = []  # of each entry, by stream: how many come before it
        self.streams = {}  # their entries
        for e, entry in enumerate(entries):
            own = self.streams.setdefault(entry["stream"], [])
            counts = {}
            for earlier in own[-1:] + entry["waits"]:
                stream = entries[earlier]["stream"]
                known = {**self.before[earlier]}
                known[stream] = max(known.get(stream, 0), self.place[earlier] + 1)
                for s, count in known.items():
                    counts[s] = max(counts.get(s, 0), count)
            self.before.append(counts)
            self.place.append(len(own))
            own.append(e)
        self.stream = [entry["stream"] for entry in entries]

    def comes_before(self, a, b):
        return self.place[a] < self.before[b].get(self.stream[a], 0)

    def beside(self, e, stream):
        """Entries of another stream that are not ordered with `e`."""
        first = self.before[e].get(stream, 0)
        return list(itertools.takewhile(lambda other: not self.comes_before(e, other),
                                        self.streams[stream][first:]))

    def states(self, e):
        """All that may run beside `e`; kernels first."""
        streams = [s for s in self.streams if s not in (self.stream[e], COMPUTE)]
        for chosen in itertools.product(*([None, *self.beside(e, s)] for s in streams)):
            running = [e, *(other for other in chosen if other is not None)]
            if not any(self.comes_before(a, b) for a, b in itertools.permutations(running, 2)):
                yield running


def instances(plan, position, schedule):
    """Of each instance of a buffer its uses: entry, call, whether it is read."""
    access = {kernel["symbol"]: kernel["access"] for kernel in plan["kernels"]}
    tasks = {task["name"]: task for task in position["tasks"]}
    buffers = {buffer["name"]: buffer for buffer in position["buffers"]}
    uses = {}

    def use(entry, e, call, argument, mode):
        name = argument if isinstance(argument, str) else argument["buffer"]
        scope = buffers[name]["scope"]
        number = entry[scope] if scope in ("micro_batch", "slot", "ring") else 0
        known = uses.setdefault((name, number), [])
        if known and known[-1][:2] == (e, call):
            known[-1] = (e, call, known[-1][2] or mode != "write", known[-1][3] or mode != "read")
        else:
            known.append((e, call, mode != "write", mode != "read"))

    for e, entry in enumerate(position["schedules"][schedule]):
        task = tasks[entry["task"]]
        for argument in task.get("inputs", []):
            use(entry, e, 0, argument, "read")
        for argument in task.get("outputs", []):
            use(entry, e, 0, argument, "write")
        for c, call in enumerate(task.get("calls", [])):
            for argument, mode in zip(call["arguments"], access[call["kernel"]]):
                use(entry, e, c, argument, mode)
    return uses


def generations(uses):
    """What is written anew is another value. What every use writes is workspace of each."""
    if all(writes for _, _, _, writes in uses):
        return [[one] for one in uses]
    result, was_read = [], True
    for one in uses:
        if not result or (not one[2] and was_read):
            result.append([])
        result[-1].append(one)
        was_read = one[2]
    return result


def lasting_bytes(plan, position, uses):
    """Of what is live all along, with the names of such buffers."""
    names = {feed["name"] for feed in plan["feeds"]}
    names |= {result["buffer"] for kind in ("results", "evaluate_results")
              for result in plan.get(kind, [])}
    used = {name for name, _ in uses}
    lasting = {buffer["name"]: buffer["bytes"] * buffer.get("count", 1)
               for buffer in position["buffers"]
               if buffer["scope"] == "persistent" or (buffer["name"] in names & used)}
    return sum(lasting.values()), set(lasting)


def largest_live_set(plan, position, schedule):
    entries = position["schedules"].get(schedule, [])
    order = Order(entries)
    uses = instances(plan, position, schedule)
    always, lasting = lasting_bytes(plan, position, uses)
    sizes = {buffer["name"]: buffer["bytes"] for buffer in position["buffers"]}
    values = [(sizes[name], one) for (name, _), known in uses.items() if name not in lasting
              for one in generations(known)]
    weight = np.array([size for size, _ in values], np.int64)
    # Of each value and stream: places of its first and last entry there; of the kernels also calls.
    first = {s: np.full(len(values), NEVER) for s in order.streams}
    last = {s: np.full(len(values), -1) for s in order.streams}
    calls = np.zeros((2, len(values)), np.int64)
    for v, (_, known) in enumerate(values):
        for e, call, _, _ in known:
            s, place = order.stream[e], order.place[e]
            if s == COMPUTE and place < first[s][v]:
                calls[0, v] = call
            if s == COMPUTE:
                calls[1, v] = call
            first[s][v] = min(first[s][v], place)
            last[s][v] = place
    tasks = {task["name"]: len(task.get("calls", [])) for task in position["tasks"]}
    most = 0
    for e, entry in enumerate(entries):
        for running in order.states(e):
            most = max(most, live_bytes(order, running, tasks[entry["task"]], weight,
                                        (first, last, calls)))
    return always + most


def live_bytes(order, running, count, weight, places):
    """The most bytes in one state, over the calls of its kernels if its first entry has some."""
    first, last, calls = places
    begun = np.zeros(len(weight), bool)
    open_ = np.zeros(len(weight), bool)
    now = {order.stream[e]: order.place[e] for e in running}
    for s in order.streams:
        done = max([order.before[e].get(s, 0) for e in running])
        begun |= first[s] < done
        open_ |= last[s] >= done
        if s in now and s != COMPUTE:
            begun |= first[s] == now[s]
    if COMPUTE not in now:
        return int(weight[begun & open_].sum())
    # Values that the running kernels begin or end are live for a part of the calls.
    at = now[COMPUTE]
    begins = (first[COMPUTE] == at) & ~begun
    elsewhere = np.zeros(len(weight), bool)
    for s in order.streams:
        if s != COMPUTE:
            done = max([order.before[e].get(s, 0) for e in running])
            elsewhere |= last[s] >= done
    ends = (last[COMPUTE] == at) & ~elsewhere
    live = (begun | begins) & open_
    changes = np.zeros(count + 1, np.int64)
    np.add.at(changes, np.where(begins, calls[0], 0)[live], weight[live])
    np.add.at(changes, np.where(ends, calls[1] + 1, count)[live], -weight[live])
    return int(np.cumsum(changes)[:-1].max())


def serial_peak(plan, position, schedule):
    """The most bytes that are live when entries run one after the other, in list order."""
    uses = instances(plan, position, schedule)
    always, lasting = lasting_bytes(plan, position, uses)
    sizes = {buffer["name"]: buffer["bytes"] for buffer in position["buffers"]}
    changes = {}
    for (name, _), known in uses.items():
        for one in generations(known) if name not in lasting else []:
            for use, ends, change in ((one[0], 0, sizes[name]), (one[-1], 1, -sizes[name])):
                at = (*use[:2], ends)
                changes[at] = changes.get(at, 0) + change
    return always + max(itertools.accumulate(changes[at] for at in sorted(changes)), default=0)


def largest_live_sets(plan):
    """Of each position, by schedule."""
    return [{schedule: largest_live_set(plan, position, schedule)
             for schedule in position["schedules"]} for position in plan["positions"]]


def arena_ratios(plan, largest):
    """Of each position: its arena divided by the largest live set of any schedule."""
    return [position["arena_bytes"] / max(sets.values())
            for position, sets in zip(plan["positions"], largest)]
