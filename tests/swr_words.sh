#!/bin/sh
# `swr` keeps its word: an option is honoured or refused, a manifest is made by those alone that make one, nothing is written
# where no home is, what is found is tracked, and what could not be printed is never called healthy.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/swr_calls.sh
. "${0%/*}/swr_calls.sh"
PATH=$root/sh:$PATH # where hints need not say which swr they mean
# NAME: a new home, which is also the current directory.
home() {
  HOME=$box/$1
  mkdir -p "$HOME" && cd "$HOME" || exit 74
  manifest=$HOME/.swr/manifest.jsonl
}
script() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod 755 "./$1"; }
count() { grep -c '^{"id"' "$manifest"; }

# ---- options of doctor
home options
head -c 3000000 /dev/zero >"$box/blob"
cp "$box/blob" blob
script run.sh true
swr init 2>"$err" && swr add blob --restore "cp $box/blob blob" 2>"$err" && swr sign
is 'healthy' "$(swr check | cut -f 1 | tr '\n' ' ')" 'ok ok '
refusals() {
  while IFS='|' read -r what first second; do
    is "$1: doctor $what is refused" "$(refused doctor "$first" ${second:+"$second"})" '64 2 1'
    is "$1: doctor $what runs nothing" "$(grep -c '^==' "$err")$(wc -c <"$out" | tr -d ' ')" 00
  done <<'END'
with an unknown option|--bogus
with an operand|x
with an operand behind a value|--jobs=1|x
with an option of swr-restore alone|--trust|0
with a manifest of another box|--manifest=x
with a word behind a flag|--dry-run=yes
without a value|--only
with a value that does not fit|--wait|soon
with a line break|--a
END
  is "$1: doctor with a name that has a newline" "$(refused doctor 'a
b')" '64 2 1'
  # These are refused by the look itself.
  for arg in --deep=yes --jobs=0 --only=nobody; do
    is "$1: doctor $arg" "$(refused doctor "$arg" | cut -c 1-2)$(grep -c '^== restore' "$err")$(wc -c <"$out" | tr -d ' ')" 6400
  done
}
refusals healthy
rm run.sh
refusals damaged
is 'damaged: nothing was repaired' "$(ls)" blob
script run.sh true
for arg in --deep --no-cache --jobs=1 --dry-run --resume --no-quarantine --wait=1s --json --only=blob; do
  is "healthy: doctor $arg" "$(swr doctor $arg >"$out" 2>"$err")$?$(swr doctor --help | grep -c -e "^  ${arg%%=*} ")" 01
done
is 'options and values in two words' "$(swr doctor --jobs 2 --only run.sh --wait 3 --only blob 2>"$err" | cut -f 3 | sort | tr '\n' ' ')" \
  'blob run.sh '
printf x | dd of=blob bs=1 seek=100000 conv=notrunc 2>"$err"
is 'a flipped byte between two samples is not seen without --deep' "$(swr doctor 2>"$err" | cut -f 1 | sort -u)" ok
is 'doctor --deep says what check --deep says' "$(swr check --deep | sort)" "$(swr doctor --deep --dry-run 2>"$err" | grep -v ^would | sort)"
is 'doctor --deep heals it, and looks as deep again' "$(swr doctor --deep >"$out" 2>"$err")$?$(cmp blob "$box/blob")$(grep -c '^healed	blob	blob' "$out")" 01
for word in --dry-run ' 2 ' ' 3 ' ' 75 '; do
  is "the help of doctor names $word" "$(swr doctor --help | grep -q -e "$word" && echo yes)" yes
done
for verb in autopilot check doctor explain init retighten; do
  is "$verb has help of its own" "$(swr $verb --help | sed -n '1s/ - .*//p;3s/ *\[.*//;3p')" "swr $verb
usage: swr $verb"
  is "help $verb" "$(swr help $verb)" "$(swr $verb --help)"
done
is 'help of an unknown command' "$(refused chekc --help)$(refused help chekc)" '64 2 164 2 1'
is 'explain: no options' "$(refused explain --json)" '64 2 1'
is 'explain: nothing is damaged' "$(refused explain)" '0 2 1'
is 'doctor --json is recorded' "$(swr stats | grep -c .)$(
  rm run.sh && swr doctor --json >"$out" 2>&1
  swr stats | sed -n 's/^run.sh.*	//p'
)" 2missing
script run.sh true

