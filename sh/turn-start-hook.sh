#!/bin/sh
# The first thing of a turn: `swr doctor` under a bound, so that a damaged workspace is repaired before anybody works in it.
#
# usage: turn-start-hook.sh [SECONDS]     900 unless given
#
# It asks nothing, prints everything on stderr and always ends, so a turn may simply run it. Its statuses are those of the
# guard family: 0 healthy, or repaired; 2 the doctor did not come to its end; 4 there is no swr here, or nothing to bound
# it with; 5 damage is left, or it could not be told (swr: 1 2 3, 4 no signed manifest, 74, 75); 64 wrong usage.

script=$0
case $script in */*) beside=${script%/*} ;; *) beside=. ;; esac
if [ ! -f "$beside/selfheal.sh" ] || [ ! -f "$beside/swr" ]; then
  printf 'turn-start-hook.sh: selfheal.sh or swr is not beside it\nhint: %s\n' \
    'in a checkout git checkout sh; else reinstall: make install, or install.sh' >&2
  exit 4
fi
_selfheal_from=$beside
# shellcheck source=sh/selfheal.sh
. "$beside/selfheal.sh"
_selfheal_alone
_selfheal_name=turn-start-hook.sh

# SECONDS: prints the doctor's status when it ended by itself, and nothing when it was stopped. What it found goes to stderr.
bounded() {
  # shellcheck disable=SC2016 # expanded by the shell that is started
  set -- "$1" sh -c 'sh "$0" doctor >&2; printf "%s\n" "$?"' "$beside/swr"
  if selfheal_find sh-timeout >/dev/null 2>&1; then
    run_with_timeout "$@"
  else
    limiter=$(_selfheal_bound) || return 4
    "$limiter" -k 5 "$@" </dev/null
  fi
}

main() {
  case $#:${1-900} in
    1:--help)
      _selfheal_help "$script"
      return
      ;;
    [!01]* | ??:* | ?:*[!0-9]* | ?: | ?:0* | ?:????????*)
      printf 'turn-start-hook.sh: the bound is not a number of seconds\nhint: turn-start-hook.sh [SECONDS]\n' >&2
      return 64
      ;;
  esac
  code=$(bounded "${1-900}")
  stopped=$?
  case $code in
    0) return 0 ;;
    69) return 4 ;;
    [1234] | 74 | 75) return 5 ;;
    '')
      [ $stopped != 4 ] || return 4
      printf 'turn-start-hook.sh: swr doctor did not end within %s s\nhint: %s/swr restore --resume goes on\n' \
        "${1-900}" "$beside" >&2
      return 2
      ;;
  esac
  return 2
}

main "$@"
