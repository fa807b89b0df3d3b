/** Validates a KubeletConfiguration with upstream's errors and order. Pure. */
import type { Taint } from '#apis/core/v1.ts'
import { durationMs } from '#lib/go/duration.ts'
import { goQuote } from '#lib/go/text.ts'
import { type ConfigOption, rangeError } from '#meta/config-rows.ts'
import { isZeroQuantity, parseQuantity } from '#meta/quantity.ts'
import { labelValue, qualifiedName } from '#meta/validation/names.ts'

import { patternFault } from '../credentials/pull-policy.ts'
import { CONFIGURATION, type KubeletConfiguration } from './configuration.ts'
import { parseCpuSet } from './cpu-set.ts'

export interface ValidationContext {
  readonly isEnabled: (gate: string) => boolean
  readonly isCgroupV1: boolean
}

type ValidationRule = (
  config: KubeletConfiguration,
  context: ValidationContext,
) => readonly (string | false | undefined)[]

const quoted = (words: readonly string[]): string => words.map(goQuote).join(' ')

/** The options whose rows have a range, in the order of upstream's checks. Those of other rows follow at the end. */
const RANGES = {
  events: ['eventBurst', 'eventRecordQPS'],
  images: ['imageGCHighThresholdPercent', 'imageGCLowThresholdPercent'],
  limits: [
    ...(['kubeAPIBurst', 'kubeAPIQPS', 'nodeStatusMaxImages', 'maxOpenFiles', 'maxPods', 'oomScoreAdj'] as const),
    ...(['podsPerCore', 'port', 'readOnlyPort', 'registryBurst', 'registryPullQPS'] as const),
  ],
} as const

const NUMBERS: ValidationRule = (kc, { isEnabled }) => [
  kc.nodeLeaseDurationSeconds <= 0 && 'nodeLeaseDurationSeconds must be greater than 0',
  (kc.systemCgroups ?? '') !== '' &&
    (kc.cgroupRoot ?? '') === '' &&
    'systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified',
  ...rangeErrors(kc, RANGES.events),
  kc.healthzPort !== 0 && outside('healthzPort (--healthz-port)', kc.healthzPort, 1, 65_535),
  !isEnabled('CustomCPUCFSQuotaPeriod') &&
    kc.cpuCFSQuotaPeriod !== '100ms' &&
    `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {${kc.cpuCFSQuotaPeriod}} requires feature gate CustomCPUCFSQuotaPeriod`,
  isEnabled('CustomCPUCFSQuotaPeriod') &&
    isOutside(durationMs(kc.cpuCFSQuotaPeriod), 1, 1000) &&
    `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {${kc.cpuCFSQuotaPeriod}} must be between 1ms and 1sec, inclusive`,
]

const IMAGES: ValidationRule = (kc) => [
  ...rangeErrors(kc, RANGES.images),
  kc.imageGCLowThresholdPercent >= kc.imageGCHighThresholdPercent &&
    `imageGCLowThresholdPercent (--image-gc-low-threshold) ${kc.imageGCLowThresholdPercent} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${kc.imageGCHighThresholdPercent}`,
  durationMs(kc.imageMinimumGCAge) < 0 && `imageMinimumGCAge ${kc.imageMinimumGCAge} must not be negative`,
  durationMs(kc.imageMaximumGCAge) < 0 && `imageMaximumGCAge ${kc.imageMaximumGCAge} must not be negative`,
  durationMs(kc.imageMaximumGCAge) > 0 &&
    durationMs(kc.imageMaximumGCAge) <= durationMs(kc.imageMinimumGCAge) &&
    `imageMaximumGCAge ${kc.imageMaximumGCAge} must be greater than imageMinimumGCAge ${kc.imageMinimumGCAge}`,
]

const LIMITS: ValidationRule = (kc) => [
  outside('iptablesDropBit (--iptables-drop-bit)', kc.iptablesDropBit, 0, 31),
  outside('iptablesMasqueradeBit (--iptables-masquerade-bit)', kc.iptablesMasqueradeBit, 0, 31),
  ...rangeErrors(kc, RANGES.limits),
]

