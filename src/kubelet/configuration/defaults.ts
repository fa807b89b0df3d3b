/** Defaults of KubeletConfiguration that depend on other fields, as in upstream. Pure. */
import { CONFIGURATION, type GivenConfiguration, type KubeletConfiguration } from './configuration.ts'

/** A file's evictionHard replaces these defaults, unless mergeDefaultEvictionSettings is set. */
export const EVICTION_HARD: Readonly<Record<string, string>> = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
}

/**
 * Also for a kubelet without a file. Upstream's flags then default to anonymous access, AlwaysAllow and the read-only
 * port 10255; here they default to the same as a file's fields (ADR 17).
 */
export function withDefaults(given: GivenConfiguration): KubeletConfiguration {
  const filled = CONFIGURATION.withDefaults(given)
  const isSet = (field: keyof KubeletConfiguration): boolean => given[field] !== undefined && given[field] !== '0s'
  return {
    ...filled,
    // The report frequency follows a configured update frequency.
    ...(!isSet('nodeStatusReportFrequency') &&
      isSet('nodeStatusUpdateFrequency') && { nodeStatusReportFrequency: filled.nodeStatusUpdateFrequency }),
    // maxParallelImagePulls above 1 implies parallel pulls.
    ...(!isSet('serializeImagePulls') && { serializeImagePulls: (filled.maxParallelImagePulls ?? 1) < 2 }),
    ...(filled.podPidsLimit < 0 && { podPidsLimit: -1 }),
  }
}