# ---- what cannot be printed
is 'a healthy workspace' "$(swr doctor >"$out" 2>"$err")$?" 0
said_nothing() {
  for verb in 'doctor' 'doctor --json' 'check' 'help' '--version' 'doctor --help' 'sign --check' 'stats' $1; do
    # shellcheck disable=SC2046 # words
    set -- $(printf '%s\n' "$verb")
    is "$verb on a full disk" "$(
      swr "$@" >/dev/full 2>"$err"
      printf '%s' $?
      grep -vc '^hint: \|^== ' "$err"
    )" 741
    is "$verb without standard output" "$(
      swr "$@" >&- 2>"$err"
      printf '%s' $?
      grep -vc '^hint: \|^== ' "$err"
    )" 741
  done
}
said_nothing
rm run.sh
said_nothing explain
is 'what could not be printed is not repaired either' "$(ls)" blob
script run.sh true

# ---- unsigned, altered, old
is 'a signed workspace: no word of it' "$(swr doctor 2>&1 >"$out")" '== check'
cp "$manifest" "$box/old"
swr add run.sh --notes n 2>"$err"
is 'healthy and not signed: said before the next damage' "$(swr doctor 2>"$err" >"$out" && tail -n 2 "$err")" \
  'swr-verify: after damage nothing would be restored: the manifest is not signed
hint: read it, then swr sign'
is 'healthy and not signed: the status stays' "$(refused doctor)" '0 3 1'
swr sign && swr restore
is 'what changes nothing asks for no signature' "$(refused add run.sh)$(refused sign --check)" '0 0 00 0 0'
cp "$box/old" "$manifest"
is 'an older manifest: sign --check' "$(refused sign --check)" '4 1 1'
is 'an older manifest: sign' "$(refused sign)" '4 2 1'
is 'an older manifest: restore' "$(refused restore | cut -c 1)$(sed -n 's/^hint: .*\(swr sign --again\);.*/\1/p' "$err")" '4swr sign --again'
swr sign --again
is 'an older manifest: signed again it is good' "$(refused restore)$(refused sign --check)" '0 0 00 0 0'

# ---- who makes a manifest
home none
: >f
while read -r verb; do
  # shellcheck disable=SC2046
  set -- $(printf '%s\n' "$verb")
  is "no manifest: $verb" "$(refused "$@")$(ls -A)" '4 2 1f'
done <<'END'
retighten
add f
add --from-models
add --remove f
sign
sign --check
escrow f
escrow --list
END
is 'no history' "$(refused stats)" '0 2 1'
is 'a workspace that is not there' "$(refused init --workspace /nope/at/all)$(ls -A)" '74 2 1f'
for dir in relative '' /a/../b '~nobody'; do
  is "a workspace '$dir'" "$(refused init --workspace "$dir")$(ls -A)" '64 2 1f'
done
is 'a workspace that is a file' "$(refused init --workspace "$HOME/f")$(ls -A)" '74 2 1f'
mkdir site
is 'a workspace with a slash behind it' "$(refused init --workspace="$HOME/site/")$(grep -c "\"root\":\"$HOME/site\"" "$manifest")" '0 0 01'
is 'no entries: doctor says so' "$(refused doctor)$(grep -c 'nothing is protected' "$err")" '0 3 11'
is 'no entries: check says so' "$(refused check)" '0 2 1'
for text in '' '{"id":"f","path":"f"}
' 'no newline'; do
  printf '%s' "$text" >"$manifest"
  cp "$manifest" "$box/damaged"
  while read -r verb; do
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$verb")
    is "a manifest '$text': $verb" "$(refused "$@" | cut -d ' ' -f 1,3)$(cmp "$manifest" "$box/damaged")" '4 1'
  done <<'END'
retighten
add f
add --from-models
sign
sign --check
escrow f
autopilot
check
doctor
END
  is "a manifest '$text': init" "$(refused init | cut -d ' ' -f 3)$(cmp "$manifest" "$box/damaged")" 1
done
for text in '{"id":"a"}\n' '{"id":"a","pa' '{"id":1}\n' 'x\n' '{"id":"a","path":"f","kind":"file","tier":1,"target":"x"}'; do
  printf '{"swr":1,"seq":0,"created":"","signer":"","root":"~"}\n%b' "$text" >"$manifest"
  is "an unusable line is named: $text" "$(swr check 2>"$err" | grep -c 'unusable: line 2: ')$(swr sign 2>&1 | grep -c 'unusable: line 2: ')" 11
done
rm "$manifest" && ln -s nowhere "$manifest"
is 'a link to nothing is not replaced' "$(refused autopilot)$(readlink "$manifest")" '74 2 1nowhere'

# ---- where no home is
home homes
: >f
is 'nobody has been here' "$(ls -d /.swr /.swr-canary 2>"$err")" ''
for HOME in '' / /. relative /dev/null; do
  for verb in autopilot init check doctor explain 'add f' 'sign' 'canary plant' restore; do
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$verb")
    is "HOME=$HOME: $verb" "$(refused "$@")$(sed -n 's/^hint: export HOME, or set \(SWR_HOME\).*/\1/p' "$err")$(ls -A)" '74 2 1SWR_HOMEf'
  done
