#!/bin/sh
# selfheal_do is the gate of repairs: without consent it says and does nothing, with consent it does and logs.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=sh/selfheal.sh
. "$root/sh/selfheal.sh"

touched=$box/touched
log=$box/.selfheal/selfheal.log
# DESCRIPTION CMD...: the status, then what was printed, on one line.
gate() {
  selfheal_do "$@" >"$box/out" 2>"$box/err"
  printf '%s|%s|%s' "$?" "$(cat "$box/out")" "$(cat "$box/err")"
}

for mode in '' check; do
  SELFHEAL_MODE=$mode
  before=$(census "$box")
  is "mode '$mode': says what it would do" "$(
    selfheal_do 'rebuild the engine' touch "$touched" 2>&1
    echo $?
  )" 'DRY: would rebuild the engine
5'
  is "mode '$mode': writes nothing" "$(census "$box")" "$before"
done
unset SELFHEAL_MODE
is 'no mode is check' "$(gate 'x' touch "$touched")" '5||DRY: would x'
is 'a description stays on its line' "$(gate 'two
lines' true)" '5||DRY: would two lines'
for mode in Fix FIX yes 1 'fix '; do
  SELFHEAL_MODE=$mode
  like "mode '$mode' is no consent" "$(gate x touch "$touched")" "'64||selfheal: SELFHEAL_MODE is '*'hint: '*"
done
is 'nothing was run' "$(ls "$touched" 2>/dev/null)" ''

SELFHEAL_MODE=fix
like 'no command' "$(gate 'only words')" "'64||selfheal: '*'hint: '*"
is 'output and success pass' "$(gate 'say it' printf '%s %s' a 'b  c')" '0|a b  c|'
inner() { selfheal_do 'inner repair' "$@"; }
is 'a failing command keeps its status' "$(gate 'fail' under -c 'exit 3')" '3||'
is 'a function can be the command, nested too' "$(gate 'outer repair' inner under -c 'exit 7')" '7||'
is 'a killed command has the status of its signal' "$(
  selfheal_do die sh -c 'kill -9 $$' 2>/dev/null
  echo $?
)" $((128 + 9))
is 'a missing command' "$(
  selfheal_do gone no-such-program-here 2>/dev/null
  [ $? -gt 100 ] && echo high
)" high
is 'the log: time, tool, event, subject' \
  "$(sed 's/^[0-9]\{4\}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z /T /' "$log")" 'T selfheal.sh repaired say it
T selfheal.sh failed fail
T selfheal.sh failed inner repair
T selfheal.sh failed outer repair
T selfheal.sh failed die
T selfheal.sh failed gone'
is 'the log is private' "$(find "$box/.selfheal" -printf '%m ')" '700 600 '

gate 'a
b' true >/dev/null
is 'one line per event' "$(tail -n 1 "$log" | cut -d ' ' -f 2-)" 'selfheal.sh repaired a b'
head -c 1048576 /dev/zero | tr '\0' x >"$log"
gate rotate true >/dev/null
is 'at 1 MiB it rotates once' "$(wc -c <"$log.1" | tr -d ' ') $(wc -l <"$log" | tr -d ' ')" '1048576 1'

# A log that cannot be written is said and stops no repair.
unwritable="'0||selfheal: cannot write selfheal.log'*'hint: '*"
rm "$log"
mkfifo "$log"
like 'a FIFO as the log does not hang' "$(gate x true)" "$unwritable"
rm "$log"
printf keep >"$box/elsewhere"
ln -s "$box/elsewhere" "$log"
like 'a link as the log is not followed' "$(gate x true)$(cat "$box/elsewhere")" "${unwritable}keep"
rm "$log"
SELFHEAL_HOME=$box/elsewhere
like 'a file as the home' "$(gate x true)" "$unwritable"
SELFHEAL_HOME=/proc/no
like 'a home where nothing can be made' "$(gate x true)" "$unwritable"
SELFHEAL_HOME=relative
like 'a relative home' "$(gate x true)" "$unwritable"
is 'made no relative directory' "$(ls relative 2>/dev/null)" ''
unset SELFHEAL_HOME HOME
like 'no home at all' "$(gate x true)" "$unwritable"
HOME=$box

is 'two repairs at once keep every line whole' "$(
  i=0
  while [ $i -lt 20 ]; do
    selfheal_do "repair number $i" true &
    i=$((i + 1))
  done
  wait
  grep -c '^20..-..-..T..:..:..Z selfheal.sh repaired repair number [0-9]*$' "$log"
)" 20
finish
