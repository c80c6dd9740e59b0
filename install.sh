#!/bin/sh
# install.sh - put the toolkit below PREFIX (default ~/.local); running it is the consent.
#
# In an unpacked release it copies; in a checkout it builds first (`make`). Every file appears by one rename, so a
# program that is running stays whole and a second run changes nothing. It asks nothing, and deletes nothing unless
# told to uninstall.
#
#   ./install.sh
#   PREFIX=/usr/local ./install.sh
#   ./install.sh --uninstall        takes away the files it put there, and nothing else
set -u
script=$0 # zsh calls a function by its own name there

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  [ -z "${2-}" ] || printf 'hint: %s\n' "$2" >&2
  exit "${3-74}"
}

# Copies FROM to TO with MODE unless TO is already so.
put() {
  [ -f "$2" ] && cmp -s "$1" "$2" && [ "$(stat -c %a "$2")" = "$3" ] && return 0
  mkdir -p "${2%/*}" && cp "$1" "$2.new.$$" && chmod "$3" "$2.new.$$" && mv -f "$2.new.$$" "$2" && return 0
  rm -f "$2.new.$$"
  fail "cannot write '$2'" "PREFIX names a directory that can be written"
}

# What is to be installed, below the stage.
files() { (cd "$stage" && find bin share -type f); }

main() {
  verb=install
  case $#:${1-} in
    0:) ;;
    1:--uninstall) verb=uninstall ;;
    1:-h | 1:--help)
      sed -n '2,10s/^# \{0,1\}//p' "$script" || fail 'cannot write to standard output'
      exit 0
      ;;
    *) fail "unexpected argument '${2-$1}'" './install.sh --help' 64 ;;
  esac
  [ -n "${PREFIX-}${HOME-}" ] || fail 'neither PREFIX nor HOME is set' 'PREFIX=/usr/local ./install.sh' 64
  prefix=${PREFIX:-$HOME/.local}
  case $prefix in /*) ;; *) fail "PREFIX is not an absolute path" 'PREFIX=/usr/local ./install.sh' 64 ;; esac
  here=$(CDPATH='' cd "$(dirname "$script")" && pwd) || fail "cannot find where install.sh stands"

  stage=$here
  if [ -f "$here/Makefile" ]; then
    command -v make >/dev/null 2>&1 || fail 'make is missing' 'apt-get install make' 69
    [ $verb = install ] || exec make -C "$here" --no-print-directory uninstall PREFIX="$prefix" DESTDIR=
    stage=$(mktemp -d) || fail 'cannot make a temporary directory'
    trap 'rm -rf "$stage"' EXIT
    trap 'exit 130' INT TERM
    make -C "$here" --no-print-directory install DESTDIR="$stage" PREFIX= </dev/null >/dev/null || fail 'make failed' 'make'
  elif [ ! -d "$here/bin" ] || [ ! -d "$here/share" ]; then
    fail "neither a checkout nor an unpacked release: '$here'"
  fi

  if [ $verb = uninstall ]; then
    [ -d "$prefix/share/selfheal" ] || fail "nothing is installed in $prefix" 'PREFIX names another place'
    files | (while IFS= read -r file; do rm -f "$prefix/$file" || fail "cannot remove '$prefix/$file'"; done) || exit
    rmdir "$prefix/share/selfheal/sh" "$prefix/share/selfheal" 2>/dev/null
    [ ! -d "$prefix/share/selfheal" ] || printf 'left, because it is not ours: what is in %s\n' "$prefix/share/selfheal"
    printf 'removed from %s\n' "$prefix" || fail 'cannot write to standard output'
    return 0
  fi
  files | (while IFS= read -r file; do
    mode=644
    [ ! -x "$stage/$file" ] || mode=755
    put "$stage/$file" "$prefix/$file" $mode
  done) || exit
  printf 'installed in %s\n' "$prefix" || fail 'cannot write to standard output'
  case :$PATH: in *:"$prefix/bin":*) ;; *) printf 'hint: put %s/bin in PATH\n' "$prefix" >&2 ;; esac
}

main "$@"
