/** Derives the options of a kubelet from its flags and configuration. Pure. */
import { resolve } from 'node:path'

import { parseCpuSet } from '#kubelet/configuration/cpu-set.ts'
import type { Verification } from '#kubelet/credentials/pull-policy.ts'
import type { KubeletOptions, NodeSettings } from '#kubelet/kubelet-options.ts'
import type { Machine } from '#kubelet/machine/machine.ts'
import { logind } from '#kubelet/shutdown/logind.ts'
import { periodsOf } from '#kubelet/shutdown/shutdown-groups.ts'
import { topologySettings } from '#kubelet/topology/topology-settings.ts'
import { durationMs } from '#lib/go/duration.ts'
import { ProgramError } from '#lib/program.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'

import type { KubeletProgram } from './program.ts'

interface DerivedSettings extends Pick<
  KubeletOptions,
  'topology' | 'logs' | 'shutdown' | 'staticPods' | 'pulls' | 'verification'
> {
  readonly node: NodeSettings & Required<Pick<NodeSettings, 'reserved'>>
}

/** Throws ProgramError. */
export function settingsOf(program: KubeletProgram): DerivedSettings {
  return {
    node: nodeSettings(program),
    topology: topologySettings(program.configuration, program.isEnabled),
    logs: logPolicy(program),
    shutdown: shutdownOf(program),
    staticPods: staticPodsOf(program),
    pulls: pullsOf(program),
    verification: verificationOf(program),
  }
}

export function podFacts(
  { settings, configuration, cwd }: Pick<KubeletProgram, 'settings' | 'configuration' | 'cwd'>,
  cgroupDriver: 'cgroupfs' | 'systemd',
  { cgroupVersion }: Pick<Machine, 'cgroupVersion'>,
): KubeletOptions['pods'] {
  const { cgroupRoot = '' } = configuration
  return {
    cgroupDriver,
    ...(cgroupRoot !== '' && cgroupRoot !== '/' && { cgroupRoot }),
    rootDir: resolve(cwd, settings['root-dir']),
    podLogsDir: configuration.podLogsDir,
    // Upstream's path, which cannot be configured.
    containerLogsDir: '/var/log/containers',
    clusterDns: configuration.clusterDNS ?? [],
    clusterDomain: configuration.clusterDomain ?? '',
    resolvConf: configuration.resolvConf,
    maxPods: configuration.maxPods,
    seccompDefault: settings['seccomp-default'] || configuration.seccompDefault,
    cfsPeriodUs: configuration.cpuCFSQuota ? durationMs(configuration.cpuCFSQuotaPeriod) * 1000 : 0,
    killsContainersWhole: cgroupVersion === 2 && configuration.singleProcessOOMKill !== true,
    idsPerPod: configuration.userNamespaces?.idsPerPod || 65_536,
    ...(configuration.podPidsLimit > 0 && { pidsLimit: configuration.podPidsLimit }),
    maxRestartMs: durationMs(configuration.crashLoopBackOff.maxContainerRestartPeriod ?? '5m'),
  }
}

function shutdownOf({ configuration, isEnabled, clock }: KubeletProgram): NonNullable<KubeletOptions['shutdown']> {
  const isByPriority = isEnabled('GracefulNodeShutdownBasedOnPodPriority')
  const periods = isEnabled('GracefulNodeShutdown') ? periodsOf(configuration, isByPriority) : []
  return { source: logind({ clock }), periods }
}

function pullsOf({ configuration }: KubeletProgram): NonNullable<KubeletOptions['pulls']> {
  const { registryPullQPS: qps, registryBurst: burst, serializeImagePulls, maxParallelImagePulls } = configuration
  return { qps, burst, parallel: serializeImagePulls ? 1 : (maxParallelImagePulls ?? Infinity) }
}

function verificationOf({ configuration, isEnabled }: KubeletProgram): NonNullable<KubeletOptions['verification']> {
  const { imagePullCredentialsVerificationPolicy, preloadedImagesVerificationAllowlist: allowed = [] } = configuration
  // Other values were rejected before.
  const policy = imagePullCredentialsVerificationPolicy as Verification['policy']
  return isEnabled('KubeletEnsureSecretPulledImages') ? { policy, allowed } : 'off'
}

function nodeSettings({ settings, configuration, cloud }: KubeletProgram): DerivedSettings['node'] {
  const { systemReserved, kubeReserved, evictionHard, reservedSystemCPUs = '', providerID = '' } = configuration
  const ignores = settings['experimental-allocatable-ignore-eviction']
  const cpus = reservedSystemCPUs === '' ? undefined : parseCpuSet(reservedSystemCPUs)
  const { cpu: _, ...withoutCpu } = kubeReserved ?? {}
  const reserved = {
    ...(systemReserved !== undefined && { systemReserved }),
    ...(kubeReserved !== undefined && { kubeReserved }),
    evictionHard: ignores ? {} : (evictionHard ?? {}),
    // Explicitly reserved CPUs take precedence over amounts.
    ...(cpus instanceof Set && {
      systemReserved: { ...systemReserved, cpu: String(cpus.size) },
      kubeReserved: withoutCpu,
    }),
  }
  return {
    reserved,
    maxImages: configuration.nodeStatusMaxImages,
    ...(providerID !== '' && { providerId: providerID }),
    cloud,
    registers: configuration.registerNode,
    statusUpdateMs: durationMs(configuration.nodeStatusUpdateFrequency),
    statusReportMs: durationMs(configuration.nodeStatusReportFrequency),
    leaseSeconds: configuration.nodeLeaseDurationSeconds,
    runtimeTimeoutMs: durationMs(configuration.runtimeRequestTimeout),
    volumeStatsMs: durationMs(configuration.volumeStatsAggPeriod),
    limits: { qps: configuration.kubeAPIQPS || 50, burst: configuration.kubeAPIBurst || 100 },
    eventLimits: { qps: configuration.eventRecordQPS || 5, burst: configuration.eventBurst || 10 },
  }
}

function staticPodsOf({ configuration, isEnabled, cwd }: KubeletProgram): NonNullable<KubeletOptions['staticPods']> {
  const { staticPodPath: path = '', staticPodURL: url = '', staticPodURLHeader: headers = {} } = configuration
  return {
    isEnabled,
    ...(path !== '' && { path: resolve(cwd, path) }),
    ...(url !== '' && { url }),
    headers,
    checkMs: durationMs(configuration.fileCheckFrequency),
    urlCheckMs: durationMs(configuration.httpCheckFrequency),
  }
}

/** Throws ProgramError. */
function logPolicy({ configuration }: KubeletProgram): NonNullable<KubeletOptions['logs']> {
  const { containerLogMaxSize: size } = configuration
  try {
    return {
      maxBytes: quantityValue(parseQuantity(size)),
      maxFiles: configuration.containerLogMaxFiles,
      workers: configuration.containerLogMaxWorkers,
      intervalMs: durationMs(configuration.containerLogMonitorInterval),
    }
  } catch (cause) {
    const why = `failed to parse container log max size "${size}": ${(cause as Error).message}`
    throw new ProgramError(`failed to run Kubelet: failed to create kubelet: ${why}`, { cause })
  }
}
