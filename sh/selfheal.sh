# shellcheck shell=sh
# The one file to source, in any POSIX shell: the toolkit's programs as functions, never without a bound.
#
#   selfheal_sh_timeout selfheal_gguf_verify selfheal_hf_fetch selfheal_breaker selfheal_prompt_cache
#   selfheal_llama_rebuild selfheal_model_budget selfheal_run_guarded
#                                  the programs; where one is missing, the plain form of it (sh/fallback)
#   selfheal_find NAME             print where a working copy of a program is
#   run_with_timeout SECONDS CMD   run a program under a bound
#   selfheal_do "rebuild X" CMD    a repair: runs under SELFHEAL_MODE=fix, else only says what it would do
#   selfheal_ensure_model ROLE     print the role whose model can be used, fetched when it may be
#   selfheal_host_package NAME     a package of the machine, installed when it may be
#   selfheal_preflight [--json]    one verdict line per thing that must work; reads only
#   selfheal_heal                  repair what preflight would name: bits, engine, models
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

# Prints the directory of this file: NAME PID; called as $(...), which is its scope. POSIX does not tell a sourced file its
# name. bash (NAME), ksh93 and zsh know; dash, busybox, mksh and yash hold it open while they read it, so /proc names it.
# Without /proc the other places remain.
_selfheal_where() {
  _selfheal_alone
  self=${1-}
  # shellcheck disable=SC2016 # expanded by eval, where the shell knows it
  case $self:${ZSH_VERSION-}:${KSH_VERSION-} in
    :: | *MIRBSD*) ;;
    ::*) self=$(eval 'printf "%s\n" "${.sh.file}"' 2>/dev/null) ;;
    :*) self=$(eval 'printf "%s\n" "${(%):-%x}"' 2>/dev/null) ;;
  esac
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
}

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
    case $at in "${HOME-}/.shim" | "${HOME-}/.shim/") continue ;; /*) ;; *) continue ;; esac
    [ ! -f "$at/$1" ] || [ ! -x "$at/$1" ] || { printf '%s\n' "$at/$1" && return 0; }
  done
  return 1
)

# ---- the toolkit's programs -------------------------------------------------------------------------------------

# Prints what can bound another program: sh-timeout, else timeout(1). Callers judge by what the bounded program printed,
# because the statuses of the two differ.
_selfheal_bound() (
  _selfheal_alone
  _selfheal_seek sh-timeout
  case $found in ok*) printf '%s\n' "${found#ok }" ;; *) _selfheal_on_path timeout ;; esac
)

# Leaves in `found` of the subshell it is called in: `ok FILE` for the first copy of NAME that answers `--version`, else
# `STATE FILE` for the first damaged one, else `missing -`. The words count, not the status: a shell runs an empty file as an
# empty script, which ends 0. Places: SELFHEAL_BIN_DIR, out/ of a checkout, bin/ of an unpacked release, PREFIX/bin when this
# is PREFIX/share/selfheal/sh, ~/.shim, PATH. A script that asks for several leaves a bound in _selfheal_limiter.
_selfheal_seek() {
  name=$1 found='missing -' bad=corrupt bound=${_selfheal_limiter-} sought=${_selfheal_limiter:+yes} left=${PATH-}: here=${_selfheal_dir:-/dev/null}
  set -- "${SELFHEAL_BIN_DIR-}" "$here/../out" "$here/../bin" "$here/../../../bin" "${HOME-}/.shim"
  while [ -n "$left" ]; do
    case $left in /*) set -- "$@" "${left%%:*}" ;; esac
    left=${left#*:}
  done
  for place; do
    file=$place/$name state=stripped
    [ -f "$file" ] || continue
    if [ -x "$file" ]; then
      # the right words prove the sh-timeout beside it too, so it is asked for itself only when they do not come
      state=$bad
      [ -n "$sought" ] || bound=$place/sh-timeout
      [ "$name" != sh-timeout ] || bound=$file
      ! _selfheal_answers || { found="ok $file" && return; }
      if [ -z "$sought" ] && [ -s "$file" ] && [ "$name" != sh-timeout ]; then
        sought=yes first=$bound
        bound=$(_selfheal_bound) || state=unknown bad=unknown
        [ "$bound" = "$first" ] || ! _selfheal_answers || { found="ok $file" && return; }
      fi
    fi
    [ "$found" != 'missing -' ] || found="$state $file"
  done
}

# Whether `file` says the version of `name` under `bound`.
_selfheal_answers() {
  [ -s "$file" ] && [ -f "$bound" ] && [ -x "$bound" ] && [ -s "$bound" ] || return 1
  case $(exec "$bound" -s KILL 2 "$file" --version </dev/null 2>/dev/null) in "$name "[0-9]*) return 0 ;; esac
  return 1
}

# Prints the path of a working copy of NAME, or says what is wrong and ends 69.
selfheal_find() (
  _selfheal_alone
  _selfheal_seek "${1-}"
  case $found in
    ok*) printf '%s\n' "${found#ok }" && return 0 ;;
    missing*) what='is not installed' ;;
    stripped*) what="lost its execute bits: ${found#* }" ;;
    unknown*) what='cannot be tried: sh-timeout is gone and timeout(1) too' ;;
    *) what="does not answer --version: ${found#* }" ;;
  esac
  _selfheal_error "${1-} $what" 'run make in the checkout or reinstall the toolkit; SELFHEAL_BIN_DIR names another place'
  return 69
)

# In a subshell: hands what this shell has set, exported or not, to the programs, and the manifest beside sh/ unless the
# caller named one.
_selfheal_environment() {
  if [ -z "${SELFHEAL_MANIFEST-}" ] && [ -f "${_selfheal_dir-}/../manifest.json" ]; then
    SELFHEAL_MANIFEST=$_selfheal_dir/../manifest.json
  fi
  export SELFHEAL_MODE SELFHEAL_HOME SELFHEAL_MODELS_DIR SELFHEAL_MANIFEST SELFHEAL_BIN_DIR SELFHEAL_LLAMA_DIR
  export SELFHEAL_DEEP_VERIFY SELFHEAL_LLAMA_ANY_REMOTE SELFHEAL_REQUIRED_FILES HF_ENDPOINT HF_TOKEN SWR_HOME HOME PATH
}

# Becomes the program NAME with its arguments, or its plain form; 69 when that is gone too.
_selfheal_run() (
  _selfheal_alone
  if [ -f "${_selfheal_dir-}/fallback" ]; then
    _selfheal_seek "$1"
    case $found in
      ok*) at=${found#ok } ;;
      *)
        _selfheal_environment
        exec sh "$_selfheal_dir/fallback" "$@"
        ;;
    esac
  else
    at=$(selfheal_find "$1") || return 69
  fi
  shift
  _selfheal_environment
  exec "$at" "$@"
)

selfheal_sh_timeout() { _selfheal_run sh-timeout "$@"; }
selfheal_gguf_verify() { _selfheal_run gguf-verify "$@"; }
selfheal_hf_fetch() { _selfheal_run hf-fetch "$@"; }
selfheal_breaker() { _selfheal_run breaker "$@"; }
selfheal_prompt_cache() { _selfheal_run prompt-cache "$@"; }
selfheal_llama_rebuild() { _selfheal_run llama-rebuild "$@"; }
selfheal_model_budget() { _selfheal_run model-budget "$@"; }
selfheal_run_guarded() { _selfheal_run run-guarded "$@"; }

# Runs a program (not a function) for at most SECONDS with stdin at its end: its status, 2 when the time was over, 4 when
# it cannot be run or nothing here can bound it.
run_with_timeout() (
  case ${1-} in '' | *[!0-9.smhd]*) set -- ;; esac
  if [ "$#" -lt 2 ]; then
    _selfheal_error 'run_with_timeout takes seconds and a command' 'run_with_timeout 30 CMD...'
    return 64
  fi
  if [ -f "${_selfheal_dir-}/fallback" ]; then
    _selfheal_alone
    _selfheal_seek sh-timeout
    case $found in ok*) at=${found#ok } ;; *) exec sh "$_selfheal_dir/fallback" sh-timeout "$@" ;; esac
  elif ! at=$(selfheal_find sh-timeout); then
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

# Prints the role whose model can be used and returns 0, or 5 when it is another than ROLE or not wholly proven, 3 when there
# is none. A damaged model is fetched through its breaker, with consent.
selfheal_ensure_model() (
  _selfheal_alone
  role=${1-} seen=''
  case $role in
    '' | *[!A-Za-z0-9_.-]*)
      _selfheal_error 'selfheal_ensure_model takes a role' 'selfheal_ensure_model scout'
      return 64
      ;;
  esac
  for other in "$role" scout spark forge; do
    case " $seen " in *" $other "*) continue ;; esac
    seen="$seen $other"
    selfheal_gguf_verify "$other" >/dev/null
    code=$?
    if [ "$other" = "$role" ] && [ "$code" = 3 ]; then
      selfheal_do "fetch the model of $role" _selfheal_fetch "$role" >&2 && code=0
    fi
    case $code in
      0) ;;
      5) (printf 'selfheal: the model of %s could not be proven\n' "$other" >&2) || : ;;
      3) continue ;;
      *) return "$code" ;;
    esac
    printf '%s\n' "$other"
    [ "$other" != "$role" ] || return "$code"
    (printf 'selfheal: degraded: %s stands in for %s\n' "$other" "$role" >&2) || :
    return 5
  done
  _selfheal_error "no usable model for $role" "SELFHEAL_MODE=fix hf-fetch $role"
  return 3
)

# Fetches the model of a role unless that keeps failing.
_selfheal_fetch() {
  if [ -f "${_selfheal_dir-}/fallback" ]; then
    selfheal_breaker --verdicts "$1" -- sh "$_selfheal_dir/fallback" --best hf-fetch "$1"
  else
    selfheal_hf_fetch "$1"
  fi
}

# Repairs in order of tiers: the programs' bits, the engine, the models. 0 when all is well afterwards, else the worst number
# of a step: 4, 3, 2, 5.
selfheal_heal() (
  _selfheal_alone
  if [ $# != 0 ]; then
    _selfheal_error 'selfheal_heal takes no argument' 'selfheal_heal'
    return 64
  fi
  code=0
  if [ -f "${_selfheal_dir-}/install-shim" ] && ! command sh "$_selfheal_dir/install-shim" --check; then
    selfheal_do 'restore the programs in ~/.shim' command sh "$_selfheal_dir/install-shim" || code=$?
  fi
  if ! selfheal_llama_rebuild --status; then
    selfheal_do 'rebuild the engine' selfheal_llama_rebuild || code=$(_selfheal_worse "$code" $?)
  fi
  selfheal_gguf_verify | (
    while IFS='	' read -r state kind role rest; do
      case $state:$kind in
        missing:model | short:model | corrupt:model | failed:model)
          selfheal_do "fetch the model of $role" _selfheal_fetch "$role" || code=$(_selfheal_worse "$code" $?)
          ;;
        ok:model) ;;
        *) code=$(_selfheal_worse "$code" 5) ;;
      esac
    done
    return "$code"
  )
)

# The worse of two numbers of the contract.
_selfheal_worse() {
  for _selfheal_rank in 4 3 2 5; do
    case " $1 $2 " in *" $_selfheal_rank "*) printf '%s\n' "$_selfheal_rank" && return 0 ;; esac
  done
  [ "$1" = 0 ] || set -- "$1" "$1"
  printf '%s\n' "$2"
}

# A package of the machine: nothing to do when it is there; with consent apt-get installs it, as root or by `sudo -n`, at most
# one attempt an hour. 4 when it cannot.
selfheal_host_package() {
  case ${1-} in
    '' | -* | *[!a-z0-9+.-]*)
      _selfheal_error 'selfheal_host_package takes the name of a package' 'selfheal_host_package cmake'
      return 64
      ;;
  esac
  if _selfheal_on_path "$1" >/dev/null || [ "$(command dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; then
    return 0
  fi
  selfheal_do "install the package $1" _selfheal_apt "$1"
}

_selfheal_apt() (
  _selfheal_alone
  umask 077
  stamp=${SELFHEAL_HOME:-${HOME-}/.selfheal}/state/apt.$1
  now=$(command date +%s)
  last=0
  [ ! -f "$stamp" ] || read -r last <"$stamp" || :
  case $last in '' | *[!0-9]*) last=0 ;; esac
  if [ "$last" -le "$now" ] && [ $((now - last)) -lt 3600 ]; then
    _selfheal_error "the package $1 was tried within the last hour" "rm $stamp"
    return 4
  fi
  if ! { command mkdir -p "${stamp%/*}" && printf '%s\n' "$now" >"$stamp"; } 2>/dev/null; then
    _selfheal_error 'cannot write the stamp of the attempt' 'SELFHEAL_HOME must be a directory that can be written'
    return 74
  fi
  package=$1
  set -- env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l APT_LISTCHANGES_FRONTEND=none apt-get -q -y \
    -o DPkg::Lock::Timeout=60 -o Acquire::Retries=1 -o Acquire::http::Timeout=30
  [ "$(command id -u)" = 0 ] || set -- sudo -n "$@"
  run_with_timeout 600 "$@" install --no-install-recommends "$package" >&2 && return 0
  run_with_timeout 300 "$@" update >&2
  run_with_timeout 600 "$@" install --no-install-recommends "$package" >&2 && return 0
  _selfheal_error "the package $package could not be installed" "apt-get install $package"
  return 4
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

# A script of this directory says where that is. Else the shell's own number may be needed, which $$ is not in a subshell;
# `read` runs in this very process.
_selfheal_pid='' _selfheal_dir=${_selfheal_from-}
case $_selfheal_dir in '' | /*) ;; *) _selfheal_dir=$PWD/$_selfheal_dir ;; esac
if [ -z "$_selfheal_dir" ]; then
  [ ! -r /proc/self/stat ] || IFS=' ' read -r _selfheal_pid _selfheal_rest </proc/self/stat || :
  # shellcheck disable=SC3028 # empty in the shells that have no BASH_SOURCE
  _selfheal_dir=$(_selfheal_where "${BASH_SOURCE-}" "$_selfheal_pid") || :
fi
unset _selfheal_pid _selfheal_rest _selfheal_from _selfheal_limiter
case ":${PATH-}:" in
  :: | *":${HOME-}/.shim:"*) ;;
  *) [ -z "${HOME-}" ] || PATH=$HOME/.shim:$PATH ;;
esac
