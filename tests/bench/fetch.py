"""fetch.py HF_FETCH - 1 GiB from nginx on this machine: hf-fetch against `curl | openssl dgst -sha256`.

Both hash what comes; hf-fetch also writes it, syncs it and renames it. In memory (/dev/shm) that costs no disk, and the
peer writes nothing; on the disk of the temporary directory the peer that does the same is bounded too, and the one that
writes nothing is shown beside it. Method and rows are those of pairs.py. Needs nginx and curl. Ends 1 when a bound is
exceeded, 69 when a peer is missing.
"""
import hashlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import pairs

SIZE = 1 << 30
PAIRS = 5
CONFIG = """daemon off; master_process off; pid {dir}/pid; error_log {dir}/error;
events {{ worker_connections 16; }}
http {{ access_log off; sendfile on; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c;
uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e; server {{ listen 127.0.0.1:{port}; root {dir}/www; }} }}
"""


def serve(nginx, work):
    """nginx with a file of random bytes: its process, its address, the file's sha256."""
    os.mkdir(f"{work}/www")
    digest = hashlib.sha256()
    with open(f"{work}/www/m.gguf", "wb") as file:
        for _ in range(SIZE >> 20):
            block = os.urandom(1 << 20)
            digest.update(block)
            file.write(block)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(f"{work}/nginx.conf", "w", encoding="utf-8") as file:
        file.write(CONFIG.format(dir=work, port=port))
    process = subprocess.Popen([nginx, "-p", work, "-c", f"{work}/nginx.conf"], stdin=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"http://127.0.0.1:{port}", digest.hexdigest()
        if time.monotonic() > end:
            pairs.stop("nginx does not listen")
        time.sleep(0.01)


def manifest(sha):
    model = {
        "role": "m", "file": "m.gguf", "bytes": SIZE, "sha256": sha, "repository": None, "revision": None,
        "light": True, "base_s": 30, "ms_per_token": 50, "cap_s": 150, "default_tps": 30,
    }
    engine = {"remote": "https://example.invalid/x.git", "tag": "t", "archives": []}
    return json.dumps({"version": 1, "models": [model], "engine": engine})


def peak(argv, env):
    """Peak resident bytes of one run, read every 5 ms."""
    pid = pairs.spawn(argv, env)
    seen = 0
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as lines:
                seen = max([seen] + [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")])
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.005)
    return seen * 1024


def main(program):
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    for name, found in (("nginx", nginx), ("curl", shutil.which("curl")), ("openssl", shutil.which("openssl"))):
        if found is None:
            print(f"bench: {name} is not installed", file=sys.stderr)
            return 69
    with tempfile.TemporaryDirectory() as work:
        if not pairs.alone(True):
            print("real-time priority: not allowed, so other load counts")
        process, url, sha = serve(nginx, work)
        try:
            with open(f"{work}/manifest.json", "w", encoding="utf-8") as file:
                file.write(manifest(sha))
            return measure(program, url, work)
        finally:
            process.terminate()
            process.wait()


def measure(program, url, work):
    table = pairs.Table()
    # Without its lines of progress.
    ours = ["sh", "-c", 'exec "$0" m 2>/dev/null', program]
    hashed = ["sh", "-c", f"curl -s {url}/m.gguf | openssl dgst -sha256"]
    written = ["sh", "-c", f"curl -s {url}/m.gguf | tee {work}/copy | openssl dgst -sha256 && sync {work}/copy"]
    base = {"PATH": os.environ["PATH"], "HOME": work}

    def fetching(models):
        return base | {
            "SELFHEAL_MODE": "fix", "SELFHEAL_TEST_HTTP": "1", "HF_ENDPOINT": url, "SELFHEAL_MODELS_DIR": models,
            "SELFHEAL_MANIFEST": f"{work}/manifest.json",
        }

    def compare(place, peer):
        """Medians of (wall, cpu) of ours, with the models directory at this place, and of the peer."""
        with tempfile.TemporaryDirectory(dir=place) as models:
            env = fetching(models)
            seen = ([], [])
            for i in range(PAIRS + 1):
                for which in ((0, 1), (1, 0))[i % 2]:
                    for old in (f"{models}/m.gguf", f"{work}/copy"):
                        if os.path.exists(old):
                            os.unlink(old)
                    seen[which].append(pairs.run((ours, peer)[which], (env, base)[which]))
            # The first of each is for the caches.
            return [tuple(map(statistics.median, zip(*runs[1:]))) for runs in seen]

    def rows(name, place, words, peer, bound):
        a, b = compare(place, peer)
        table.row(f"hf-fetch m, 1 GiB to {name}", words, "CPU", a[1], b[1], bound)
        table.row("", "", "wall", a[0], b[0], bound)

    if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > SIZE + (64 << 20):
        rows("memory", "/dev/shm", "curl | openssl dgst -sha256", hashed, 1.0)
    rows("disk", work, "curl | tee FILE | openssl ... && sync FILE", written, 1.0)
    rows("disk", work, "curl | openssl dgst -sha256, no file", hashed, None)
    with tempfile.TemporaryDirectory(dir=work) as models:
        resident = peak(ours, fetching(models))
        table.row("hf-fetch m, 1 GiB", "16 MiB", "peak RSS", resident, 16 << 20, 1.0, unit="kB")
    return 0 if table.held else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    sys.exit(main(os.path.abspath(sys.argv[1])))
