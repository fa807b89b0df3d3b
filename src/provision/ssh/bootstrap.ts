/**
 * The only command that `hyperkube build` sends over SSH, which starts our program on the machine. It is a constant:
 * its parameters arrive as lines on standard input, so that no name, path or digest is part of a command. It finds or
 * receives our program (uploads resume) and executes it.
 */

/** Without single quotes, because it is quoted with them. */
const SCRIPT = `
set -eu
umask 022
echo "hello $(uname -m)"
IFS= read -r home
IFS= read -r digest
IFS= read -r size
IFS= read -r verb
to=$home/programs/$digest
if [ ! -x "$to/bin/hyperkube" ]; then
  if [ "$verb" = look ]; then echo absent; exit 0; fi
  mkdir -p "$home/programs"
  part=$to.part
  have=0
  if [ -f "$part" ]; then have=$(($(wc -c <"$part"))); fi
  if [ "$have" -gt "$size" ]; then rm -f "$part"; have=0; fi
  echo "have $have"
  if [ "$have" -lt "$size" ]; then head -c $((size - have)) >>"$part"; fi
  if [ "$(($(wc -c <"$part")))" -lt "$size" ]; then exit 1; fi
  sum=$(sha256sum "$part")
  if [ "\${sum%% *}" != "$digest" ]; then rm -f "$part"; echo broken; exit 1; fi
  rm -rf "$to.new"
  mkdir "$to.new"
  tar -xzf "$part" -C "$to.new"
  # Else a power cut may leave its name with empty files.
  sync
  mv "$to.new" "$to"
  rm -f "$part"
fi
echo here
XDG_CACHE_HOME=$home/cache
export XDG_CACHE_HOME
exec "$to/bin/hyperkube" machine serve --home "$home"
`

/** For root, and for users with passwordless sudo. */
export const BOOTSTRAP: { readonly asRoot: string; readonly bySudo: string } = {
  asRoot: `exec sh -c '${SCRIPT}'`,
  bySudo: `exec sudo -n sh -c '${SCRIPT}'`,
}
