#!/bin/sh
# What `make install` and install.sh put below a prefix is everything there is, works from there alone, and goes again.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

case $UNDER in
  dash | bash | zsh) ;; # three shells that differ; what is installed is tested in all of them elsewhere
  *)
    is 'one check' 1 1
    finish
    exit
    ;;
esac
unset SELFHEAL_BIN_DIR SELFHEAL_MANIFEST SWR_HOME TARGET # which make would hand on, and for that ask for again

# What is there, without a list that has to be kept: each by its name below the prefix.
there() {
  cd "$root" || exit
  for tool in bins/*/; do basename "$tool" | sed 's|^|bin/|'; done
  echo bin/swr
  find bins lib docs -name '*.[1-9]' ! -path '*/target/*' | sed 's|.*/\(.*\.\(.\)\)$|share/man/man\2/\1|'
  for file in sh/*; do echo "share/selfheal/$file"; done
  echo share/selfheal/manifest.json
  # shellcheck disable=SC2016
  sed -n 's/^#compdef //p' sh/completions | tr ' ' '\n' | sed 's|^|share/bash-completion/completions/|'
  echo share/zsh/site-functions/_selfheal
}
installed() { (cd "$1" && find . ! -type d | sed 's|^\./||' | sort); }
# The programs in out/ are taken as they are.
installs() { make -C "$root" -o all --no-print-directory "$@" >"$box/said" 2>&1 </dev/null; }

at="$box/de st/usr"
installs install DESTDIR="$box/de st" PREFIX=/usr
is 'everything there is, is installed' "$(installed "$at")" "$(there | sort)"
is 'what can be run can be run' "$(find "$at/bin" "$at/share/selfheal/sh" -type f -perm -u+x | sed "s|^$at/||" | sort)" "$(
  cd "$root" && {
    for tool in bins/*/; do basename "$tool" | sed 's|^|bin/|'; done
    echo bin/swr
    find sh -type f -perm -u+x | sed 's|^|share/selfheal/|'
  } | sort
)"

# From there alone, found on PATH as a user has it.
PATH=$at/bin:$PATH
cd "$box" || exit 74
for tool in "$at"/bin/*; do
  tool=${tool##*/}
  is "installed: $tool --version" "$("$tool" --version 2>&1 | cut -d ' ' -f 1)" "$tool"
  is "installed: $tool --help" "$("$tool" --help >"$box/help" 2>&1 && grep -c "^usage: .*$tool" "$box/help")" 1
  is "installed: $tool has a page" "$(ls "$at/share/man/man1/$tool.1")" "$at/share/man/man1/$tool.1"
done
for command in "$at"/share/selfheal/sh/*; do
  [ ! -x "$command" ] || is "installed: sh/${command##*/} --help" "$(under "$command" --help >/dev/null 2>&1 && echo yes)" yes
done
is 'installed: the programs find the manifest' "$(gguf-verify scout | cut -f 1-3)" 'missing	model	scout'
is 'installed: the scripts find the programs and the manifest' \
  "$(under "$at/share/selfheal/sh/preflight" 2>/dev/null | grep -c -e '^ok	binary' -e '^missing	model')" "$(printf '%s\n' sh-timeout run-guarded \
    llama-rebuild gguf-verify hf-fetch breaker prompt-cache model-budget scout spark forge sage | grep -c .)"
# shellcheck disable=SC2016 # the other shell's
is 'installed: the functions find the programs' "$(under -c '. "$0/share/selfheal/sh/selfheal.sh" && selfheal_model_budget scout 80' "$at")" 34
mkdir "$box/work"
printf '#!/bin/sh\necho tool\n' >"$box/tool.sh"
chmod 755 "$box/tool.sh"
is 'installed: swr autopilot, then doctor' "$(swr autopilot >/dev/null 2>&1 && swr doctor 2>/dev/null | grep -c '^ok	file	tool.sh')" 1
is 'installed: the hook' "$(
  under "$at/share/selfheal/sh/turn-start-hook.sh" 2>/dev/null
  echo $?
)" 0

# Uninstalling takes what was installed and nothing else.
: >"$at/bin/mine"
: >"$at/share/selfheal/sh/mine"
installs uninstall DESTDIR="$box/de st" PREFIX=/usr
is 'uninstalled: what is not ours is left' "$(installed "$at")" 'bin/mine
share/selfheal/sh/mine'
is 'uninstalled: that is said, and no error' "$(sed "s|$at|AT|g" "$box/said")" "left, because it is not ours: what is in AT/share/selfheal
removed from AT"
is 'uninstalled again: the same' "$(
  installs uninstall DESTDIR="$box/de st" PREFIX=/usr
  echo $?
)$(installed "$at" | grep -c .)$(grep -c . "$box/said")" 022
rm -r "$at/share/selfheal"
is 'where nothing is installed nothing is removed' "$(
  installs uninstall DESTDIR="$box/de st" PREFIX=/usr
  echo $?
)$(installed "$at" | grep -c .)" 21
is 'without a home there is no default' "$(HOME='' && export HOME && installs install && echo installed)$(grep -c 'give PREFIX' "$box/said")" 1

# install.sh does the same, from an unpacked release.
release=$box/release
installs install DESTDIR= PREFIX="$release"
cp "$root/install.sh" "$release/"
release() { PREFIX=$box/pre under "$release/install.sh" "$@" >"$box/said" 2>&1; }
release
is 'install.sh: the same files' "$(installed "$box/pre")" "$(there | sort)"
is 'install.sh: --help' "$(release --help && grep -c 'install.sh --uninstall' "$box/said")" 1
is 'install.sh: what it does not know' "$(
  release --bogus
  printf %s $?
  release --uninstall more
  echo $?
)" 6464
: >"$box/pre/share/selfheal/mine"
for again in '' again; do
  is "install.sh: uninstalled $again" "$(release --uninstall && installed "$box/pre" && cut -d , -f 1 "$box/said" | cut -d ' ' -f 1 | tr '\n' ' ')" \
    'share/selfheal/mine
left removed '
done

# What cannot compile says so in one line, before it tries to add a target to nothing.
mkdir "$box/rust"
printf '#!/bin/sh\nexit 1\n' >"$box/rust/rustc"
printf '#!/bin/sh\n' >"$box/rust/cargo"
printf '#!/bin/sh\n' >"$box/rust/rustup"
chmod 755 "$box"/rust/*
is 'rustup without a default toolchain' "$(
  PATH=$box/rust:$PATH
  "$root/tests/setup" target 2>&1
  echo $?
)" 'setup: rustc does not run: rustup default stable, or install Rust 1.89 or later
1'
finish
