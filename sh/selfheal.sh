# shellcheck shell=sh
# The one file to source, in any POSIX shell: the toolkit's programs as functions, never without a bound.
#
#   selfheal_sh_timeout selfheal_gguf_verify selfheal_llama_rebuild selfheal_run_guarded   the programs
#   selfheal_find NAME             print where a working copy of a program is
#   run_with_timeout SECONDS CMD   run a program under a bound
#   selfheal_do "rebuild X" CMD    a repair: runs under SELFHEAL_MODE=fix, else only says what it would do
#   selfheal_preflight [--json]    one verdict line per thing that must work; reads only
#
# Statuses are those of selfheal(7). Sourcing prints nothing and leaves the caller's shell as it was, but for ~/.shim in
# front of PATH, once. A function body in ( ) is a subshell: its variables and options end with it, the only local scope
# that all shells have. External programs are called through `command`, past the caller's aliases and functions.

# Makes the subshell it is called in independent of the caller's options and IFS.
_selfheal_alone() {
  [ -z "${ZSH_VERSION-}" ] || emulate sh 2>/dev/null || :
  set +eufC
  unset IFS
}

# Prints the directory of this file: NAME PID. POSIX does not tell a sourced file its name. bash (NAME), ksh93 and zsh know;
# dash, busybox, mksh and yash hold it open while they read it, so /proc names it. Without /proc the other places remain.
_selfheal_where() (
  _selfheal_alone
  self=${1-}
  # shellcheck disable=SC2016 # expanded by eval, where the shell knows it
  [ -n "$self" ] || self=$(eval 'printf "%s\n" "${.sh.file}"' 2>/dev/null)
  # shellcheck disable=SC2016
  [ -n "$self" ] || self=$(eval 'printf "%s\n" "${(%):-%x}"' 2>/dev/null)
  if [ -z "$self" ]; then
    for fd in "/proc/${2:-0}/fd"/*; do
      [ -f "$fd" ] || continue
      rest=$(command readlink "$fd")
      case $rest in */selfheal.sh) self=$rest ;; esac
    done
  fi
  case $self in
    /*) ;;
    */*) self=$PWD/$self ;;
    *) self=$PWD/./$self ;;
  esac
  [ -f "$self" ] && CDPATH='' command cd -P "${self%/*}" && command pwd -P
)

# An error in one line and the next command: MESSAGE HINT. In a subshell, because a `>&2` in a function makes ksh93 lose the
# stdout of a command substitution around it.
_selfheal_error() (
  printf 'selfheal: %s\nhint: %s\n' "$1" "$2" >&2 || :
)

# TEXT with every control character made a blank, so that it stays on its line.
_selfheal_one_line() {
  printf '%s' "$1" | command tr '[:cntrl:]' ' '
}

