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
# that all shells have; the names in it begin with _sh_, because a caller may have the plain ones readonly, or exported to the
# command that is run. External programs are called through `command`, past the caller's aliases and functions.

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
  _sh_self=${1-}
  # shellcheck disable=SC2016 # expanded by eval, where the shell knows it
  case $_sh_self:${ZSH_VERSION-}:${KSH_VERSION-} in
    :: | *MIRBSD*) ;;
    ::*) _sh_self=$(eval 'printf "%s\n" "${.sh.file}"' 2>/dev/null) ;;
    :*) _sh_self=$(eval 'printf "%s\n" "${(%):-%x}"' 2>/dev/null) ;;
  esac
  if [ -z "$_sh_self" ]; then
    for _sh_fd in "/proc/${2:-0}/fd"/*; do
      [ -f "$_sh_fd" ] || continue
      _sh_rest=$(command readlink "$_sh_fd")
      case $_sh_rest in */selfheal.sh) _sh_self=$_sh_rest ;; esac
    done
  fi
  case $_sh_self in /*) ;; *) _sh_self=$PWD/$_sh_self ;; esac
  [ -f "$_sh_self" ] && CDPATH='' command cd -P "${_sh_self%/*}" && command pwd -P
}

# An error in one line and the next command: MESSAGE HINT. In a subshell, because a `>&2` in a function makes ksh93 lose the
# stdout of a command substitution around it.
_selfheal_error() (
  printf '%s: %s\nhint: %s\n' "${_selfheal_name:-selfheal}" "$1" "$2" >&2 || :
)

# FORMAT ARG...: printf to standard output. 74 and one line where that is full or closed: `3>&1`, because zsh takes a
# closed one for a success; the line comes from a child, because ksh93 would add to it what it could not write.
_selfheal_put() {
  # shellcheck disable=SC2059 # the caller's format
  { printf "$@" 3>&1; } 2>/dev/null && return
  # shellcheck disable=SC2016 # the other shell's
  command sh -c 'printf "%s: cannot write to standard output: it is full or closed\n" "$0" >&2' "${_selfheal_name:-selfheal}" || :
  return 74
}

# Prints the help that a script has in its first comment: its name, its sentence, its usage, and what else stands there.
_selfheal_help() {
  _sh_text=$(command awk -v name="${1##*/}" 'NR == 1 || out || !/^#/ { out += NR > 1; next }
    { sub(/^# ?/, "") } NR == 2 { $0 = name " - " tolower(substr($0, 1, 1)) substr($0, 2) } { print }' "$1")
  _selfheal_put '%s\n' "$_sh_text"
}

# Leaves in _sh_dir the directory VALUE, else NAME in the home; 64 when VALUE is no absolute path, 74 when HOME is none: without
# a home nothing is looked for in /, let alone written.
_selfheal_below() {
  _sh_dir=$1
  case $1 in /*) return 0 ;; ?*) return 64 ;; esac
  case ${HOME-} in /*) _sh_dir=$HOME/$2 ;; *) return 74 ;; esac
}

# Leaves the toolkit's home in _sh_dir, or says why there is none.
_selfheal_home() {
  _selfheal_below "${SELFHEAL_HOME-}" .selfheal && return
  set -- $?
  _selfheal_error "${SELFHEAL_HOME:+SELFHEAL_}HOME is not an absolute path" 'export HOME, or set SELFHEAL_HOME'
  return "$1"
}

# TEXT with every control character made a blank, so that it stays on its line.
_selfheal_one_line() {
  printf '%s' "$1" | command tr '[:cntrl:]' ' '
}

# The first NAME with an x bit on PATH; unlike `command -v` it never answers with a function or an alias. ~/.shim, whose
# links are our own programs again, is left out, and so is what depends on the current directory.
_selfheal_on_path() (
  _selfheal_alone
  _sh_left=${PATH-}:
  while [ -n "$_sh_left" ]; do
    _sh_at=${_sh_left%%:*} _sh_left=${_sh_left#*:}
    case $_sh_at in "${HOME:-.}/.shim" | "${HOME:-.}/.shim/") continue ;; /*) ;; *) continue ;; esac
    [ ! -f "$_sh_at/$1" ] || [ ! -x "$_sh_at/$1" ] || { printf '%s\n' "$_sh_at/$1" && return 0; }
  done
  return 1
)

# ---- the toolkit's programs -------------------------------------------------------------------------------------

# Prints what can bound another program: sh-timeout, else timeout(1). Callers judge by what the bounded program printed,
# because the statuses of the two differ.
_selfheal_bound() (
  _selfheal_alone
  _selfheal_seek sh-timeout
  case $_sh_found in ok*) printf '%s\n' "${_sh_found#ok }" ;; *) _selfheal_on_path timeout ;; esac
)

# Leaves in `found` of the subshell it is called in: `ok FILE` for the first copy of NAME that answers `--version`, else
# `STATE FILE` for the first damaged one, else `missing -`. The words count, not the status: a shell runs an empty file as an
# empty script, which ends 0. Places: SELFHEAL_BIN_DIR, out/ of a checkout, bin/ of an unpacked release, PREFIX/bin when this
# is PREFIX/share/selfheal/sh, ~/.shim, PATH. A script that asks for several leaves a bound in _selfheal_limiter.
_selfheal_seek() {
  _sh_name=$1 _sh_found='missing -' _sh_bad=corrupt _sh_bound=${_selfheal_limiter-} _sh_sought=${_selfheal_limiter:+yes}
  _sh_left=${PATH-}: _sh_here=${_selfheal_dir:-/dev/null}
  set -- "${SELFHEAL_BIN_DIR:-/dev/null}" "$_sh_here/../out" "$_sh_here/../bin" "$_sh_here/../../../bin"
  case ${HOME-} in /*) set -- "$@" "$HOME/.shim" ;; esac
  while [ -n "$_sh_left" ]; do
    case $_sh_left in /*) set -- "$@" "${_sh_left%%:*}" ;; esac
    _sh_left=${_sh_left#*:}
  done
  for _sh_place; do
    _sh_file=$_sh_place/$_sh_name _sh_state=stripped
    [ -f "$_sh_file" ] || continue
    if [ -x "$_sh_file" ]; then
      # the right words prove the sh-timeout beside it too, so it is asked for itself only when they do not come
      _sh_state=$_sh_bad
      [ -n "$_sh_sought" ] || _sh_bound=$_sh_place/sh-timeout
      [ "$_sh_name" != sh-timeout ] || _sh_bound=$_sh_file
      ! _selfheal_answers || { _sh_found="ok $_sh_file" && return; }
      if [ -z "$_sh_sought" ] && [ -s "$_sh_file" ] && [ "$_sh_name" != sh-timeout ]; then
        _sh_sought=yes _sh_first=$_sh_bound
        _sh_bound=$(_selfheal_bound) || _sh_state=unknown _sh_bad=unknown
        [ "$_sh_bound" = "$_sh_first" ] || ! _selfheal_answers || { _sh_found="ok $_sh_file" && return; }
      fi
    fi
    [ "$_sh_found" != 'missing -' ] || _sh_found="$_sh_state $_sh_file"
  done
}

# Whether `file` says the version of `name` under `bound`.
_selfheal_answers() {
  [ -s "$_sh_file" ] && [ -f "$_sh_bound" ] && [ -x "$_sh_bound" ] && [ -s "$_sh_bound" ] || return 1
  case $(exec "$_sh_bound" -s KILL 2 "$_sh_file" --version </dev/null 2>/dev/null) in "$_sh_name "[0-9]*) return 0 ;; esac
  return 1
}

# Prints the path of a working copy of NAME, or says what is wrong and ends 69.
selfheal_find() (
  _selfheal_alone
  case $#:${1-} in
    1: | 1:-* | 1:*/* | [!1]*)
      _selfheal_error 'selfheal_find takes the name of a program' 'selfheal_find gguf-verify'
      return 64
      ;;
  esac
  _selfheal_seek "$1"
  case $_sh_found in
    ok*)
      _selfheal_put '%s\n' "${_sh_found#ok }"
      return
      ;;
    missing*) _sh_what='is not installed' ;;
    stripped*) _sh_what="lost its execute bits: ${_sh_found#* }" ;;
    unknown*) _sh_what='cannot be tried: sh-timeout is gone and timeout(1) too' ;;
    *) _sh_what="does not answer --version: ${_sh_found#* }" ;;
  esac
  _selfheal_error "$(_selfheal_one_line "$1") $_sh_what" 'run make in the checkout or reinstall the toolkit; SELFHEAL_BIN_DIR names another place'
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
    case $_sh_found in ok*) ;; *) _selfheal_environment && exec sh "$_selfheal_dir/fallback" "$@" ;; esac
    _sh_program=${_sh_found#ok }
  else
    _sh_program=$(selfheal_find "$1") || return 69
  fi
  shift
  _selfheal_environment
  exec "$_sh_program" "$@"
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
    case $_sh_found in ok*) exec "${_sh_found#ok }" "$@" ;; esac
    exec sh "$_selfheal_dir/fallback" sh-timeout "$@"
  fi
  ! _sh_bound=$(selfheal_find sh-timeout) || exec "$_sh_bound" "$@"
  _selfheal_error "refused to run '$(_selfheal_one_line "$2")' without a bound" 'bring sh-timeout back'
  return 4
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
  _sh_base=${SELFHEAL_HOME:-${HOME:-.}/.selfheal}
  _sh_log=$_sh_base/selfheal.log
  _sh_line="$(command date -u +%Y-%m-%dT%H:%M:%SZ) selfheal.sh $1 $(_selfheal_one_line "$2")"
  if [ "${_sh_base#/}" != "$_sh_base" ] && [ ! -L "$_sh_log" ] && { [ -f "$_sh_log" ] || [ ! -e "$_sh_log" ]; } &&
    command mkdir -p "$_sh_base" 2>/dev/null; then
    [ ! -f "$_sh_log" ] || [ "$(command wc -c <"$_sh_log")" -lt 1048576 ] || command mv -f "$_sh_log" "$_sh_log.1"
    { printf '%s\n' "$_sh_line" >>"$_sh_log"; } 2>/dev/null && return 0
  fi
  _selfheal_error 'cannot write selfheal.log' 'SELFHEAL_HOME must be an absolute directory that can be written'
  return 0
)

