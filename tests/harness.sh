# shellcheck shell=sh
# What every shell test stands on: a private home, the real programs, one printed line per failed check, the counts.
#
# A test begins with `. "${0%/*}/harness.sh"` and ends with `finish`. It runs in the shell named by $UNDER (run-shell sets
# it), which `under FILE ARG...` starts once more.

case $0 in /*) root=${0%/tests/*} ;; *) root=$PWD/$0 root=${root%/tests/*} ;; esac
UNDER=${UNDER:-sh}
SELFHEAL_BIN_DIR=${SELFHEAL_BIN_DIR:-$root/out}
SELFHEAL_MANIFEST=${SELFHEAL_MANIFEST:-$root/manifest.json}
export UNDER SELFHEAL_BIN_DIR SELFHEAL_MANIFEST
unset SELFHEAL_MODE SELFHEAL_HOME SELFHEAL_MODELS_DIR SELFHEAL_LLAMA_DIR SELFHEAL_DEEP_VERIFY BASH_ENV ENV CDPATH
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH

box=$(mktemp -d "${TMPDIR:-/tmp}/selfheal-test.XXXXXX") || exit 74
HOME=$box
export HOME
trap 'chmod -R u+w "$box" 2>/dev/null; rm -rf "$box"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
passed=0 failed=0

# Starts the shell under test; `busybox ash` is two words, which not every shell would split.
under() {
  case $UNDER in
    'busybox '*) busybox "${UNDER#busybox }" "$@" ;;
    *) "$UNDER" "$@" ;;
  esac
}

# WHAT GOT WANT: a check that two texts are equal.
is() {
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAIL %s: %s\n  got:  %s\n  want: %s\n' "$UNDER" "$1" "$2" "$3"
  fi
}

# WHAT TEXT PATTERN: a check that a text matches a shell pattern (evaluated, because zsh takes an expanded one literally).
like() {
  if eval "case \$2 in $3) ;; *) false ;; esac"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAIL %s: %s\n  got:  %s\n  like: %s\n' "$UNDER" "$1" "$2" "$3"
  fi
}

# Every file below a directory with type, mode, owner, size, time and link target: equal twice, nothing was written between.
census() {
  find "$@" -printf '%p %y %m %U %s %T@ %l\n' | sort
}

# How many processes have TEXT in their command line; the pattern comes by standard input, or grep would find itself.
alive() {
  # shellcheck disable=SC2062 # that is the list of files
  printf '%s\n' "$1" | grep -lsaF -f - /proc/[0-9]*/cmdline | grep -c .
}

finish() {
  printf '%s passed, %s failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}
