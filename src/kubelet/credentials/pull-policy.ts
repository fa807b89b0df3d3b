/**
 * Decides whether a pod may use an image that is already on the node, by the credentials with which it was pulled
 * (KEP-2535). Pure.
 */
import { nameFault, repositoryOf } from '#cri/image-name.ts'

import type { Coordinates, Credential } from './credential.ts'

export type VerificationPolicy =
  | 'NeverVerify'
  | 'NeverVerifyPreloadedImages'
  | 'NeverVerifyAllowlistedImages'
  | 'AlwaysVerify'

export interface Verification {
  readonly policy: VerificationPolicy
  /** Images, or a path prefix: `registry.example/team/*`. */
  readonly allowed: readonly string[]
}

export const VERIFICATION: Verification = { policy: 'NeverVerifyPreloadedImages', allowed: [] }

/** True if a pod needs credentials for a present image. `isPulled`: this kubelet has pulled it. */
export function isVerified({ policy, allowed }: Verification, image: string, isPulled: boolean): boolean {
  if (policy === 'NeverVerify') return false
  if (policy === 'NeverVerifyPreloadedImages') return isPulled
  if (policy === 'AlwaysVerify') return true
  const name = repositoryOf(image)
  return !allowed.some((one) => (one.endsWith('/*') ? name.startsWith(one.slice(0, -1)) : name === one))
}

/** Upstream's error for an invalid allowlist entry. */
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

/** In the format of upstream's records. */
export interface PullCredentials {
  readonly kubernetesSecrets?: readonly (Coordinates & { readonly credentialHash: string })[]
  readonly kubernetesServiceAccounts?: readonly Coordinates[]
  /** Every pod of the node may use the image. */
  readonly nodePodsAccessible?: boolean
}

/** The record of a pull. `used` is the accepted credential; undefined for an anonymous pull. */
export function pullCredentials(used: Credential | undefined): PullCredentials {
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

/** Merges both records; a newer entry replaces the one of the same Secret. Returns `known` when nothing changes. */
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

/** The pod's credential that matches a recorded one: by content or by Secret. */
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