# Prints the role whose model can be used and returns 0, or 5 when it is another than ROLE or not wholly proven, 3 when there
# is none. A damaged model is fetched through its breaker, with consent.
selfheal_ensure_model() (
  _selfheal_alone
  _sh_role=${1-} _sh_seen=''
  case $#:$_sh_role in
    1:?*[!A-Za-z0-9_.-]* | 1:[!A-Za-z0-9_.-]* | 1: | [!1]*)
      _selfheal_error 'selfheal_ensure_model takes a role' 'selfheal_ensure_model scout'
      return 64
      ;;
  esac
  _sh_roles=$(selfheal_model_budget show) || return
  _sh_roles=" $(printf '%s\n' "$_sh_roles" | command cut -f 1 | command tr '\n' ' ')"
  case $_sh_roles in *" $_sh_role "*) ;; *)
    _selfheal_error "manifest.json has no role '$_sh_role'" "the roles are$_sh_roles"
    return 64
    ;;
  esac
  for _sh_other in "$_sh_role" scout spark forge; do
    case "$_sh_roles $_sh_seen " in *" $_sh_other "*" $_sh_other "*) continue ;; *" $_sh_other "*) ;; *) continue ;; esac
    _sh_seen="$_sh_seen $_sh_other"
    selfheal_gguf_verify "$_sh_other" >/dev/null
    _sh_code=$?
    if [ "$_sh_other" = "$_sh_role" ] && [ "$_sh_code" = 3 ]; then
      selfheal_do "fetch the model of $_sh_role" _selfheal_fetch "$_sh_role" >&2 && _sh_code=0
    fi
    case $_sh_code in
      0) ;;
      5) (printf 'selfheal: the model of %s could not be proven\n' "$_sh_other" >&2) || : ;;
      3) continue ;;
      *) return "$_sh_code" ;;
    esac
    _selfheal_put '%s\n' "$_sh_other" || return
    [ "$_sh_other" != "$_sh_role" ] || return "$_sh_code"
    (printf 'selfheal: degraded: %s stands in for %s\n' "$_sh_other" "$_sh_role" >&2) || :
    return 5
  done
  _selfheal_error "no usable model for $_sh_role" "SELFHEAL_MODE=fix hf-fetch $_sh_role"
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
  _selfheal_home || return
  _sh_code=0
  if [ -f "${_selfheal_dir-}/install-shim" ] && ! command sh "$_selfheal_dir/install-shim" --check; then
    selfheal_do 'restore the programs in ~/.shim' command sh "$_selfheal_dir/install-shim" || _sh_code=$?
  fi
  if ! selfheal_llama_rebuild --status; then
    selfheal_do 'rebuild the engine' selfheal_llama_rebuild || _sh_code=$(_selfheal_worse "$_sh_code" $?)
  fi
  selfheal_gguf_verify | (
    while IFS='	' read -r _sh_state _sh_kind _sh_role _sh_rest; do
      case $_sh_state:$_sh_kind in
        missing:model | short:model | corrupt:model | failed:model)
          selfheal_do "fetch the model of $_sh_role" _selfheal_fetch "$_sh_role" || _sh_code=$(_selfheal_worse "$_sh_code" $?)
          ;;
        ok:model) ;;
        *) _sh_code=$(_selfheal_worse "$_sh_code" 5) ;;
      esac
    done
    return "$_sh_code"
  )
)

