#!/bin/sh
# Verdict lines keep their four fields through pipes and `read` in every shell, and the status is the last process's.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=sh/selfheal.sh
. "$root/sh/selfheal.sh"

newline='a
b.gguf'
tab=$(printf 'a\tb.gguf')
mkdir "$box/d" && cd "$box/d" || exit 1
tar -xJf "$root/tests/vectors/gguf/corpus.tar.xz" dv-good.gguf
printf 'Entry not found' >"$newline"
printf 'Entry not found' >"$tab"
printf 'Entry not found' >'a\nb.gguf'
printf 'Entry not found' >' a  b * .gguf'
: >-

# Reads lines as a shell filter does and shows the first three fields, the end of each marked.
fields() {
  while IFS='	' read -r state kind subject detail; do
    [ -n "$detail" ] || printf 'no detail: '
    printf '<%s><%s><%s>\n' "$state" "$kind" "$subject"
  done
}
# The files, a directory and a name that is not there; what a filter makes of the verdicts, or CMD... of them.
all() { selfheal_gguf_verify ./dv-good.gguf "$newline" "$tab" 'a\nb.gguf' ' a  b * .gguf' ./- . ./none; }

is 'one line per subject, three fields as words' "$(all | fields)" '<ok><model><./dv-good.gguf>
<corrupt><model><a\nb.gguf>
<corrupt><model><a\tb.gguf>
<corrupt><model><a\\nb.gguf>
<corrupt><model>< a  b * .gguf>
<short><model><./->
<corrupt><model><.>
<missing><model><./none>'
is 'the status of the tool is its worst verdict' "$(
  all >/dev/null
  echo $?
)" 3
is 'in a pipe the status is the last process'"'"'s' "$(
  all | cat >/dev/null
  echo $?
)" 0
is 'a filter that judges by the words ends the pipe with them' "$(
  all | (while IFS='	' read -r state rest; do [ "$state" = ok ] || exit 3; done)
  echo $?
)" 3
is 'a reader that leaves early is no error' "$(all 2>&1 | head -n 1 | fields)" '<ok><model><./dv-good.gguf>'
is 'every line of --json is one object' "$(selfheal_gguf_verify --json "$newline" "$tab" ./none | grep -c '^{"state":"[a-z]*",.*"}$')" 3
is 'the same lines under a bound' "$(run_with_timeout 20 "$(selfheal_find gguf-verify)" ./none "$tab" | fields)" '<missing><model><./none>
<corrupt><model><a\tb.gguf>'
is 'the same number under a bound' "$(
  run_with_timeout 20 "$(selfheal_find gguf-verify)" ./none >/dev/null
  echo $?
)" 3
is 'a bound that is over ends 2' "$(
  run_with_timeout 0.2 sleep 30
  echo $?
)" 2
is 'a bounded pipe ends when its head does' "$(run_with_timeout 20 yes | head -n 1)" y
is 'bytes pass a bounded command unchanged' "$(run_with_timeout 20 cat dv-good.gguf | cksum)" "$(cksum <dv-good.gguf)"
# shellcheck disable=SC2016 # $x is the bounded shell's
is 'a bounded command cannot ask' "$(echo answer | run_with_timeout 20 sh -c 'read -r x; echo "got <$x>"')" 'got <>'
finish
