#!/usr/bin/env python3
"""fetch.py HF_FETCH [COUNT [SEED]] - downloads that are killed once at a random byte and run again.

COUNT (500) downloads of 8 MiB from nginx at a limited rate, four at a time. Each is killed with -9 when its partial
file has reached a random size, and started again. Afterwards the file must be right and alone in its directory; while
it runs nothing but the right file may have the final name; the bytes that nginx sent stay within 1.2 times the size.
Needs nginx. Ends 1 when a bound is exceeded, 69 without nginx. The seed is printed and repeats the kill points.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SIZE = 8 << 20
RATE = "16m"
WORKERS = 4
BOUND = 1.2
NGINX = """daemon off; master_process off; pid {dir}/pid; error_log {dir}/error;
events {{ worker_connections 64; }}
http {{ log_format sent '$uri $body_bytes_sent'; access_log {dir}/access sent; sendfile on; limit_rate {rate};
client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d;
scgi_temp_path {dir}/e; server {{ listen 127.0.0.1:{port}; location / {{ root {dir}/www; try_files /file =404; }} }} }}
"""


def manifest(content):
    model = {
        "role": "m", "file": "m.gguf", "bytes": SIZE, "sha256": hashlib.sha256(content).hexdigest(),
        "repository": None, "revision": None, "light": True,
        "base_s": 30, "ms_per_token": 50, "cap_s": 150, "default_tps": 30,
    }
    engine = {"remote": "https://example.invalid/x.git", "tag": "t", "archives": []}
    return json.dumps({"version": 1, "models": [model], "engine": engine})


def wait_for(condition, bound=30):
    end = time.monotonic() + bound
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Soak:
    def __init__(self, program, work, port, content, points):
        self.program, self.work, self.port, self.content = program, work, port, content
        self.points = list(enumerate(points))
        self.lock = threading.Lock()
        self.wrong, self.killed, self.late = [], 0, 0

    def spawn(self, number, home):
        """One run; its place in the server's path tells whose bytes nginx logs."""
        env = {
            "HOME": home, "PATH": os.environ["PATH"], "SELFHEAL_MODE": "fix", "SELFHEAL_TEST_HTTP": "1",
            "HF_ENDPOINT": f"http://127.0.0.1:{self.port}/{number}", "SELFHEAL_MANIFEST": f"{self.work}/manifest.json",
        }
        argv = [self.program, "m"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(argv, env=env, **quiet)

    def one(self, number, point):
        home = f"{self.work}/home-{number}"
        models = f"{home}/.selfheal/models"
        os.mkdir(home)
        name = f".m.gguf.{hashlib.sha256(self.content).hexdigest()[:12]}.part"
        final = f"{models}/m.gguf"

        def reached():
            try:
                return os.stat(f"{models}/{name}").st_size >= point
            except FileNotFoundError:
                return os.path.exists(final)

        first = self.spawn(number, home)
        if not wait_for(reached):
            self.wrong.append(f"{number}: never reached byte {point}")
        first.send_signal(signal.SIGKILL)
        first.communicate()
        with self.lock:
            self.killed += first.returncode == -signal.SIGKILL
            self.late += os.path.exists(final)
        if os.path.exists(final):
            with open(final, "rb") as file:
                if file.read() != self.content:
                    self.wrong.append(f"{number}: a half file under the final name, killed at {point}")
        second = self.spawn(number, home)
        try:
            second.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            second.kill()
        found = sorted(os.listdir(models))
        if second.returncode != 0 or found != ["m.gguf"]:
            self.wrong.append(f"{number}: status {second.returncode}, {found}, killed at {point}")
        else:
            with open(final, "rb") as file:
                if file.read() != self.content:
                    self.wrong.append(f"{number}: other bytes, killed at {point}")
        shutil.rmtree(home)

    def run(self):
        def work():
            while True:
                with self.lock:
                    if not self.points:
                        return
                    number, point = self.points.pop(0)
                self.one(number, point)

        threads = [threading.Thread(target=work) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main(program, count=500, seed=None):
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if nginx is None:
        print("fetch.py: nginx is not installed", file=sys.stderr)
        return 69
    count = int(count)
    seed = int(seed) if seed is not None else random.SystemRandom().randrange(1 << 32)
    dice = random.Random(seed)
    content = b"GGUF" + dice.randbytes(SIZE - 4)
    with tempfile.TemporaryDirectory() as work:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        os.mkdir(f"{work}/www")
        for name, data in (("www/file", content), ("manifest.json", manifest(content).encode())):
            with open(f"{work}/{name}", "wb") as file:
                file.write(data)
        with open(f"{work}/nginx.conf", "w", encoding="utf-8") as file:
            file.write(NGINX.format(dir=work, rate=RATE, port=port))
        server = subprocess.Popen([nginx, "-p", work, "-c", f"{work}/nginx.conf"], stdin=subprocess.DEVNULL)
        try:
            if not wait_for(lambda: listening(port)):
                print("fetch.py: nginx does not listen", file=sys.stderr)
                return 70
            soak = Soak(os.path.abspath(program), work, port, content, [dice.randrange(SIZE) for _ in range(count)])
            began = time.monotonic()
            soak.run()
            wall = time.monotonic() - began
        finally:
            server.terminate()
            server.wait()
        with open(f"{work}/access", encoding="utf-8") as log:
            sent = sum(int(line.rsplit(" ", 1)[1]) for line in log)
    ratio = sent / (SIZE * count)
    for line in soak.wrong[:20]:
        print(line)
    print(
        f"seed {seed}: {count} downloads of {SIZE} bytes, {soak.killed} killed with -9 ({soak.late} after they were"
        f" whole), {len(soak.wrong)} wrong, {sent} bytes sent: {ratio:.4f} x the size (bound {BOUND}), {wall:.0f} s"
    )
    return 0 if not soak.wrong and ratio <= BOUND else 1


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    sys.exit(main(*sys.argv[1:]))
