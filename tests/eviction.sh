#!/bin/sh
# Whatever the snapshot took of the toolkit's own programs, a call comes back with an answer or a number, and writes
# nothing where it may not.
#
# EVICTION=all tries every subset of the eight programs and every kind of damage; else each shell tries its own few.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/small_world.sh
. "$root/tests/small_world.sh"

kept=$box/kept
cp -r "$tree/out" "$kept"
rm "$models/sage.gguf" "$models/spark.gguf"
runs=0 without=0

# Everything but what the tests themselves keep; with `inside`, also but the toolkit's home.
world() {
  census "$box" | grep -v -e "^$calls " -e "^$box/said " -e "^$box/world " -e "^$box d" -e "^$tree/out " -e "^$kept" \
    -e "^${1:-$box/none}"
}

# Every use of the toolkit as it is now; WHAT says in messages what was taken.
uses() {
  runs=$((runs + 1))
  world >"$box/world"
  began=$(date +%s)
  found=$(function_of selfheal_preflight)
  like "$1: preflight" "${found%% *}" '0 | 5'
  is "$1: preflight within its bound" "$([ $(($(date +%s) - began)) -le 15 ] && echo yes)" yes
  is "$1: a model" "$(function_of selfheal_ensure_model scout)" '0 scout'
  is "$1: a missing model, no consent" "$(function_of selfheal_hf_fetch sage | head -c 7)" '5 would'
  is "$1: a bound" "$(function_of selfheal_sh_timeout 0.2 sleep 30)" '2 '
  is "$1: a budget" "$(function_of selfheal_model_budget scout 8)" '0 16'
  is "$1: a breaker" "$(function_of selfheal_breaker x -- sh -c 'exit 3')" '3 '
  is "$1: an engine" "$(function_of selfheal_llama_rebuild --status | cut -f 1-3)" '0 ok	binary	engine'
  is "$1: a guarded call" "$(guarded 'two and two' scout 8)" '0 four'
  is "$1: check mode wrote nothing" "$(world | diff "$box/world" -)" ''
  : >"$calls"
  is "$1: a call that may be kept" "$(SELFHEAL_MODE=fix && export SELFHEAL_MODE && guarded "$1" scout 8)" '0 four'
  is "$1: the same again" "$(SELFHEAL_MODE=fix && export SELFHEAL_MODE && guarded "$1" scout 8)" '0 four'
  ran=2
  [ -n "$2" ] || ran=1
  is "$1: a hit where cache and key are there" "$(wc -l <"$calls" | tr -d ' ')" $ran
  is "$1: fix mode wrote below the toolkit's home alone" \
    "$(world "$box/.selfheal" | diff - "$box/world" | grep '^[<>]' | grep -v "$box/.selfheal")" ''
  is "$1: nothing half-written is left" "$(find "$box" -name '*partial*' -o -name '*.new*')" ''
}

# MASK HOW: takes the programs whose bits are set, as `gone empty short stripped`.
take() {
  rm -rf "$tree/out" "$box/.selfheal/cache" "$box/.selfheal/state"
  cp -rl "$kept" "$tree/out" # links, so what is damaged below is replaced
  bit=1 taken='' nohit=''
  for program in $(programs); do
    if [ $(($1 & bit)) != 0 ]; then
      at=$tree/out/$program taken="$taken $program"
      case $2 in
        gone) rm "$at" ;;
        empty) rm "$at" && : >"$at" && chmod 755 "$at" ;;
        short) rm "$at" && head -c 20000 "$kept/$program" >"$at" && chmod 755 "$at" ;;
        stripped) rm "$at" && cp "$kept/$program" "$at" && chmod 644 "$at" ;;
      esac
      case $program in prompt-cache | run-guarded) nohit=yes ;; esac
    fi
    bit=$((bit * 2))
  done
  [ -z "$taken" ] || without=$((without + 1))
  uses "$2:${taken:- nothing}" "$nohit"
}

if [ "${EVICTION-}" = all ]; then
  mask=0
  while [ $mask -lt 256 ]; do
    take $mask gone
    mask=$((mask + 1))
  done
  for how in empty short stripped; do
    for mask in 1 2 4 8 16 32 64 128 255; do take $mask $how; done
  done
else
  # a sample that differs from shell to shell and is the same each time
  seed=$(printf '%s' "$UNDER" | cksum | cut -d ' ' -f 1)
  take 255 gone
  take $((seed / 7 % 256)) gone
  case $((seed % 3)) in 0) how=empty ;; 1) how=short ;; *) how=stripped ;; esac
  take 255 $how
  take $((1 << seed / 3 % 8)) $how
fi
printf 'note: %s: %s runs, %s of them without at least one program\n' "$UNDER" $runs $without
finish