# The first NAME with an x bit on PATH; unlike `command -v` it never answers with a function or an alias. ~/.shim, whose
# links are our own programs again, is left out, and so is what depends on the current directory.
_selfheal_on_path() (
  _selfheal_alone
  left=${PATH-}:
  while [ -n "$left" ]; do
    at=${left%%:*} left=${left#*:}
    case $at in "${HOME-}/.shim") continue ;; /*) ;; *) continue ;; esac
    [ ! -f "$at/$1" ] || [ ! -x "$at/$1" ] || { printf '%s\n' "$at/$1" && return 0; }
  done
  return 1
)

# ---- the toolkit's programs -------------------------------------------------------------------------------------

# SECONDS BOUND PROGRAM ARG...: becomes PROGRAM under BOUND, which is sh-timeout or timeout(1).
_selfheal_probe() (
  seconds=$1 bound=$2
  shift 2
  [ -n "$bound" ] || return 1
  exec "$bound" -s KILL "$seconds" "$@" </dev/null 2>/dev/null
)

# Prints what can bound another program: sh-timeout, else timeout(1). Callers judge by what the bounded program printed,
# because the statuses of the two differ.
_selfheal_bound() {
  selfheal_find sh-timeout 2>/dev/null || _selfheal_on_path timeout
}

# Prints `ok FILE` for the first copy of NAME that answers `--version`, else `STATE FILE` for the first damaged one, else
# `missing -`. The words count, not the status: a shell runs an empty file as an empty script, which ends 0.
# Places: SELFHEAL_BIN_DIR, out/ of a checkout, bin/ of an unpacked release, PREFIX/bin when this is
# PREFIX/share/selfheal/sh, ~/.shim, PATH.
_selfheal_look() (
  _selfheal_alone
  name=$1 found='missing -' bad=corrupt left=${PATH-}: here=${_selfheal_dir:-/dev/null}
  [ "$name" = sh-timeout ] || bound=$(_selfheal_bound) || bad=unknown
  set -- "${SELFHEAL_BIN_DIR-}" "$here/../out" "$here/../bin" "$here/../../../bin" "${HOME-}/.shim"
  while [ -n "$left" ]; do
    case $left in /*) set -- "$@" "${left%%:*}" ;; esac
    left=${left#*:}
  done
  for at; do
    at=$at/$name state=$bad
    [ -f "$at" ] || continue
    [ "$name" != sh-timeout ] || bound=$at
    [ -x "$at" ] || state=stripped
    if [ -x "$at" ] && [ -s "$at" ]; then
      words=$(_selfheal_probe 2 "$bound" "$at" --version)
      case $words in "$name "[0-9]*) printf 'ok %s\n' "$at" && return 0 ;; esac
    fi
    [ "$found" != 'missing -' ] || found="$state $at"
  done
  printf '%s\n' "$found"
)

# Prints the path of a working copy of NAME, or says what is wrong and ends 69.
selfheal_find() (
  _selfheal_alone
  found=$(_selfheal_look "${1-}")
  case $found in
    ok*) printf '%s\n' "${found#ok }" && return 0 ;;
    missing*) found='is not installed' ;;
    stripped*) found="lost its execute bits: ${found#* }" ;;
    unknown*) found='cannot be tried: sh-timeout is gone and timeout(1) too' ;;
    *) found="does not answer --version: ${found#* }" ;;
  esac
  _selfheal_error "${1-} $found" 'run make in the checkout or reinstall the toolkit; SELFHEAL_BIN_DIR names another place'
  return 69
)

# In a subshell: hands what this shell has set, exported or not, to the programs, and the manifest beside sh/ unless the
# caller named one.
_selfheal_environment() {
  if [ -z "${SELFHEAL_MANIFEST-}" ] && [ -f "${_selfheal_dir-}/../manifest.json" ]; then
    SELFHEAL_MANIFEST=$_selfheal_dir/../manifest.json
  fi
  export SELFHEAL_MODE SELFHEAL_HOME SELFHEAL_MODELS_DIR SELFHEAL_MANIFEST SELFHEAL_BIN_DIR SELFHEAL_LLAMA_DIR
}

# Becomes the program NAME with its arguments.
_selfheal_run() (
  _selfheal_alone
  at=$(selfheal_find "$1") || return 69
  shift
  _selfheal_environment
  exec "$at" "$@"
)

selfheal_sh_timeout() { _selfheal_run sh-timeout "$@"; }
selfheal_gguf_verify() { _selfheal_run gguf-verify "$@"; }
selfheal_llama_rebuild() { _selfheal_run llama-rebuild "$@"; }
selfheal_run_guarded() { _selfheal_run run-guarded "$@"; }

# Runs a program (not a function) for at most SECONDS with stdin at its end: its status, 2 when the time was over, 4 when
# it cannot be run or nothing here can bound it.
run_with_timeout() (
  case ${1-} in '' | *[!0-9.smhd]*) set -- ;; esac
  if [ "$#" -lt 2 ]; then
    _selfheal_error 'run_with_timeout takes seconds and a command' 'run_with_timeout 30 CMD...'
    return 64
  fi
  if ! at=$(selfheal_find sh-timeout); then
    _selfheal_error "refused to run '$(_selfheal_one_line "$2")' without a bound" 'bring sh-timeout back'
    return 4
  fi
  exec "$at" "$@"
)

# ---- repairs ----------------------------------------------------------------------------------------------------

# The gate of every repair: "DESCRIPTION" CMD... (a function too). Under SELFHEAL_MODE=fix it runs CMD, logs the event and
# returns CMD's status; otherwise it says what it would do and returns 5.
selfheal_do() {
  if [ "$#" -lt 2 ]; then
    _selfheal_error 'selfheal_do takes a description and a command' 'selfheal_do "rebuild the engine" CMD...'
    return 64
  fi
  case ${SELFHEAL_MODE-} in
    fix) ;;
    '' | check)
      (printf 'DRY: would %s\n' "$(_selfheal_one_line "$1")" >&2) || :
      return 5
      ;;
    *)
      _selfheal_error "SELFHEAL_MODE is '$(_selfheal_one_line "$SELFHEAL_MODE")', not 'check' or 'fix'" \
        'SELFHEAL_MODE=fix allows repairs, check only reports'
      return 64
      ;;
  esac
  if _selfheal_but_first "$@"; then
    _selfheal_log repaired "$1"
  else
    set -- "$?" "$1"
    [ "$1" -lt 256 ] || set -- $((128 + $1 % 128)) "$2" # ksh and yash count signals from 256 and 384
    _selfheal_log failed "$2"
    return "$1"
  fi
}

# Runs all but the first argument; selfheal_do itself needs no variable that a nested call would overwrite.
_selfheal_but_first() {
  shift
  "$@"
}

# Appends `time selfheal.sh EVENT SUBJECT` to selfheal.log as the programs do: 1 MiB, one rotation, never through a link or
# into a FIFO. A log that cannot be written is said and stops nothing.
_selfheal_log() (
  _selfheal_alone
  umask 077
  base=${SELFHEAL_HOME:-${HOME:-.}/.selfheal}
  log=$base/selfheal.log
  line="$(command date -u +%Y-%m-%dT%H:%M:%SZ) selfheal.sh $1 $(_selfheal_one_line "$2")"
  if [ "${base#/}" != "$base" ] && [ ! -L "$log" ] && { [ -f "$log" ] || [ ! -e "$log" ]; } &&
    command mkdir -p "$base" 2>/dev/null; then
    [ ! -f "$log" ] || [ "$(command wc -c <"$log")" -lt 1048576 ] || command mv -f "$log" "$log.1"
    { printf '%s\n' "$line" >>"$log"; } 2>/dev/null && return 0
  fi
  _selfheal_error 'cannot write selfheal.log' 'SELFHEAL_HOME must be an absolute directory that can be written'
  return 0
)

# ---- preflight --------------------------------------------------------------------------------------------------

# Prints one verdict line per thing that must work (JSON objects with --json) and returns 0, or 5 when any is not ok, within
# 10 seconds. It reads only.
selfheal_preflight() (
  _selfheal_alone
  if [ ! -f "${_selfheal_dir-}/preflight" ]; then
    _selfheal_error 'preflight is not beside selfheal.sh' 'restore sh/: git checkout sh, or reinstall the toolkit'
    return 69
  fi
  _selfheal_environment
  exec sh "$_selfheal_dir/preflight" "$@"
)

# ---- at source time ---------------------------------------------------------------------------------------------

# The shell's own number, which $$ is not in a subshell; `read` runs in this very process.
_selfheal_pid=
[ ! -r /proc/self/stat ] || IFS=' ' read -r _selfheal_pid _selfheal_rest </proc/self/stat || :
# shellcheck disable=SC3028 # empty in the shells that have no BASH_SOURCE
_selfheal_dir=$(_selfheal_where "${BASH_SOURCE-}" "$_selfheal_pid") || :
unset _selfheal_pid _selfheal_rest
case ":${PATH-}:" in
  :: | *":${HOME-}/.shim:"*) ;;
  *) [ -z "${HOME-}" ] || PATH=$HOME/.shim:$PATH ;;
esac
