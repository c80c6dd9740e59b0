#!/bin/sh
# Measures how fast each role that is here answers on this machine, and records it for model-budget.
#
# usage: tune.sh [ROLE]...
#
# One line a run: ROLE<TAB>THREADS<TAB>TOKENS PER SECOND. llama-bench measures one thread, half and all of them where it is
# built; else one run of llama-completion is read from its own log. With SELFHEAL_MODE=fix the figure of all threads is
# recorded, because that is how run-guarded runs: a bound made of a faster one would cut answers off.

script=$0 # zsh calls a function by its own name there
case $script in */*) sh_dir=${script%/*} ;; *) sh_dir=. ;; esac
if [ ! -f "$sh_dir/selfheal.sh" ] || [ ! -f "$sh_dir/fallback-models" ]; then
  printf 'tune.sh: selfheal.sh is not beside it\nhint: in a checkout git checkout sh; else reinstall: make install, or install.sh\n' >&2
  exit 69
fi
_selfheal_from=$sh_dir
# shellcheck source=sh/selfheal.sh
. "$sh_dir/selfheal.sh"
_selfheal_alone
# shellcheck source=sh/fallback-models
. "$sh_dir/fallback-models"

_selfheal_name=tune.sh
_selfheal_put '' || exit # with a closed standard output the next file opened would be taken for it

fail() {
  (printf 'tune.sh: %s\nhint: %s\n' "$2" "$3" >&2) || :
  exit "$1"
}

# Where the engine is: kept, built, PATH; llama-rebuild --status has said that it is healthy.
find_engine() {
  place SELFHEAL_LLAMA_DIR "${SELFHEAL_LLAMA_DIR-}" llama.cpp
  built=$place/build/bin
  place SELFHEAL_HOME "${SELFHEAL_HOME-}" .selfheal
  for dir in "$place"/engine/* "$built"; do
    engine=$dir # yash keeps a loop's variable inside its function
    case ${engine##*/} in *.*) continue ;; esac
    [ ! -x "$engine/llama-completion" ] || return 0
  done
  at=$(_selfheal_on_path llama-completion) && engine=${at%/*}
}

# THREADS: tokens per second of the model at `path`, or nothing; as run-guarded runs it, with threads that do not spin while
# they wait.
measure() (
  OMP_WAIT_POLICY=passive GGML_NO_BACKTRACE=1
  export OMP_WAIT_POLICY GGML_NO_BACKTRACE
  if [ -x "$engine/llama-bench" ]; then
    run_with_timeout 120 "$engine/llama-bench" -m "$path" -t "$1" -p 0 -n 32 -r 2 -o csv 2>/dev/null | awk -F '","|,' '
      NR == 1 { for (i = 1; i <= NF; i++) { gsub(/"/, "", $i); if ($i == "avg_ts") at = i } }
      NR == 2 && at { gsub(/"/, "", $at); printf "%.1f\n", $at }'
  else
    run_with_timeout 120 "$engine/llama-completion" -m "$path" -t "$1" -p 'Once upon a time' -n 32 -no-cnv 2>&1 >/dev/null |
      sed -n 's/.* eval time = .* \([0-9.]*\) tokens per second.*/\1/p' | tail -n 1
  fi
)

main() {
  case ${1-} in
    --help)
      _selfheal_help "$script"
      return
      ;;
    -*) fail 64 "unknown option '$(_selfheal_one_line "$1")'" 'tune.sh --help' ;;
  esac
  find_manifest
  for role; do
    role_of "$role" || fail 64 "no role of that name: $(_selfheal_one_line "$role")" 'tune.sh scout'
  done
  _selfheal_home || return
  engine=''
  { selfheal_llama_rebuild --status >/dev/null && find_engine; } || fail 4 'there is no healthy engine' 'SELFHEAL_MODE=fix llama-rebuild'
  cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null) || cores=1
  # shellcheck disable=SC2046 # a role has no blank
  [ $# -gt 0 ] || set -- $(everyday)
  code=0 done=0
  for role; do
    role_of "$role"
    selfheal_gguf_verify "$role" >/dev/null || continue
    all=''
    for threads in $(printf '%s\n' 1 $((cores / 2)) "$cores" | awk '$1 > 0' | sort -nu); do
      (printf 'tune.sh: measuring %s on %s threads\n' "$role" "$threads" >&2) || :
      tps=$(measure "$threads")
      case $tps in '' | *[!0-9.]*) continue ;; esac
      _selfheal_put '%s\t%s\t%s\n' "$role" "$threads" "$tps" || exit
      [ "$threads" != "$cores" ] || all=$tps
    done
    if [ -z "$all" ]; then
      (printf 'tune.sh: no run of %s on %s threads could be measured\n' "$role" "$cores" >&2) || :
      code=$(_selfheal_worse "$code" 2)
      continue
    fi
    done=$((done + 1))
    selfheal_do "record $all tokens per second of $role" selfheal_model_budget record "$role" "$all" >&2 || code=$(_selfheal_worse "$code" $?)
  done
  [ $done -gt 0 ] || [ "$code" != 0 ] || fail 3 'there is no usable model' 'gguf-verify'
  return "$code"
}

main "$@"
