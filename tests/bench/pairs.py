"""Measures this toolkit against peers: pairs of runs on one machine, medians, and a ratio with its bound.

A pair is one run of ours and one of the peer, and the next pair runs them the other way round, so that a machine
that slows down slows both. Short runs are made at real-time priority where that is allowed, so that other load of
the machine stays out of them. CPU and wall time come from wait4 of the one child. Peak memory is VmHWM of a wrapper
that is still waiting for its command: wait4's figure would count the command and this interpreter too.
Ends 1 when a bound is exceeded, 70 when a run does not end as it must.
"""
import os
import signal
import statistics
import sys
import tempfile
import time

SILENT = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]


def stop(why):
    print(f"bench: {why}", file=sys.stderr)
    sys.exit(70)


def spawn(argv, env):
    return os.posix_spawnp(argv[0], argv, env, file_actions=SILENT)


def run(argv, env):
    """One run to its end, which must be 0: (wall, cpu) in seconds."""
    begin = time.monotonic()
    _, status, usage = os.wait4(spawn(argv, env), 0)
    wall = time.monotonic() - begin
    if os.waitstatus_to_exitcode(status) != 0:
        stop(f"{' '.join(argv)[:200]}: ended {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime


def pairs(ours, peer, count, env):
    """Medians of `count` pairs: ((wall, cpu), (wall, cpu))."""
    run(ours, env), run(peer, env)
    seen = {0: [], 1: []}
    for i in range(count):
        for which in ((0, 1), (1, 0))[i % 2]:
            seen[which].append(run((ours, peer)[which], env))
    return [tuple(map(statistics.median, zip(*seen[which]))) for which in (0, 1)]


def peak(wrapper, env):
    """Peak resident bytes of `WRAPPER 5 cat FIFO`, read when cat has opened the FIFO."""
    with tempfile.TemporaryDirectory() as home:
        fifo = os.path.join(home, "fifo")
        os.mkfifo(fifo)
        pid = spawn([wrapper, "5", "cat", fifo], env)
        end = time.monotonic() + 5
        while True:
            try:
                writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:
                if time.monotonic() > end:
                    stop(f"{wrapper}: did not start its command")
                time.sleep(0.001)
        with open(f"/proc/{pid}/status") as lines:
            kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
        os.close(writer)
        os.waitpid(pid, 0)
        return kib * 1024


def alone(yes):
    """Real-time priority on or off; False where it is not allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO if yes else os.SCHED_OTHER, os.sched_param(1 if yes else 0))
        return True
    except PermissionError:
        return False


def human(value, unit):
    return {"ms": f"{value * 1e3:.2f} ms", "kB": f"{value / 1000:.0f} kB"}[unit]


class Table:
    """Rows as they are measured, and whether every bound held."""

    def __init__(self):
        self.held = True
        print(f"{'ours':38} {'peer':44} {'measure':9} {'ours':>11} {'peer':>11} {'ratio':>8} {'bound':>6}")

    def row(self, ours, peer, measure, a, b, bound=None, unit="ms"):
        ratio = a / b if b > 0 else float("inf")
        over = bound is not None and ratio > bound
        self.held = self.held and not over
        limit = "-" if bound is None else f"{bound:g}"
        print(
            f"{ours:38} {peer:44} {measure:9} {human(a, unit):>11} {human(b, unit):>11} {ratio:8.4f} {limit:>6}"
            f"{'  EXCEEDED' if over else ''}",
            flush=True,
        )


def main(bin_dir, model, reader_dir, engine_reader):
    signal.alarm(900)
    timeout, verify = os.path.join(bin_dir, "sh-timeout"), os.path.join(bin_dir, "gguf-verify")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SELFHEAL_")}
    env |= {"SELFHEAL_MODELS_DIR": os.path.dirname(model), "PYTHONPATH": reader_dir}
    quiet = alone(True)
    print("real-time priority:", "yes, but for the Python rows" if quiet else "not allowed, so other load counts")
    table = Table()

    a, b = pairs([timeout, "5", "true"], ["timeout", "5", "true"], 300, env)
    table.row("sh-timeout 5 true", "timeout 5 true (coreutils)", "wall", a[0], b[0], 0.6)
    table.row("", "", "CPU", a[1], b[1])
    peaks = [statistics.median(peak(w, env) for _ in range(5)) for w in (timeout, "timeout")]
    table.row("sh-timeout", "timeout (coreutils)", "peak RSS", *peaks, 0.4, unit="kB")

    a, b = pairs([verify, "--deep", "demo"], ["openssl", "dgst", "-sha256", model], 11, env)
    table.row("gguf-verify --deep demo", "openssl dgst -sha256", "CPU", a[1], b[1], 1.0)
    table.row("", "", "wall", a[0], b[0])

    if engine_reader:
        a, b = pairs([verify, "demo"], [engine_reader, model, "r", "n"], 21, env)
        table.row("gguf-verify demo", "llama-gguf MODEL r n (loads the data too)", "CPU", a[1], b[1])
        table.row("", "", "wall", a[0], b[0])
    else:
        print("llama-gguf, the engine's own reader: not measured, the reason stands above")

    alone(False)
    python = [sys.executable, "-c"]
    read = python + ["import sys, gguf; gguf.GGUFReader(sys.argv[1])", model]
    a, b = pairs([verify, "demo"], read, 5, env)
    table.row("gguf-verify demo", "Python gguf.GGUFReader", "CPU", a[1], b[1], 0.01)
    table.row("", "", "wall", a[0], b[0])
    _, idle = pairs([verify, "demo"], python + ["import gguf"], 5, env)
    table.row("", "the same without starting Python", "CPU", a[1], b[1] - idle[1])

    return 0 if table.held else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
