# shellcheck shell=sh
# The world of the real tests, to be sourced: a throwaway home, the toolkit installed beside it, the real engine and the
# real model. What took long is kept in ${XDG_CACHE_HOME:-~/.cache}/selfheal and proven before each use.
#
# A script says `kind=demo`, sources this, and calls `build_world`, `bring_engine`, `bring_model`.

# shellcheck disable=SC2154 # the script that sources this says its kind
: "$kind"
here=$(cd "$(dirname "$0")" && pwd) || exit 1
root=${here%/tests/e2e}
programs=${SELFHEAL_BIN_DIR:-$root/out}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/selfheal
XDG_CACHE_HOME=${cache%/selfheal}
export XDG_CACHE_HOME
exec </dev/null

# Hundredths of a second on a clock that does not jump.
now() {
  read -r up rest </proc/uptime
  printf '%s%s\n' "${up%.*}" "${up#*.}"
}
# HUNDREDTHS as seconds.
seconds() { printf '%s.%02d' $(($1 / 100)) $(($1 % 100)); }

began=$(now)
say() { printf '[%6s s] %s\n' "$(seconds $(($(now) - began)))" "$*"; }
die() {
  printf '%s: %s\n' "$kind" "$*" >&2
  exit 1
}

# The throwaway home and an installed toolkit, which a wipe may damage; in the box of harness.sh where that is there.
build_world() {
  world=${box:-$(mktemp -d "${TMPDIR:-/tmp}/selfheal-$kind.XXXXXX")} || exit 74
  trap 'rm -rf "$world"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mkdir -p "$world/toolkit/bin"
  for name in "$root"/bins/*/; do
    name=$(basename "$name")
    cp "$programs/$name" "$world/toolkit/bin/" || die 'run make first'
  done
  cp -R "$root/sh" "$root/manifest.json" "$world/toolkit/" || exit 74
  for name in $(env | sed -n 's/^\(SELFHEAL_[A-Z_]*\|LLAMA_[A-Z_]*\|GGML_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
  HOME=$world/home SELFHEAL_BIN_DIR=$world/toolkit/bin
  export HOME SELFHEAL_BIN_DIR
  mkdir "$HOME" && cd "$HOME" || exit 74
  models=$HOME/.selfheal/models
  # shellcheck source=sh/selfheal.sh
  . "$world/toolkit/sh/selfheal.sh"
}

# Engines kept by an earlier run are copied in; llama-rebuild judges them and builds what is missing.
bring_engine() {
  archive=$("$root/tests/e2e/fetch.sh" archive) || die 'no source of the engine'
  mkdir -p "$HOME/.selfheal/engine" "$cache/engine"
  chmod 700 "$HOME/.selfheal"
  cp -Rp "$cache/engine/." "$HOME/.selfheal/engine/"
  rebuild_engine || die 'no engine'
  for dir in "$HOME"/.selfheal/engine/*/; do
    [ -f "$dir/stamp" ] || continue
    name=$(basename "$dir")
    cmp -s "$dir/stamp" "$cache/engine/$name/stamp" && continue
    # Another run may do the same at the same time; either engine is a good one.
    cp -Rp "$dir" "$cache/engine/.$name.$$" && rm -rf "${cache:?}/engine/$name"
    mv -T "$cache/engine/.$name.$$" "$cache/engine/$name" 2>/dev/null || rm -rf "$cache/engine/.$name.$$"
  done
}
rebuild_engine() {
  SELFHEAL_MODE=fix selfheal_llama_rebuild --from-archive "$archive" --keep-ccache "$cache/ccache"
}

# Proves the model in the cache, copies it to a temporary file, proves that, renames it.
bring_model() {
  kept=$("$root/tests/e2e/fetch.sh" model) || die 'no model'
  file=$(basename "$kept")
  mkdir -p "$models" && cp "$kept" "$models/.$file.tmp" || return 74
  [ "$(sha256sum <"$models/.$file.tmp")" = "$(model_pin)  -" ] || return 3
  mv -f "$models/.$file.tmp" "$models/$file"
}
# Serves the kept model as a hub would, from nginx on the loopback interface, and points hf-fetch there.
serve_models() {
  kept=$("$root/tests/e2e/fetch.sh" model) || die 'no model'
  # shellcheck source=tests/nginx.sh
  . "$root/tests/nginx.sh"
  command -v nginx >/dev/null || die 'nginx is missing: apt-get install nginx-light'
  mkdir -p "$world/hub" && ln -s "$kept" "$world/hub/" || return 74
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  nginx_serves "$world/nginx" "$world/hub" "$port" || die "nginx: $(tail -n 1 "$world/nginx/errors")"
  trap 'kill "$(cat "$world/nginx/pid")" 2>/dev/null; rm -rf "$world"' EXIT
  HF_ENDPOINT=http://127.0.0.1:$port SELFHEAL_TEST_HTTP=1
  export HF_ENDPOINT SELFHEAL_TEST_HTTP
}
model_pin() { sed -n 's/^{"role":"demo".*"bytes":98362432,"sha256":"\([0-9a-f]*\)".*/\1/p' "$root/manifest.json"; }

# A manifest with these model lines in place of the real ones: ROLE FILE BYTES SHA CAP each.
manifest() {
  {
    printf '{"version":1,\n"models":[\n'
    comma=''
    while [ $# -gt 0 ]; do
      printf '%s{"role":"%s","file":"%s","bytes":%s,"sha256":"%s","repository":null,"revision":null,"light":true,' \
        "$comma" "$1" "$2" "$3" "$4"
      printf '"base_s":%s,"ms_per_token":1,"cap_s":%s,"default_tps":30,"evidence":[]}' "$5" "$5"
      comma=',
'
      shift 5
    done
    printf '\n],\n'
    sed -n '/^"engine"/,$p' "$root/manifest.json"
  } >"$world/manifest.json"
}
