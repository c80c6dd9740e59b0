"""Measures swr-verify against git status, mtree, AIDE and find over one workspace, in pairs as pairs.py does.

The workspace has the shape of a real sandbox: a git tree of 5,248 files, four models of 2.2 GB in all (allocated, not
sparse, with random blocks where samples are taken), and small files: 16 entries. Ends 1 when a bound is exceeded.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import pairs

FILES = 5248
MODELS = [484220320, 420086080, 397808288, 924000000]
RECIPE = 'git -C "$HOME/work" checkout -q HEAD -- "scripts" && test -s "scripts/run.sh" || cp -a /opt/base/scripts scripts'
NOTES = "written by hand while the service was set up; the platform drops it at every cold start, see the runbook, part two"


def fill(path, size, rng):
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        for at in range(0, size, max(1, size // 64)):
            file.seek(at)
            file.write(rng.randbytes(min(4096, size - at)))


def grow(top, count, rng):
    """`count` files of 200 bytes to 40 kB, 32 a directory, two levels."""
    for n in range(count):
        directory = f"{top}/{n // 1024:03}/{n // 32 % 32:02}"
        if n % 32 == 0:
            os.makedirs(directory)
        with open(f"{directory}/{n}.c", "wb") as file:
            file.write(rng.randbytes(200 + int(40000 * rng.random() ** 4)))


def main(bin_dir):
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="swr-bench.") as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "SWR_HOME": f"{home}/.swr", "LC_ALL": "C"}
        verify, add = f"{bin_dir}/swr-verify", f"{bin_dir}/swr-add"

        def capture(name, *args, base=b""):
            """A manifest of what is there, at HOME/name."""
            made = subprocess.run([add, *args], input=base, stdout=subprocess.PIPE, env=env, check=True).stdout
            with open(f"{home}/{name}", "wb") as file:
                file.write(made)
            return made

        os.mkdir(f"{home}/.swr", 0o700)
        repo = f"{home}/repo"
        grow(repo, FILES, rng)
        git = ["git", "-C", repo, "-c", "user.name=b", "-c", "user.email=b@example.org"]
        for args in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "b"]):
            subprocess.run(git + args, env=env, check=True, stdout=subprocess.DEVNULL)
        # The tree as a checkout: what verify walks is what status compares.
        shutil.move(f"{repo}/.git", f"{home}/repo.git")
        git = ["git", f"--git-dir={home}/repo.git", f"--work-tree={repo}"]
        for n, size in enumerate(MODELS):
            fill(f"{home}/model-{n}.gguf", size, rng)
        for n in range(11):
            with open(f"{home}/small-{n}.sh", "wb") as file:
                file.write(rng.randbytes(2000))
        paths = ["repo"] + [f"model-{n}.gguf" for n in range(4)] + [f"small-{n}.sh" for n in range(11)]
        capture("all.jsonl", *paths)
        capture("hash.jsonl", "repo", "--hash")
        time.sleep(3)  # what changed this moment is not remembered
        look = [verify, "--manifest", f"{home}/all.jsonl"]
        pairs.run(look + ["--update-cache"], env)
        status = git + ["status", "--porcelain"]
        pairs.run(status, env)

        quiet = pairs.alone(True)
        print("real-time priority:", "yes" if quiet else "not allowed, so other load counts")
        table = pairs.Table()
        a, b = pairs.pairs(look, status, 21, env)
        table.row("swr-verify, cached, 16 entries", f"git status, its tree of {FILES} files", "wall", a[0], b[0], 1.0)
        table.row("", "", "CPU", a[1], b[1])

        cold = [verify, "--manifest", f"{home}/hash.jsonl", "--no-cache"]
        if shutil.which("mtree"):
            spec = ["mtree", "-c", "-K", "sha256", "-p", repo]
            a, b = pairs.pairs(cold, spec, 11, env)
            table.row("swr-verify --no-cache, hashed tree", "mtree -c -K sha256", "wall", a[0], b[0], 0.5)
            table.row("", "", "CPU", a[1], b[1])
        else:
            print("mtree: not measured (not installed: package mtree-netbsd)")
        if shutil.which("aide"):
            with open(f"{home}/aide.conf", "w") as file:
                file.write(f"database_in=file:{home}/aide.db\ndatabase_out=file:{home}/aide.db\n{repo} p+s+m+c+i+sha256\n")
            aide = ["aide", "--config", f"{home}/aide.conf"]
            pairs.run(aide + ["--init"], env)
            a, b = pairs.pairs(cold, aide + ["--check"], 5, env)
            table.row("swr-verify --no-cache, hashed tree", "aide --check, sha256", "wall", a[0], b[0])
        else:
            print("aide: not measured (not installed)")

        os.mkdir(f"{home}/many")
        for n in range(1500):
            with open(f"{home}/many/{n}", "wb") as file:
                file.write(rng.randbytes(100))
        # With what people write beside a path, the manifest has 640 KB.
        words = ["--restore", RECIPE, "--notes", NOTES, "--timeout", "60"]
        size = len(capture("many.jsonl", *[f"many/{n}" for n in range(1500)], *words))
        print(f"manifest of 1,500 entries: {size} bytes")
        pairs.alone(False)
        time.sleep(3)
        many = [verify, "--manifest", f"{home}/many.jsonl"]
        pairs.run(many + ["--update-cache"], env)
        pairs.alone(True)
        find = ["find", f"{home}/many", "-type", "f", "-printf", "%s %m %T@ %C@ %i %D\\n"]
        a, b = pairs.pairs(many, find, 41, env)
        table.row("swr-verify, cached, 1,500 entries", "find -printf of the same stats", "wall", a[0], b[0], 1.2)
        table.row("", "", "CPU", a[1], b[1])

        sizes = []
        for count in (10_000, 100_000):
            grow(f"{home}/t{count}", count, rng)
            capture(f"t{count}.jsonl", f"t{count}")
            sizes.append([verify, "--manifest", f"{home}/t{count}.jsonl"])
        a, b = pairs.pairs(sizes[1], sizes[0], 7, env)
        table.row("swr-verify, a tree of 100,000 files", "the same of 10,000 files", "wall", a[0], b[0])
        table.row("", "", "CPU", a[1], b[1])
        pairs.alone(False)
        return 0 if table.held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