done
# zsh finds out by itself where the user's home is, which no test may touch.
case $UNDER in
  zsh | */zsh) ;;
  *)
    is 'HOME unset: autopilot' "$(
      unset HOME
      refused autopilot
      ls -d /.swr 2>"$err"
    )" '74 2 1'
    ;;
esac
HOME=/
is 'HOME is / and SWR_HOME elsewhere: it is no workspace either' "$(
  SWR_HOME=$box/homes/swr && export SWR_HOME
  printf '%s;' "$(refused autopilot)" "$(refused init)" "$(ls -A)"
)" '74 2 1;74 2 1;f;'
is 'HOME is /, a workspace of its own' "$(
  SWR_HOME=$box/homes/swr && export SWR_HOME
  printf '%s;' "$(refused init --workspace "$box/options")" "$(ls)"
)" '0 0 0;f
swr;'

# ---- everything that is found is tracked
home many
# About 3,900 bytes a path: 560 of them are more than one command line holds.
part=$(printf '%0200d' 0) deep=$part
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do deep=$deep/$part; done
mkdir -p "$deep" && cd "$deep" || exit 74
n=1000
while [ $n -lt 1560 ]; do
  printf '#!/bin/sh\n' >"$part$n"
  n=$((n + 1))
done
printf '#!/bin/sh\n' >"a
b\\t"
chmod 755 ./*
cd "$HOME" || exit 74
mkfifo pipe
is 'audit: 200 and a line for the rest' "$(swr audit 2>"$err" | cut -f 2 | sort | uniq -c | tr -s ' \n' ' ')" ' 200 file 1 manifest '
is 'audit: what the line says' "$(swr audit 2>"$err" | sed -n '$p' | cut -f 1-3)$(swr audit | tail -n 1 | grep -c '361 more files and 0 more blobs.*--all')" \
  'untracked	manifest	more1'
is 'autopilot: all of them' "$(swr autopilot 2>"$err" | grep -c '^ok	file')$(count)" 561561
is 'audit: nothing is left' "$(swr audit 2>"$err")" ''
home some
script a.sh true
script gone.sh true
swr init --workspace "$HOME/.." 2>"$err"
mkdir -p .swr && printf '{"swr":1,"seq":0,"created":"","signer":"","root":"~"}\n' >"$manifest"
swr audit >"$box/found" && rm gone.sh
is 'what cannot be captured is said and takes nothing from the rest' \
  "$(rm -f gone.sh && swr add --untracked "$box/found" 2>"$err" && count)$(grep -c "'gone.sh' is not tracked: " "$err")" 11
is 'a list that is none' "$(refused add --untracked a.sh)$(refused add --untracked nope)" '64 2 174 2 1'

# ---- two at once
home twice
script a.sh true
for n in 1 2 3; do
  (
    swr autopilot >/dev/null 2>"$err.$n"
    echo $? >"$box/.code$n"
  ) &
done
wait
is 'autopilots at once: each ends well' "$(cat "$box/.code1" "$box/.code2" "$box/.code3" | tr '\n' ' ')$(swr sign --check | cut -f 1)" '0 0 0 ok'

# ---- the next command
home none-on-path
PATH=${PATH#*:}
for verb in doctor restore sign 'add f' chekc 'init --bogus'; do
  # shellcheck disable=SC2046
  set -- $(printf '%s\n' "$verb")
  is "$verb: a hint says which swr" "$(refused "$@" | cut -d ' ' -f 3)$(sed -n "s|$root/sh/swr|HERE|;s/^hint: .*\(; swr is\)/\1/p" "$err")" '1; swr is HERE here'
done
: >f
is 'add: a hint says which swr' "$(swr init 2>"$err" && swr add f 2>&1)" "hint: swr sign; swr is $root/sh/swr here"
is 'what is no command of swr says nothing of it' "$(cd / && "$SELFHEAL_BIN_DIR/gguf-verify" --bogus 2>&1 | tail -n 1)" 'hint: gguf-verify --help'
PATH=$root/sh:$PATH
is 'add: what is not there' "$(refused add nope)" '74 2 1'
printf '{"swr":1,"seq":0,"created":"","signer":"","root":"/nope"}\n' >"$box/lost.jsonl"
is 'a workspace that is gone' "$(refused check --manifest "$box/lost.jsonl")$(refused audit --manifest "$box/lost.jsonl")" '74 2 174 2 1'
is 'canary: read before plant' "$(refused canary read)" '64 2 1'
is 'canary: planted twice' "$(swr canary plant 2>"$err" && refused canary plant)" '64 2 1'
is 'why: swr add with its path' "$(head -c 2000000 /dev/zero >'a blob' && swr add 'a blob' 2>"$err" && swr why a-blob 2>&1 | grep -c "swr add 'a blob' --restore")" 1
finish
