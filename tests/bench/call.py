"""The guarded call against peers: a hit of the cache, a hit through the shell, a healthy preflight; method in pairs.py.

Everything happens in a home of its own with the kept engine and one model under the file names of four roles. What
preflight costs is set against the same number of the cheapest useful processes: sha256sum of nothing in a loop of dash. How many
processes that is, threads not counted, says strace of one run.
Ends 1 when a bound is exceeded, 70 when a run does not end as it must.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from pairs import Table, alone, pairs, stop

ANSWER = b"The capital of France is Paris.\n"
PROMPT = ["What is the capital of France?", "scout", "48"]


def say(argv, env, **more):
    """One run outside of the measurements: its standard output; it must end 0."""
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, timeout=60, **more)
    if done.returncode != 0:
        stop(f"{' '.join(argv)[:200]}: ended {done.returncode}\n{done.stdout.decode(errors='replace')[-2000:]}")
    return done.stdout


def build(home, model, engine):
    """The home: four roles on one model, the engine, the copies in ~/.shim; returns the environment of every run."""
    models = os.path.join(home, ".selfheal/models")
    os.makedirs(models)
    with open("manifest.json", encoding="utf-8") as file:
        manifest = json.load(file)
    of = {entry["role"]: entry for entry in manifest["models"]}
    lines = []
    for role in ("scout", "spark", "forge", "sage"):
        entry = of[role] | {"file": f"{role}.gguf", "bytes": of["demo"]["bytes"], "sha256": of["demo"]["sha256"]}
        lines.append(json.dumps(entry, separators=(",", ":")))
        path = os.path.join(models, entry["file"])
        try:
            os.link(model, path)
        except OSError:
            shutil.copyfile(model, path)
    tail = json.dumps(manifest["engine"], separators=(",", ":"))
    with open(os.path.join(home, "manifest.json"), "w", encoding="utf-8") as file:
        file.write('{"version":1,"models":[\n' + ",\n".join(lines) + f'\n],\n"engine":{tail}}}\n')
    shutil.copytree(engine, os.path.join(home, ".selfheal/engine", os.path.basename(engine)))
    env = {
        "HOME": home,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "SELFHEAL_MANIFEST": os.path.join(home, "manifest.json"),
        "BKT_CACHE_DIR": os.path.join(home, "bkt"),
    }
    os.mkdir(env["BKT_CACHE_DIR"])
    say(["sh", "sh/install-shim"], env | {"SELFHEAL_MODE": "fix"})
    return env


def processes(argv, env, home):
    """How many processes one run starts, and how many of them become another program: (started, programs)."""
    trace = os.path.join(home, "trace")
    say(["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=clone,clone3,fork,vfork,execve", "-o", trace] + argv, env)
    with open(trace, encoding="utf-8", errors="replace") as lines:
        text = lines.read()
    # A call that another process interrupts is two lines, and its arguments stand in the first.
    calls = re.findall(r"^\d+ +(?:clone3?|v?fork)\((.*)", text, re.M)
    # The first execve is strace's own, of the command.
    return sum("CLONE_THREAD" not in call for call in calls), len(re.findall(r"execve\(.*(?:= 0|unfinished)", text)) - 1


def main(bin_dir, model, bkt, engine):
    signal.alarm(300)
    with tempfile.TemporaryDirectory() as home:
        env = build(home, model, engine)
        fix = env | {"SELFHEAL_MODE": "fix"}
        cache = os.path.join(bin_dir, "prompt-cache")
        key = say([os.path.join(bin_dir, "run-guarded"), "--key"] + PROMPT, env).decode().strip()
        say([cache, "--put", key], fix, input=ANSWER)
        answer = os.path.join(home, "answer")
        with open(answer, "wb") as file:
            file.write(ANSWER)
        kept = [bkt, "--ttl", "1d", "--", "cat", answer]
        call = ["dash", "sh/run_guarded.sh"] + PROMPT
        for argv in ([cache, "--get", key], kept, kept, call):
            if say(argv, env) != ANSWER:
                stop(f"{argv[0]}: another answer")
        os.remove(answer)  # bkt's hit comes from its cache from here on, or cat fails

        print("real-time priority:", "yes" if alone(True) else "not allowed, so other load counts")
        table = Table()
        for what, mode in (("", env), (", fix mode", fix)):
            a, b = pairs([cache, "--get", key], kept, 300, mode)
            table.row(f"prompt-cache --get, hit{what}", "bkt --ttl 1d -- cat ANSWER, hit", "wall", a[0], b[0], 1.0)
            table.row("", "", "CPU", a[1], b[1], 1.0)
            a, b = pairs(call, ["dash", "-c", ":"], 200, mode)
            table.row(f"dash run_guarded.sh, hit{what}", "dash -c :", "wall", a[0], b[0], 12)
            table.row("", "", "CPU", a[1], b[1])

        preflight = ["dash", "sh/preflight"]
        if say(preflight, env).count(b"ok\tmodel\t") != 4:
            stop("preflight: not four sound models")
        started, programs = processes(preflight, env, home)
        loop = "i=0; while [ $i -lt $0 ]; do i=$((i + 1)); sha256sum </dev/null >/dev/null; done"
        a, b = pairs(preflight, ["dash", "-c", loop, str(started)], 15, env)
        table.row("preflight, healthy, four models", f"{started} x sha256sum of nothing", "wall", a[0], b[0])
        table.row("", "", "CPU", a[1], b[1])
        print(f"preflight starts {started} processes; programs are executed {programs} times")
    return 0 if table.held else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
