# shellcheck shell=sh disable=SC2154 # of harness.sh
# sh/swr as the tests of its words call it; sourced behind harness.sh.
unset SWR_HOME
out=$box/.out err=$box/.err

swr() { under "$root/sh/swr" "$@"; }
# ARG...: the status, and how many lines and hints there are on stderr.
refused() {
  swr "$@" >"$out" 2>"$err"
  printf '%s %s' $? "$(wc -l <"$err" | tr -d ' ')"
  grep -c '^hint: .' "$err" | sed 's/^/ /'
}
