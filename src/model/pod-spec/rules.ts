/** The context that all validation rules of a pod spec receive; `options.ts` creates it. */
import type { PodSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

/** The common part of the API server's RuleContext. */
export interface PodRules {
  /** True if a feature gate is enabled. */
  readonly isEnabled: (gate: string) => boolean
  /** `--allow-privileged`. */
  readonly allowPrivileged: boolean
}

/** The parts of a Pod or template that the rules use. */
export interface PodLike {
  readonly metadata: ObjectMeta
  readonly spec: PodSpec
}

/** Each flag relaxes a rule, unless its comment differs. */
export interface PodOptions {
  readonly allowPrivileged: boolean
  /** The spec belongs to a Pod, not to a template: some rules are stricter. */
  readonly isPod: boolean
  /** Stricter: rejects addresses with leading zeros. */
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
  /** Stricter: only the SELinux change policy Recursive. */
  readonly onlyRecursiveSELinux: boolean
  /** Different: keys of spread constraints are merged into their selectors. */
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
