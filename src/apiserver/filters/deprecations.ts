/**
 * Deprecated API versions: the minor release of v1 that deprecated them, the one that removes them, and the replacement
 * if upstream names it. As of v1.36.
 */
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'

type Fate = readonly [since: number, gone: number, replacement?: string]

/** By apiVersion, or by `apiVersion Kind` if only some kinds of the version are deprecated. */
const FATES: ReadonlyMap<string, Fate> = new Map<string, Fate>([
  ['admissionregistration.k8s.io/v1alpha1', [35, 38]],
  ['certificates.k8s.io/v1alpha1', [34, 37]],
  ['coordination.k8s.io/v1alpha2', [35, 38]],
  ['coordination.k8s.io/v1beta1', [36, 39]],
  ['networking.k8s.io/v1beta1', [34, 37]],
  ['resource.k8s.io/v1alpha3 DeviceTaintRule', [36, 39]],
  ['resource.k8s.io/v1beta1', [35, 38]],
  ['resource.k8s.io/v1beta2 DeviceClass', [36, 39]],
  ['resource.k8s.io/v1beta2 ResourceClaim', [36, 39]],
  ['resource.k8s.io/v1beta2 ResourceClaimTemplate', [36, 39]],
  ['resource.k8s.io/v1beta2 ResourceSlice', [36, 39]],
  ['storage.k8s.io/v1beta1', [34, 37, 'storage.k8s.io/v1 VolumeAttributesClass']],
])

export interface Deprecation {
  /** The text of the Warning; upstream's. */
  readonly text: string
  /** `1.39`. */
  readonly removedRelease: string
}

/** Undefined for versions that are not deprecated. */
export function deprecationOf(gvk: GroupVersionKind): Deprecation | undefined {
  const apiVersion = apiVersionOf(gvk)
  const name = `${apiVersion} ${gvk.kind}`
  const fate = FATES.get(name) ?? FATES.get(apiVersion)
  if (fate === undefined) return undefined
  const [since, gone, replacement] = fate
  const instead = replacement === undefined ? '' : `; use ${replacement}`
  return {
    text: `${name} is deprecated in v1.${since}+, unavailable in v1.${gone}+${instead}`,
    removedRelease: `1.${gone}`,
  }
}
