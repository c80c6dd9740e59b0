#!/bin/sh
# The plain form of hf-fetch over wget, GNU's and busybox's, against nginx on the loopback interface: what is proven gets its
# name, what is not leaves the old file and no partial one.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/small_world.sh
. "$root/tests/small_world.sh"
# shellcheck source=tests/nginx.sh
. "$root/tests/nginx.sh"

rm "$tree/out/hf-fetch"
SELFHEAL_MODE=fix SELFHEAL_TEST_HTTP=1
export SELFHEAL_MODE SELFHEAL_TEST_HTTP
if ! command -v nginx >/dev/null; then
  echo 'note: not here, not tested: nginx'
  finish
  exit
fi

hub=$box/hub/o/r/resolve/main
mkdir -p "$hub" "$box/bare"
trap '[ ! -s "$box/nginx/pid" ] || kill "$(cat "$box/nginx/pid")"; chmod -R u+w "$box"; rm -rf "$box"' EXIT
# On the first free port from here; nginx says so by its status.
port=$((20000 + $$ % 20000)) last=$((20000 + $$ % 20000 + 5))
until nginx_serves "$box/nginx" "$box/hub" $port || [ $port = $last ]; do port=$((port + 1)); done
HF_ENDPOINT=http://127.0.0.1:$port
export HF_ENDPOINT

# A machine without curl: whatever else is on PATH, by links.
for at in /usr/bin/* /bin/*; do
  case ${at##*/} in curl | wget) ;; *) [ -e "$box/bare/${at##*/}" ] || printf '%s\n' "$at" ;; esac
done | sort -t / -u -k 3 | xargs ln -st "$box/bare" 2>/dev/null
# What stands in the directory of the models.
there() { (cd "$models" && find . -type f | sort | tr '\n' ' '); }
all='./sage.gguf ./scout.gguf ./spark.gguf '
# Fetches the scout: the status, state and cause of the verdict.
fetch() {
  # shellcheck disable=SC2123 # that is meant
  got=$(PATH=$box/bare && export PATH && under "$tree/sh/fallback" hf-fetch scout 2>"$box/said")
  printf '%s %s' $? "$(printf '%s\n' "$got" | cut -f 1,4 | tr '\t' ' ')"
}
damage() { printf 'Entry not found' >"$models/scout.gguf"; }

damage
is 'neither curl nor wget' "$(fetch)" '3 failed connection lost: there is no curl and no wget'
for form in gnu busybox; do
  cp "$sound" "$hub/scout.gguf"
  rm -f "$box/bare/wget"
  [ $form = gnu ] || ! command -v busybox >/dev/null || ln -s "$(command -v busybox)" "$box/bare/wget"
  [ $form = busybox ] || ! command -v wget >/dev/null || ln -s "$(command -v wget)" "$box/bare/wget"
  # A static busybox may die where it resolves a name.
  if ! "$box/bare/wget" -q -T 5 -O "$box/probe" "$HF_ENDPOINT/o/r/resolve/main/scout.gguf" >/dev/null 2>&1; then
    echo "note: not here or not working, not tested: wget of $form"
    continue
  fi
  damage
  is "$form: good bytes get the name" "$(fetch) $(there)" "0 healed verified; $size bytes $all"
  is "$form: they are the pinned ones" "$(sha256sum <"$models/scout.gguf")" "$sum"
  rm "$hub/scout.gguf"
  is "$form: a sound file is left alone" "$(fetch | cut -c 1-4)" '0 ok'
  damage
  like "$form: not on the server" "$(fetch)" "'3 failed connection lost: wget ended '[1-9]*"
  { cat "$sound" && echo; } | head -c $((size - 1)) >"$hub/scout.gguf"
  is "$form: too short" "$(fetch)" "3 failed corrupt: $((size - 1)) bytes, pinned are $size"
  { cat "$sound" && echo; } >"$hub/scout.gguf"
  is "$form: too long" "$(fetch)" "3 failed corrupt: $((size + 1)) bytes, pinned are $size"
  { head -c $((size - 1)) "$sound" && printf x; } >"$hub/scout.gguf"
  is "$form: other bytes" "$(fetch)" '3 failed corrupt: its sha256 is not the pinned one'
  like "$form: nobody answers" "$(HF_ENDPOINT=http://127.0.0.1:1 && fetch)" "'3 failed connection lost: wget ended '[1-9]*"
  is "$form: the old file stays, nothing else" "$(cat "$models/scout.gguf") $(there)" "Entry not found $all"

  # wget would hand a token on to whatever host a redirect names.
  cp "$sound" "$hub/scout.gguf"
  HF_TOKEN=hf_secret && export HF_TOKEN
  is "$form: asks without the token, and says so" \
    "$(fetch | cut -c 1-8) $(tail -n 1 "$box/nginx/tokens") $(grep -c 'without the token' "$box/said")" '0 healed - 1'
  unset HF_TOKEN
done
finish
