#!/bin/sh
# A package of the machine: what is there is left alone, what is missing is installed without a question, with consent,
# as root or through sudo, once an hour. apt-get, sudo, id and dpkg-query are played by scripts, which note how they are called.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

mkdir -p "$box/bin"
stand_in() {
  cat >"$box/bin/$1"
  chmod 755 "$box/bin/$1"
}
printf '#!/bin/sh\nexit 1\n' | stand_in dpkg-query
# Installs when it may: fails as often as the file `failures` has lines.
stand_in apt-get <<'END'
#!/bin/sh
case $* in *install*) verb=install ;; *) verb=update ;; esac
if read -r answer; then asked=yes; else asked=no; fi
echo "$verb $DEBIAN_FRONTEND $NEEDRESTART_MODE asked:$asked" >>"$HOME/calls"
echo "$*" >>"$HOME/arguments"
[ $verb = install ] || exit 0
[ -s "$HOME/failures" ] || exit 0
sed -i 1d "$HOME/failures"
exit 100
END
# shellcheck disable=SC2016 # the program expands it
printf '#!/bin/sh\ncat "$HOME/uid"\n' | stand_in id
# As sudoers is everywhere, nothing of the environment goes through.
stand_in sudo <<'END'
#!/bin/sh
echo "sudo $1" >>"$HOME/calls"
[ "$1" = -n ] || exit 1
[ ! -f "$HOME/refuses" ] || { echo 'sudo: a password is required' >&2 && exit 1; }
shift
exec env -i PATH="$PATH" HOME="$HOME" "$@"
END
PATH=$box/bin:$PATH
state=$box/.selfheal/state
SELFHEAL_MODE=fix
export SELFHEAL_MODE

# NAME: the number of the call, then what was called, by the first two words of each line.
package() {
  : >"$box/calls"
  # shellcheck disable=SC2016 # the other shell's
  echo yes | under -c '. "$0/sh/selfheal.sh"; selfheal_host_package "$1"' "$root" "$1" >"$box/out" 2>"$box/said"
  printf '%s' $?
  cut -d ' ' -f 1-2 "$box/calls" | sed 's/^/ /' | tr -d '\n'
}
: >"$box/failures"
echo 0 >"$box/uid"

is 'what is on PATH is left alone' "$(package sh)" 0
for name in '' -y 'x; reboot' ../x 'a b' A; do is "no package: '$name'" "$(package "$name")" 64; done
is 'check mode calls nothing' "$(SELFHEAL_MODE=check && export SELFHEAL_MODE && package tiny)$(ls "$state" 2>/dev/null)" 5
is 'and says what it would do' "$(cat "$box/said")" 'DRY: would install the package tiny'
is 'as root' "$(package tiny)" '0 install noninteractive'
is 'nothing can ask, nothing restarts' "$(cat "$box/calls")" 'install noninteractive l asked:no'
is 'standard output stays clean' "$(cat "$box/out")" ''
like 'waits for a lock so long and no longer' "$(cat "$box/arguments")" "*'DPkg::Lock::Timeout=60 '*' install --no-install-recommends tiny'"
like 'a configuration file that was changed is kept without a question' "$(cat "$box/arguments")" \
  "*'-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold'*"
is 'the log says it' "$(cut -d ' ' -f 2- "$box/.selfheal/selfheal.log")" 'selfheal.sh repaired install the package tiny'
is 'not again within the hour' "$(package tiny)" 4
is 'said with the way out' "$(sed -n 's/^hint: //p' "$box/said" | head -n 1)" "rm $state/apt.tiny"
echo "$(($(date +%s) - 3601))" >"$state/apt.tiny"
is 'after an hour again' "$(package tiny)" '0 install noninteractive'
echo "$(($(date +%s) + 99999))" >"$state/apt.tiny"
is 'a stamp of the future counts for nothing' "$(package tiny)" '0 install noninteractive'
is 'another package is another attempt' "$(package other)" '0 install noninteractive'
rm "$state"/apt.*
echo x >"$box/failures"
is 'lists are fetched when it fails' "$(package tiny)" '0 install noninteractive update noninteractive install noninteractive'
rm "$state"/apt.*
printf 'x\nx\n' >"$box/failures"
is 'failed for good: 4' "$(package tiny | cut -c 1)" 4
is 'failed for good: the next command' "$(tail -n 1 "$box/said")" 'hint: apt-get install tiny'

echo 1000 >"$box/uid"
rm "$state"/apt.*
is 'as a user, by sudo, which may not ask' "$(package tiny)" '0 sudo -n install noninteractive'
is 'the variables come through sudo' "$(tail -n 1 "$box/calls")" 'install noninteractive l asked:no'
touch "$box/refuses"
rm "$state"/apt.*
is 'sudo that wants a password: 4, no question' "$(package tiny | cut -c 1) $(grep -c '^install' "$box/calls")" '4 0'
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$4" != there ] || echo installed\n' | stand_in dpkg-query
is 'a package without a program of its name, installed' "$(package there)" 0
finish
