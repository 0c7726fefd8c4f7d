"""What a recording must show, by the JDK's own reader: expected.py RECORDING [CPU_NS], for record.sh.

CPU_NS is the interval of ExecutionSample, if the recording has periods of several events.

Prints each profile's columns with their sums, then each of its stacks with its values. Labels are not in it: the JDK
knows the number of a context only.
"""
import collections
import json
import re
import subprocess
import sys

EVENTS = {  # event: profile, columns, the field that the second one sums up
    "jdk.ExecutionSample": ("process_cpu", ["execution"], None),  # "cpu" where there are no samples of CPU time
    "jdk.CPUTimeSample": ("process_cpu", ["cpu"], "samplingPeriod"),
    "profiler.WallClockSample": ("wall", ["wall"], "samples"),
    "jdk.ObjectAllocationInNewTLAB": ("memory", ["alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes"], "tlabSize"),
    "jdk.ObjectAllocationOutsideTLAB": ("memory", ["alloc_outside_tlab_objects", "alloc_outside_tlab_bytes"],
                                        "allocationSize"),
    "jdk.ObjectAllocationSample": ("memory", ["alloc_sample_objects", "alloc_sample_bytes"], "weight"),
    "profiler.Malloc": ("memory", ["malloc_objects", "malloc_bytes"], "size"),
    "profiler.LiveObject": ("memory", ["live", "live_bytes"], "allocationSize"),
    "jdk.OldObjectSample": ("memory", ["old_objects", "old_bytes"], "objectSize"),
    "jdk.JavaMonitorEnter": ("mutex", ["contentions", "delay"], "duration"),
    "jdk.ThreadPark": ("block", ["contentions", "delay"], "duration"),
}
OLD = "jdk.OldObjectSample"  # each dump repeats all that are alive: the last one counts
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def jfr(*args):
    return json.loads(subprocess.run(["jfr", "print", "--json", "--stack-depth", "5000", *args], check=True,
                                     capture_output=True).stdout)["recording"]["events"]


def class_name(name):
    lambda_class = re.fullmatch(r"(.*\$\$Lambda)(?:\$\d+)?[./+]0x[0-9a-f]+(/\d+)?", name)
    hidden = re.fullmatch(r"(.*)[./+]0x[0-9a-f]+(/\d+)?", name)
    if lambda_class or hidden:
        return (lambda_class or hidden).group(1).replace(".", "/") + "_"
    return re.sub(r"(libasyncProfiler-linux-x64-)[0-9a-f]{20,}(\.so)", r"\1_\2", name)


def frame(f):
    kind = class_name(f["method"]["type"]["name"])
    name = (kind + "." if kind else "") + f["method"]["name"]
    where = ""
    if f["type"] == "Kernel":
        where = "@[kernel.kallsyms]"
    elif f["type"] in ("Native", "C++") and ".so" in kind and "/" not in kind:
        where = "@" + kind
    return "%s:%d%s" % (name, max(f["lineNumber"], 0), where)


def frames(event):
    trace = event["values"]["stackTrace"]
    return trace["frames"] if trace else []


def stack(event):
    return " ".join(frame(f).replace(" ", "_") for f in frames(event)) or "[unknown]:0"


def nanoseconds(duration):  # "PT0.015S", "PT1M2.5S"
    m = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?", duration)
    hours, minutes, seconds = (int(m.group(i) or 0) for i in (1, 2, 3))
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((m.group(4) or "0").ljust(9, "0"))


def settings(events):
    own = {}
    for e in events:
        v = e["values"]
        own.setdefault(v["name"], v["value"])
        if v["name"] == "period" and re.fullmatch(r"\d+ (ns|us|ms|s)", v["value"]):
            n, unit = v["value"].split()
            own["ns"] = int(n) * UNITS[unit]
    cpu = own.get("ns") or int(own.get("interval", 0))
    wall = int(own.get("wall", 0)) or (cpu if own.get("event") == "wall" else 0)
    return cpu, wall, own.get("event") == "wall"


def main(recording, cpu_ns=0):
    cpu, wall, executions_are_wall = settings(jfr("--events", "jdk.ActiveSetting", recording))
    cpu = int(cpu_ns) or cpu
    profiles = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    columns = collections.defaultdict(set)
    counts, truncated, unknown = collections.Counter(), collections.Counter(), collections.Counter()

    def add(profile, names, event, *values):
        for name, value in zip(names, values):
            profiles[profile][stack(event)][name] += value
        columns[profile].update(names)
        counts[profile] += 1
        truncated[profile] += bool(frames(event)) and event["values"]["stackTrace"]["truncated"]
        unknown[profile] += not frames(event)

    events = jfr("--events", ",".join(EVENTS), recording)
    last = max((e["values"]["startTime"] for e in events if e["type"] == OLD), default="")
    has_cpu_time = any(e["type"] == "jdk.CPUTimeSample" for e in events)
    for e in events:
        profile, names, field = EVENTS[e["type"]]
        if e["type"] == OLD and e["values"]["startTime"] != last:
            continue
        value = e["values"][field] if field else 0
        if e["type"] == "jdk.ExecutionSample":
            if e["values"]["state"] != "STATE_SLEEPING":
                add(profile, names if has_cpu_time else ["cpu"], e, cpu)
            if executions_are_wall:
                add("wall", ["wall"], e, wall)
        elif e["type"] == "jdk.CPUTimeSample":
            add(profile, names, e, nanoseconds(value))
        elif e["type"] == "profiler.WallClockSample":
            add(profile, names, e, value * wall)
        else:
            add(profile, names, e, 1, nanoseconds(value) if field == "duration" else value)
    for profile, stacks in sorted(profiles.items()):
        names = [name for of, group, _ in EVENTS.values() if of == profile for name in group if name in columns[profile]]
        print("%s %s: %d events, %d truncated, %d without stack" % (
            profile, " ".join(names), counts[profile], truncated[profile], unknown[profile]))
        for text, row in sorted(stacks.items()):
            print(" ", *(row[name] for name in names), text)


main(*sys.argv[1:])