const PULLS: ValidationRule = (kc, { isEnabled }) => [
  (kc.maxParallelImagePulls ?? 1) < 1 && `maxParallelImagePulls ${kc.maxParallelImagePulls} must be a positive number`,
  kc.serializeImagePulls &&
    (kc.maxParallelImagePulls ?? 1) > 1 &&
    'maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false',
  kc.serverTLSBootstrap &&
    !isEnabled('RotateKubeletServerCertificate') &&
    'serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate',
  kc.runOnce && 'runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set',
]

const TOPOLOGY_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node']

const CHOICES: ValidationRule = (kc, { isEnabled }) => {
  const swap = kc.memorySwap.swapBehavior ?? ''
  const crashMs = durationMs(kc.crashLoopBackOff.maxContainerRestartPeriod)
  return [
    !TOPOLOGY_POLICIES.includes(kc.topologyManagerPolicy) &&
      `topologyManagerPolicy (--topology-manager-policy) ${goQuote(kc.topologyManagerPolicy)} must be one of: [${quoted(TOPOLOGY_POLICIES)}]`,
    !['container', 'pod'].includes(kc.topologyManagerScope) &&
      `topologyManagerScope (--topology-manager-scope) ${goQuote(kc.topologyManagerScope)} must be one of: "container", or "pod"`,
    ...(isEnabled('GracefulNodeShutdown') ? shutdown(kc) : []),
    ...(isEnabled('NodeSwap') && !['', 'NoSwap', 'LimitedSwap'].includes(swap)
      ? [`memorySwap.swapBehavior ${goQuote(swap)} must be one of: "", "LimitedSwap" or "NoSwap"`]
      : []),
    isEnabled('KubeletCrashLoopBackOffMax') &&
      isOutside(crashMs, 1000, 300_000) &&
      `CrashLoopBackOff.MaxContainerRestartPeriod (got: ${crashMs / 1000} seconds) must be set between 1s and 300s`,
  ]
}

function shutdown(kc: KubeletConfiguration): (string | false)[] {
  const { shutdownGracePeriod: all, shutdownGracePeriodCriticalPods: critical } = kc
  const [allMs, criticalMs] = [durationMs(all), durationMs(critical)]
  const isOdd = (ms: number): boolean => ms < 0 || (ms > 0 && ms < 1000)
  const byPriority = kc.shutdownGracePeriodByPodPriority ?? []
  return [
    criticalMs > allMs && `shutdownGracePeriodCriticalPods {${critical}} must be <= shutdownGracePeriod {${all}}`,
    isOdd(allMs) && `shutdownGracePeriod {${all}} must be either zero or otherwise >= 1 sec`,
    isOdd(criticalMs) && `shutdownGracePeriodCriticalPods {${critical}} must be either zero or otherwise >= 1 sec`,
    byPriority.length > 0 &&
      (allMs > 0 || criticalMs > 0) &&
      'Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time',
  ]
}

/** The reserved cgroup that each enforcement needs. */
const ENFORCED: ReadonlyMap<string, 'system' | 'kube' | undefined> = new Map([
  ['pods', undefined],
  ['system-reserved', 'system'],
  ['system-reserved-compressible', 'system'],
  ['kube-reserved', 'kube'],
  ['kube-reserved-compressible', 'kube'],
])

const ENFORCE = 'enforceNodeAllocatable (--enforce-node-allocatable)'

const ENFORCEMENT: ValidationRule = (kc) => {
  const enforcements = kc.enforceNodeAllocatable ?? []
  const both = (['system', 'kube'] as const).map(
    (what) =>
      enforcements.includes(`${what}-reserved`) &&
      enforcements.includes(`${what}-reserved-compressible`) &&
      `both "${what}-reserved" and "${what}-reserved-compressible" cannot be specified together in ${ENFORCE}`,
  )
  return [...both, ...enforcements.flatMap((one, at) => enforcementErrors(kc, one, enforcements.indexOf(one) < at))]
}

function enforcementErrors(kc: KubeletConfiguration, one: string, isRepeated: boolean): (string | false)[] {
  if (isRepeated) return [`duplicated enforcements ${goQuote(one)} in ${ENFORCE}`]
  if (one === 'none') {
    return [
      (kc.enforceNodeAllocatable ?? []).length > 1 &&
        `${ENFORCE} may not contain additional enforcements when "none" is specified`,
    ]
  }
  if (!ENFORCED.has(one)) {
    const all = [...ENFORCED.keys()].map(goQuote).join(', ')
    return [`option ${goQuote(one)} specified for ${ENFORCE}. Valid options are ${all} or "none"`]
  }
  const what = ENFORCED.get(one)
  const cgroup = { system: kc.systemReservedCgroup, kube: kc.kubeReservedCgroup }
  return [
    what !== undefined &&
      (cgroup[what] ?? '') === '' &&
      `${what}ReservedCgroup (--${what}-reserved-cgroup) must be specified when "${what}-reserved" or "${what}-reserved-compressible" included in ${ENFORCE}`,
    !kc.cgroupsPerQOS &&
      `cgroupsPerQOS (--cgroups-per-qos) must be set to true when ${goQuote(one)} contained in ${ENFORCE}`,
  ]
}

