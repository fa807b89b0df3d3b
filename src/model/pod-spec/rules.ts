/** What the rules of a pod spec are given besides the spec; `options.ts` makes it. */
import type { PodSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

/** What every RuleContext of the API server has. */
export interface PodRules {
  /** Whether a feature gate is on. */
  readonly isEnabled: (gate: string) => boolean
  /** `--allow-privileged`. */
  readonly allowPrivileged: boolean
}

/** A Pod or a template of one, as far as its rules go. */
export interface PodLike {
  readonly metadata: ObjectMeta
  readonly spec: PodSpec
}

/** Each flag lets something pass, unless its comment says otherwise. */
export interface PodOptions {
  readonly allowPrivileged: boolean
  /** The spec is that of a Pod and not of a template: some rules are stricter. */
  readonly isPod: boolean
  /** Stricter: addresses without leading zeros. */
  readonly strictIps: boolean
  readonly relaxedEnvNames: boolean
  readonly envFiles: boolean
  readonly podLevelResources: boolean
  readonly podLevelResize: boolean
  readonly restartRules: boolean
  readonly restartAllContainers: boolean
  readonly tolerationComparisons: boolean
  readonly userNamespacesOnHostNetwork: boolean
  readonly userNamespacesWithDevices: boolean
  /** Stricter: no other SELinux change policy than Recursive. */
  readonly onlyRecursiveSELinux: boolean
  /** Other rules: keys of spread constraints are merged into their selectors. */
  readonly mergedSpreadKeys: boolean
  readonly imageVolumeStatus: boolean
  readonly indivisibleHugePages: boolean
  readonly invalidDeletionCost: boolean
  readonly invalidAffinityValues: boolean
  readonly invalidNodeAffinityValues: boolean
  readonly invalidSpreadSelector: boolean
  readonly nonLocalTokenPaths: boolean
  readonly sharedSysctls: boolean
  readonly restartingInitResize: boolean
}
