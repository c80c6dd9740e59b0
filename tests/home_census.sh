#!/bin/sh
# What a test would leave in the real home is seen, and what others write there is not called ours.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

mkdir -p "$box/real/.selfheal/state" "$box/real/.swr" "$box/real/.shim" "$box/real/.cache" "$box/real/notes/today"
for file in .selfheal/state/a .swr/a .shim/a .profile notes/today/a; do echo 1 >"$box/real/$file"; done
touch -d 2020-01-01 "$box/real/.swr/a" "$box/real/.shim/a"
ln -s a "$box/real/.swr/link"
look() { HOME=$box/real TMPDIR=$box/tmp under "$root/tests/home-census"; }
look >"$box/before"
like 'something is seen' "$(grep -c "$box/real" "$box/before")" '1[0-9]'

# What is done to the home, and how many lines differ.
while read -r lines what; do
  cp -Rp "$box/real" "$box/kept"
  (cd "$box/real" && eval "$what")
  is "$what" "$(look | diff "$box/before" - | grep -c '^[<>]')" "$lines"
  rm -rf "$box/real" && mv "$box/kept" "$box/real"
done <<'END'
0 :
0 echo 2 >.profile
0 echo 2 >.cache/b
0 echo 2 >notes/today/b
1 echo 2 >.wget-hsts
1 mkdir notes/b
1 rm .profile
2 echo 2 >.swr/a
2 touch .shim/a
2 chmod 755 .swr/a
4 ln -sfn b .swr/link
END
finish
