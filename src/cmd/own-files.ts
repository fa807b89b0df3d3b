/** The files that a cluster keeps in its data directory. All others belong to somebody else and stay. */

/** `reset` writes it first and deletes it last, so that `up` does not start a half-deleted cluster. */
export const UNFINISHED_RESET = 'reset.unfinished'

const NAMES = [
  'store\\.db(?:[-.].*)?',
  'pki',
  'encryption\\.key',
  'cluster\\.(?:json|lock)',
  'runtime\\.json',
  'kubeconfigs\\.json',
  'bootstrap\\.kubeconfig',
  'up\\.log',
  'reset\\.unfinished',
]
/** A process that is killed while it writes a file anew leaves the second file behind. */
const OWN = new RegExp(`^(?:${NAMES.join('|')})(?:\\.[\\w-]+\\.new)?$`)

export function isOwnFile(name: string): boolean {
  return OWN.test(name)
}