# The worse of two numbers of the contract; one that no verdict stands for (64, 74) is never hidden.
_selfheal_worse() {
  case $1 in [!02345]* | ??*) set -- "$1" "$1" ;; esac
  case $2 in [!02345]* | ??*) set -- "$2" "$2" ;; esac
  for _sh_rank in 4 3 2 5; do
    case " $1 $2 " in *" $_sh_rank "*) printf '%s\n' "$_sh_rank" && return 0 ;; esac
  done
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
  _selfheal_home || return
  _sh_stamp=$_sh_dir/state/apt.$1
  _sh_now=$(command date +%s)
  _sh_last=0
  [ ! -f "$_sh_stamp" ] || read -r _sh_last <"$_sh_stamp" || :
  case $_sh_last in '' | *[!0-9]*) _sh_last=0 ;; esac
  if [ "$_sh_last" -le "$_sh_now" ] && [ $((_sh_now - _sh_last)) -lt 3600 ]; then
    _selfheal_error "the package $1 was tried within the last hour" "rm $_sh_stamp"
    return 4
  fi
  if ! { command mkdir -p "${_sh_stamp%/*}" && printf '%s\n' "$_sh_now" >"$_sh_stamp"; } 2>/dev/null; then
    _selfheal_error 'cannot write the stamp of the attempt' 'SELFHEAL_HOME must be a directory that can be written'
    return 74
  fi
  _sh_package=$1
  set -- env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l APT_LISTCHANGES_FRONTEND=none apt-get -q -y \
    -o DPkg::Lock::Timeout=60 -o Acquire::Retries=1 -o Acquire::http::Timeout=30 \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold # a changed conffile would be asked about
  [ "$(command id -u)" = 0 ] || set -- sudo -n "$@"
  run_with_timeout 600 "$@" install --no-install-recommends "$_sh_package" >&2 && return 0
  run_with_timeout 300 "$@" update >&2
  run_with_timeout 600 "$@" install --no-install-recommends "$_sh_package" >&2 && return 0
  _selfheal_error "the package $_sh_package could not be installed" "apt-get install $_sh_package"
  return 4
)

# ---- preflight --------------------------------------------------------------------------------------------------

# Prints one verdict line per thing that must work (JSON objects with --json) and returns 0, or 5 when any is not ok, within
# 10 seconds. It reads only.
selfheal_preflight() (
  _selfheal_alone
  if [ ! -f "${_selfheal_dir-}/preflight" ]; then
    _selfheal_error 'preflight is not beside selfheal.sh' 'in a checkout git checkout sh; else reinstall: make install, or install.sh'
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
unset _selfheal_pid _selfheal_rest _selfheal_from _selfheal_limiter _selfheal_name
case ${HOME-}:${PATH-} in
  /*:?*) case ":$PATH:" in *":$HOME/.shim:"*) ;; *) PATH=$HOME/.shim:$PATH ;; esac ;;
esac