const PULL_POLICIES = ['NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify']

const NAMES: ValidationRule = (kc) => [
  !['none', 'hairpin-veth', 'promiscuous-bridge'].includes(kc.hairpinMode) &&
    `option ${goQuote(kc.hairpinMode)} specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`,
  !PULL_POLICIES.includes(kc.imagePullCredentialsVerificationPolicy) &&
    `option ${goQuote(kc.imagePullCredentialsVerificationPolicy)} specified for imagePullCredentialsVerificationPolicy. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"`,
  (kc.preloadedImagesVerificationAllowlist ?? []).length > 0 &&
    kc.imagePullCredentialsVerificationPolicy !== 'NeverVerifyAllowlistedImages' &&
    `can't set \`preloadedImagesVerificationAllowlist\` if \`imagePullCredentialsVertificationPolicy\` is not "NeverVerifyAllowlistedImages"`,
  kc.imagePullCredentialsVerificationPolicy === 'NeverVerifyAllowlistedImages' && patternError(kc),
  ...reservedCpus(kc),
  ...reservedMemory(kc),
]

function patternError({ preloadedImagesVerificationAllowlist: all = [] }: KubeletConfiguration): string | undefined {
  const fault = all.map(patternFault).find((one) => one !== undefined)
  return fault && `invalid image pattern in \`preloadedImagesVerificationAllowlist\`: ${fault}`
}

function reservedCpus(kc: KubeletConfiguration): (string | false)[] {
  const { reservedSystemCPUs: cpus = '', systemReservedCgroup = '', kubeReservedCgroup = '' } = kc
  if (cpus === '') return []
  const parsed = parseCpuSet(cpus)
  return [
    (systemReservedCgroup !== '' || kubeReservedCgroup !== '') &&
      "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
    typeof parsed === 'string' && `unable to parse reservedSystemCPUs (--reserved-cpus) ${cpus}, error: ${parsed}`,
  ]
}

function reservedMemory({ reservedMemory: all = [] }: KubeletConfiguration): (string | false)[] {
  const seen = new Set<string>()
  return all.flatMap(({ numaNode = 0, limits }) =>
    Object.entries(limits).flatMap(([name, quantity]) => {
      const key = `${numaNode} ${name}`
      const isTwice = seen.has(key)
      seen.add(key)
      return [
        name !== 'memory' &&
          !name.startsWith('hugepages-') &&
          `the limit type ${goQuote(name)} for NUMA node ${numaNode} is not supported, only [memory hugepages-<HugePageSize>] is accepted`,
        isZeroQuantity(parseQuantity(quantity)) &&
          `reserved memory may not be zero for NUMA node ${numaNode} and resource ${goQuote(name)}`,
        isTwice && `the reserved memory has a duplicate value for NUMA node ${numaNode} and resource ${goQuote(name)}`,
      ]
    }),
  )
}

const LAST: ValidationRule = (kc, { isEnabled }) => [
  (kc.memoryThrottlingFactor <= 0 || kc.memoryThrottlingFactor > 1) &&
    `memoryThrottlingFactor ${kc.memoryThrottlingFactor} must be greater than 0 and less than or equal to 1.0`,
  kc.memoryReservationPolicy === 'TieredReservation' &&
    !isEnabled('MemoryQoS') &&
    'memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled',
  !['None', 'TieredReservation'].includes(kc.memoryReservationPolicy) &&
    `option ${goQuote(kc.memoryReservationPolicy)} specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"`,
  kc.containerRuntimeEndpoint === '' && 'the containerRuntimeEndpoint was not specified or empty',
  kc.enableSystemLogQuery &&
    !kc.enableSystemLogHandler &&
    'enableSystemLogHandler is required for enableSystemLogQuery',
  kc.containerLogMaxWorkers < 1 && 'containerLogMaxWorkers must be greater than or equal to 1',
  durationMs(kc.containerLogMonitorInterval) < 3000 &&
    'containerLogMonitorInterval must be a positive time duration greater than or equal to 3s',
  kc.containerLogMaxFiles <= 1 && 'containerLogMaxFiles must be greater than 1',
  !kc.podLogsDir.startsWith('/') && `pod logs path ${goQuote(kc.podLogsDir)} must be absolute path`,
  !isClean(kc.podLogsDir) && `pod logs path ${goQuote(kc.podLogsDir)} must be normalized`,
  // eslint-disable-next-line no-control-regex
  /[^\u0000-\u007f]/.test(kc.podLogsDir) &&
    `pod logs path ${goQuote(kc.podLogsDir)} mut contains ASCII characters only`,
]

