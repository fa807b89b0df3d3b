/** The names of the files that a cluster creates in its data directory. `reset` deletes no others. */

/** `reset` writes it first and deletes it last, so that `up` does not start a half-deleted cluster. */
export const UNFINISHED_RESET = 'reset.unfinished'

const NAMES = [
  'store\\.db(?:[-.].*)?',
  'history\\.db(?:[-.].*)?',
  'pki',
  'encryption\\.key',
  'cluster\\.(?:json|lock)',
  'runtime\\.json',
  'kubeconfigs\\.json',
  'bootstrap\\.kubeconfig',
  'up\\.log',
  'console-link',
  'console-sessions\\.json',
  'reset\\.unfinished',
]
/** A process that is killed during an atomic write leaves a temporary file. */
const OWN = new RegExp(`^(?:${NAMES.join('|')})(?:\\.[\\w-]+\\.new)?$`)

export function isOwnFile(name: string): boolean {
  return OWN.test(name)
}
