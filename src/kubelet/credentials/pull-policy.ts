/** Who may use an image that is there already: whoever could have pulled it (KEP-2535). Pure. */
import { nameFault, repositoryOf } from '../image-name.ts'
import type { Coordinates, Credential } from './credential.ts'

export type VerificationPolicy =
  | 'NeverVerify'
  | 'NeverVerifyPreloadedImages'
  | 'NeverVerifyAllowlistedImages'
  | 'AlwaysVerify'

export interface Verification {
  readonly policy: VerificationPolicy
  /** Images, or all below a path: `registry.example/team/*`. */
  readonly allowed: readonly string[]
}

export const VERIFICATION: Verification = { policy: 'NeverVerifyPreloadedImages', allowed: [] }

/** Whether a pod has to show that it could pull the image. `isPulled`: by this kubelet, not brought by others. */
export function isVerified({ policy, allowed }: Verification, image: string, isPulled: boolean): boolean {
  if (policy === 'NeverVerify') return false
  if (policy === 'NeverVerifyPreloadedImages') return isPulled
  if (policy === 'AlwaysVerify') return true
  const name = repositoryOf(image)
  return !allowed.some((one) => (one.endsWith('/*') ? name.startsWith(one.slice(0, -1)) : name === one))
}

/** What is wrong with an entry of the list; in upstream's words. */
export function patternFault(pattern: string): string | undefined {
  if (pattern !== pattern.trim()) return `leading/trailing spaces are not allowed: ${pattern}`
  const isWildcard = pattern.endsWith('/*')
  const bare = isWildcard ? pattern.slice(0, -1) : pattern
  if (bare === '') return `the supplied pattern is too short: ${pattern}`
  if (bare.includes('*')) {
    return `not a valid wildcard pattern, only patterns ending with '/*' are allowed: ${pattern}`
  }
  if (isWildcard) return bare === '/' ? 'at least registry hostname is required' : undefined
  const fault = nameFault(bare)
  if (fault !== undefined) return `failed to parse as an image name: ${fault}`
  return repositoryOf(bare) === bare
    ? undefined
    : `neither tag nor digest is accepted in an image reference: ${pattern}`
}

/** In the form of upstream's files. */
export interface PullCredentials {
  readonly kubernetesSecrets?: readonly (Coordinates & { readonly credentialHash: string })[]
  readonly kubernetesServiceAccounts?: readonly Coordinates[]
  /** Every pod of the node may. */
  readonly nodePodsAccessible?: boolean
}

/** What a pull shows of who may. `used`: what the registry took; none when it asked for none. */
export function shownBy(used: Credential | undefined): PullCredentials {
  if (used?.secret !== undefined) return { kubernetesSecrets: [used.secret] }
  if (used?.serviceAccount !== undefined) return { kubernetesServiceAccounts: [used.serviceAccount] }
  return { nodePodsAccessible: true }
}

const isSame = (a: Coordinates, b: Coordinates): boolean =>
  a.uid === b.uid && a.namespace === b.namespace && a.name === b.name

const byName = (a: Coordinates, b: Coordinates): number => {
  const [one, other] = [a, b].map(({ namespace, name, uid }) => [namespace, name, uid].join('\0'))
  return (one ?? '') < (other ?? '') ? -1 : 1
}

/** Both; the newer word on the same secret holds. The same object when there is nothing new. */
export function mergeCredentials(known: PullCredentials | undefined, more: PullCredentials): PullCredentials {
  if (known === undefined) return more
  if (known.nodePodsAccessible === true) return known
  if (more.nodePodsAccessible === true) return { nodePodsAccessible: true }
  const { kubernetesSecrets: secrets = [], kubernetesServiceAccounts: accounts = [] } = known
  const newSecrets = (more.kubernetesSecrets ?? []).filter(
    (one) => !secrets.some((old) => isSame(old, one) && old.credentialHash === one.credentialHash),
  )
  const newAccounts = (more.kubernetesServiceAccounts ?? []).filter((one) => !accounts.some((old) => isSame(old, one)))
  if (newSecrets.length + newAccounts.length === 0) return known
  const kept = secrets.filter((old) => !newSecrets.some((one) => isSame(old, one)))
  return {
    ...(kept.length + newSecrets.length > 0 && { kubernetesSecrets: [...kept, ...newSecrets].sort(byName) }),
    ...(accounts.length + newAccounts.length > 0 && {
      kubernetesServiceAccounts: [...accounts, ...newAccounts].sort(byName),
    }),
  }
}

/** Which of a pod's are among those that have pulled the image: the same words, or the same secret. */
export function matchOf(known: PullCredentials, shown: readonly Credential[]): Credential | undefined {
  const { kubernetesSecrets: secrets = [], kubernetesServiceAccounts: accounts = [] } = known
  const bySecret = shown.find(({ secret }) =>
    secrets.some(
      (old) =>
        secret !== undefined &&
        ((old.credentialHash !== '' && old.credentialHash === secret.credentialHash) || isSame(old, secret)),
    ),
  )
  return (
    bySecret ??
    shown.find(
      ({ serviceAccount }) => serviceAccount !== undefined && accounts.some((old) => isSame(old, serviceAccount)),
    )
  )
}
