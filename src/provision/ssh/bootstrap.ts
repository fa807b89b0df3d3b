/**
 * The one command that is ever sent to a machine over SSH. It is a constant: whatever it needs to know comes as lines on its
 * standard input, so no name, path or digest is ever part of a command. It finds our program on the machine, or
 * takes it in (what has come of it already is not sent again), and becomes it.
 */

/** Without single quotes, as it is put between two of them. */
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

/** For root, and for whoever may become root without being asked. */
export const BOOTSTRAP: { readonly asRoot: string; readonly bySudo: string } = {
  asRoot: `exec sh -c '${SCRIPT}'`,
  bySudo: `exec sudo -n sh -c '${SCRIPT}'`,
}
