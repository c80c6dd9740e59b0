#!/bin/sh
# Where a home is closed, read-only, of somebody else or not there, `swr` names that cause and what leads out of it, and never
# takes what it cannot see for what is not there. What file permissions keep from root is looked at as another user.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/swr_calls.sh
. "${0%/*}/swr_calls.sh"
says() { grep -c -e "$1" "$err"; }

HOME=$box/home manifest=$box/home/.swr/manifest.jsonl
mkdir "$HOME" && cd "$HOME" || exit 74
echo text >t
swr init && swr sign || exit 74

# ---- a check that failed is not healthy at the end of a pipe
# TEXT COMMAND ARG...: the status when it is not 0.
piped() {
  text=$1
  shift
  printf '%s' "$text" | swr "$@" >"$out" 2>"$err" || printf '%s' $?
}
for filter in why 'stats --record'; do
  # shellcheck disable=SC2046 # words
  set -- $(printf '%s\n' "$filter")
  is "nothing | swr $filter" "$(piped '' "$@")$(says '^hint: ')" 11
  is "garbage | swr $filter" "$(piped 'garbage
' "$@")$(says 'no verdicts')" 11
  is "no home: swr verify | swr $filter" "$(piped "$(HOME='' && swr verify 2>"$err")" "$@")" 1
done
is 'a healthy verdict | swr why' "$(piped 'ok	file	t	-
' why)" ''
is 'an unknown id: swr verify | swr why' "$(piped "$(swr verify --only nix 2>"$err")" why)" 1
is 'doctor of a box with nothing to look at stays healthy' "$(refused doctor)" '0 3 1'

# ---- a recipe that ends well and repairs nothing is one look a turn
swr add t --restore true 2>"$err" && swr sign
rm t
for turn in 1 2 3 4; do swr doctor >"$out" 2>"$err"; done
is "after turn $turn: looks" "$(swr stats | cut -f 4)" 4
swr doctor >"$out" 2>"$err"
is 'a repair that says nothing is no fault' "$(says 'no verdict')" 0
echo text >t

# ---- what is needed is not there
echo other >dep
swr add dep --needs t --restore 'echo other >dep' 2>"$err" && swr add t --restore 'echo text >t' 2>"$err" && swr sign
rm t dep
swr doctor --only dep >"$out" 2>"$err"
is 'only what needs more: the hint repairs both' \
  "$(sed -n 's/^hint: swr \([^;]*\).*/\1/p' "$err")$(swr explain dep 2>"$err" | grep -c 'swr restore --only t --only dep ')" 'doctor --only t --only dep1'
is 'so it does' "$(swr doctor --only t --only dep 2>"$err" | cut -f 1 | sort | tr '\n' ' ')" 'healed healed missing missing ok ok '

# ---- what is named is no manifest
for file in /dev/zero /dev/null /nope; do
  for verb in check restore; do
    is "$verb --manifest $file" "$(refused $verb --manifest $file | cut -d ' ' -f 3)$(says '^hint: --manifest takes ')" 11
  done
done

# ---- where there is no HOME
for verb in autopilot init; do
  is "HOME unset: $verb says what is true of it" "$(HOME='' && refused $verb)$(says 'set SWR_HOME and name another: swr init --workspace DIR')" '74 2 11'
done
is 'and it is' "$(HOME='' && SWR_HOME=$box/other && export SWR_HOME && refused init --workspace "$box/home")" '0 0 0'

# ---- what keeps it is gone or is something else
mv .swr kept
for verb in 'add t' sign check; do
  # shellcheck disable=SC2046
  set -- $(printf '%s\n' "$verb")
  is "no .swr: $verb: the copy comes before autopilot" "$(refused "$@" | cut -c 1)$(says '^hint: bring back a copy of .swr .*takes what is here now')" 41
done
ln -s gone .swr
for verb in 'add t' autopilot init sign; do
  # shellcheck disable=SC2046
  set -- $(printf '%s\n' "$verb")
  is "a link to nothing: $verb" "$(refused "$@")$(says 'is a link to nothing')" '74 2 11'
done
rm .swr && : >.swr
is 'a file' "$(refused autopilot)$(says 'is no directory')" '74 2 11'
rm .swr && mv kept .swr
is 'no programs in PATH' "$(
  env PATH=/nonexistent /bin/sh "$root/sh/swr" add t >"$out" 2>"$err"
  printf '%s' $?
  says 'there is no [a-z]* in PATH'
)" 691

# ---- another user
alien=''
# ARG...: as a user that permissions bind.
other() { if [ -n "$alien" ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi; }
if [ "$(id -u)" = 0 ]; then
  chmod 755 "$box"
  alien=yes
  other test -x "$root/sh/swr" -a -x "$SELFHEAL_BIN_DIR/swr-sign" 2>"$err" || {
    printf 'note: what permissions keep from a user was not looked at: no setpriv, or the programs are closed to others\n'
    finish
    exit
  }
fi
# ARG...: the status of it.
bound() {
  other "$root/sh/swr" "$@" >"$out" 2>"$err"
  printf '%s' $?
}
give() { [ -z "$alien" ] || chown -R 65534:65534 "$box/home"; }
give
while IFS='|' read -r mode verb code hint; do
  chmod "$mode" .swr
  # shellcheck disable=SC2046
  set -- $(printf '%s\n' "$verb")
  is ".swr $mode: $verb" "$(bound "$@")$(says "^hint: .*$hint")" "${code}1"
  chmod 700 .swr
done <<'END'
000|add t|74|chmod 700 '.*/.swr'$
000|sign|74|chmod 700 '.*/.swr'$
000|check|74|chmod 700 '.*/.swr'$
000|why t|74|chmod 700 '.*/.swr'$
500|add t|74|chmod 700 '.*/.swr', unless the whole disk is read-only
END
rm .swr/accepted.jsonl t
give
chmod 500 .swr
is '.swr 0500: restore asks for no room on the disk' "$(bound restore)$(says "^hint: chmod 700 '.*/.swr'$")" 21
chmod 700 .swr
echo text >t
chmod 000 .swr/signing.key
is 'a closed key: sign' "$(bound sign --again)$(says "^hint: chmod 600 '.*/signing.key'$")" 741
chmod 600 .swr/signing.key
chmod 000 "$manifest"
is 'a closed manifest: check' "$(bound check)$(says "^hint: chmod 600 '.*/manifest.jsonl'$")" 741
chmod 600 "$manifest"
chmod 400 .swr/manifest.lock
is 'a lock of another owner is named' "$(bound add t)$(says "^swr: cannot write .*/manifest.lock: ")" 741
chmod 600 .swr/manifest.lock
give
is 'open again' "$(bound sign)" 0
if [ -n "$alien" ]; then
  for verb in 'sign --again' 'sign --check'; do
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$verb")
    is "root in a home of somebody else: $verb" "$(swr "$@" >"$out" 2>"$err" || printf '%s' $?)$(says '^hint: run this as that user')" 41
  done
fi
finish