/** All errors; empty when the configuration is valid. */
export function configurationErrors(config: KubeletConfiguration, context: ValidationContext): string[] {
  const of = (...rules: readonly ValidationRule[]): string[] =>
    rules
      .flatMap((rule) => rule(config, context))
      .filter((text) => typeof text === 'string')
      .map((text) => `invalid configuration: ${text}`)
  return [
    ...of(NUMBERS, IMAGES, LIMITS, PULLS),
    ...taintErrors(config),
    ...of(CHOICES, ENFORCEMENT, NAMES),
    ...machineErrors(config, context),
    ...of(LAST, otherRangeErrors),
  ]
}

function taintErrors({ registerWithTaints = [] }: KubeletConfiguration): string[] {
  return registerWithTaints.flatMap((taint) => [
    ...(isTaint(taint) ? [] : [`invalid taint: {${taint.key} ${taint.value ?? ''} ${taint.effect} <nil>}`]),
    ...(taint.timeAdded === undefined || taint.timeAdded === null
      ? []
      : ['invalid configuration: taint.TimeAdded is not nil']),
  ])
}

export const TAINT_EFFECTS: readonly string[] = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

function isTaint({ key, value = '', effect }: Taint): boolean {
  return qualifiedName(key).length === 0 && labelValue(value).length === 0 && TAINT_EFFECTS.includes(effect)
}

const USER_NAMESPACE_UNIT = 65_536

/** Only the first of these errors is returned. */
function machineErrors(kc: KubeletConfiguration, { isCgroupV1 }: ValidationContext): string[] {
  if (kc.failCgroupV1 && isCgroupV1) {
    return [
      'kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release',
    ]
  }
  if (isCgroupV1 && kc.singleProcessOOMKill === false) {
    return ['invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1']
  }
  const ids = kc.userNamespaces?.idsPerPod
  if (ids === undefined) return []
  const start = 'invalid configuration: userNamespaces.idsPerPod must'
  if (ids < USER_NAMESPACE_UNIT) return [`${start} not be less than ${USER_NAMESPACE_UNIT}`]
  if (ids % USER_NAMESPACE_UNIT !== 0) return [`${start} be a multiple of ${USER_NAMESPACE_UNIT}`]
  return ids > 2 ** 32 - 1 ? [`${start} not be more than ${2 ** 32 - 1}`] : []
}

function isOutside(value: number, low: number, high: number): boolean {
  return value < low || value > high
}

function outside(name: string, value: number, low: number, high: number): string | false {
  return isOutside(value, low, high) && `${name} ${value} must be between ${low} and ${high}, inclusive`
}

/** In the order of `names`: upstream's is not that of the table. */
function rangeErrors(kc: KubeletConfiguration, names: readonly (keyof KubeletConfiguration)[]): (string | false)[] {
  return names.flatMap((name) => CONFIGURATION.options.filter(({ path }) => path === name).map(errorIn(kc)))
}

function otherRangeErrors(kc: KubeletConfiguration): (string | false)[] {
  const checked: ReadonlySet<string> = new Set(Object.values(RANGES).flat())
  return CONFIGURATION.options.filter(({ path }) => !checked.has(path)).map(errorIn(kc))
}

function errorIn(kc: KubeletConfiguration): (option: ConfigOption) => string | false {
  return (option) => rangeError(option, kc)
}

function isClean(path: string): boolean {
  return path === '/' || !path.split('/').some((part, at) => part === '.' || part === '..' || (at > 0 && part === ''))
}
