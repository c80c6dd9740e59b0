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
twice='scout
scout'

# Everything but what the tests themselves keep; with a DIRECTORY, also but what is below it.
world() {
  census "$box" | grep -v -e "^$calls " -e "^$box/said " -e "^$box/world " -e "^$box d" -e "^$tree/out " -e "^$kept" \
    -e "^${1:-$box/none}"
}

# What is no call of its own runs in one shell, as in that of a user who sourced the file: its number and what it printed,
# without the prose of a verdict.
cat >"$box/functions" <<'END'
tab='	'
. "$HOME/tree/sh/selfheal.sh"
did() {
  answer=$("$@" 2>>"$HOME/said")
  printf '%s %s %s\n' "$1" $? "${answer%"$tab"*}"
}
did selfheal_ensure_model scout
did selfheal_hf_fetch sage
did selfheal_sh_timeout 0.2 sleep 30
did selfheal_model_budget scout 8
did selfheal_breaker x -- sh -c 'exit 3'
did selfheal_llama_rebuild --status
END
did='selfheal_ensure_model 0 scout
selfheal_hf_fetch 5 would	model	sage
selfheal_sh_timeout 2 
selfheal_model_budget 0 16
selfheal_breaker 3 
selfheal_llama_rebuild 0 ok	binary	engine'

# Every use of the toolkit as it is now: WHAT was taken, for messages, and how many inferences two equal calls take.
uses() {
  runs=$((runs + 1))
  world >"$box/world"
  read -r began rest </proc/uptime
  found=$(function_of selfheal_preflight)
  read -r ended rest </proc/uptime
  like "$1: preflight" "${found%% *}" '0 | 5'
  is "$1: preflight within its bound" "$([ $((${ended%.*} - ${began%.*})) -le 15 ] && echo yes)" yes
  is "$1: a model, one without consent, a bound, a budget, a breaker, an engine" "$(under "$box/functions")" "$did"
  is "$1: a guarded call" "$(guarded 'two and two' scout 8)" '0 four'
  is "$1: check mode wrote nothing" "$(world)" "$(cat "$box/world")"
  : >"$calls"
  is "$1: a call that may be kept" "$(SELFHEAL_MODE=fix && export SELFHEAL_MODE && guarded "$1" scout 8)" '0 four'
  is "$1: the same again" "$(SELFHEAL_MODE=fix && export SELFHEAL_MODE && guarded "$1" scout 8)" '0 four'
  is "$1: a hit where cache and key are there" "$(cat "$calls")" "$2"
  is "$1: fix mode wrote below the toolkit's home alone" "$(world "$box/.selfheal")" "$(grep -v "^$box/.selfheal" "$box/world")"
  is "$1: nothing half-written is left" "$(find "$box" -name '*partial*' -o -name '*.new*')" ''
}

# MASK HOW: takes the programs whose bits are set, as `gone empty short stripped`.
take() {
  rm -rf "$tree/out" "$box/.selfheal/cache" "$box/.selfheal/state"
  cp -rl "$kept" "$tree/out" # links, so what is damaged below is replaced
  bit=1 taken='' inferences=scout
  for program in $(programs); do
    if [ $(($1 & bit)) != 0 ]; then
      at=$tree/out/$program taken="$taken $program"
      case $2 in
        gone) rm "$at" ;;
        empty) rm "$at" && : >"$at" && chmod 755 "$at" ;;
        short) rm "$at" && head -c 20000 "$kept/$program" >"$at" && chmod 755 "$at" ;;
        stripped) rm "$at" && cp "$kept/$program" "$at" && chmod 644 "$at" ;;
      esac
      case $program in prompt-cache | run-guarded) inferences=$twice ;; esac
    fi
    bit=$((bit * 2))
  done
  [ -z "$taken" ] || without=$((without + 1))
  uses "$2:${taken:- nothing}" "$inferences"
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
