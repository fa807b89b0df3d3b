/**
 * Flags of reading commands for the past of a cluster. Help and completion leave them out, because they show the flags
 * of upstream; `hyperkube at --help` and docs/kubectl.md describe them.
 */
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'

export const AT_FLAG: { readonly at: Flag<string> } = {
  at: flag(string, '', 'Read the state at a moment: -2m, 2026-11-18T03:00Z or rv:812.', { hidden: true }),
}

export const SPEED_FLAG: { readonly speed: Flag<string> } = {
  speed: flag(string, '', 'With --at and --watch: play the changes this many times as fast.', { hidden: true }),
}

/** The flags of `kubectl diff` for two moments. */
export const MOMENTS_FLAGS: {
  readonly from: Flag<string>
  readonly to: Flag<string>
  readonly status: Flag<boolean>
  readonly 'all-namespaces': Flag<boolean>
} = {
  from: flag(string, '', 'Compare the objects of this moment with those of --to, instead of files.', { hidden: true }),
  to: flag(string, '', 'With --from: the later moment; now by default.', { hidden: true }),
  status: flag(bool, false, 'With --from: compare the status as well.', { hidden: true }),
  'all-namespaces': flag(bool, false, 'With --from: compare all namespaces and objects without one.', {
    shorthand: 'A',
    hidden: true,
  }),
}
