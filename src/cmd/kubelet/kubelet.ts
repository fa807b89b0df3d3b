/** `kubelet`: runs the pods of a node as a separate program with upstream's flags and configuration. */
import { access, mkdir, readFile as readBytes, writeFile } from 'node:fs/promises'
import { availableParallelism, hostname } from 'node:os'
import { resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'

import { createServerMetrics } from '#component/metrics.ts'
import { createRuntimeClient } from '#cri/client.ts'
import type { Runtime } from '#cri/runtime.ts'
import { openCgroups } from '#kubelet/cgroups/open-cgroups.ts'
import { Systemd } from '#kubelet/cgroups/systemd-slices.ts'
import { shownConfiguration } from '#kubelet/configuration/printing.ts'
import { parseThresholds } from '#kubelet/eviction/thresholds.ts'
import type { KubeletOptions } from '#kubelet/kubelet-options.ts'
import { startKubelet } from '#kubelet/kubelet.ts'
import { type Machine, readMachine } from '#kubelet/machine/machine.ts'
import { nodeAddresses, parseNodeIp } from '#kubelet/machine/node-addresses.ts'
import { overReserved } from '#kubelet/node/allocatable.ts'
import { openHealthPort } from '#kubelet/server/health-port.ts'
import { kubeletZPages } from '#kubelet/server/kubelet-zpages.ts'
import { aborted } from '#lib/abort.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { durationMs } from '#lib/go/duration.ts'
import { createGrpcClient } from '#lib/grpc/client.ts'
import type { Registry } from '#lib/metrics/metrics.ts'
import { tidyWhenQuiet } from '#lib/process/tidy-memory.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { USUAL_METRICS } from '#model/metrics/rules.ts'
import { tolerationRule } from '#model/nodes/fit.ts'
import { kubernetesVersion, versionInfo } from '#model/version.ts'

import { loadKubelet } from './configuration.ts'
import { credentialsOf } from './credentials.ts'
import { KUBELET_FLAGS, type KubeletSettings } from './flags.ts'
import { flagzValues } from './flagz.ts'
import { prepareHost } from './host.ts'
import { openIdentity } from './identity.ts'
import type { KubeletProgram } from './program.ts'
import { openServing } from './serving.ts'
import { podFacts, settingsOf } from './settings.ts'

const NAME = 'kubelet'

export const kubelet: Program = defineProgram({
  name: NAME,
  long:
    'The kubelet runs the pods of a node: it registers the node with the API server, starts the containers of the pods that ' +
    'are bound to it through a CRI runtime, and reports their status.',
  version: kubernetesVersion(),
  flags: KUBELET_FLAGS,
  run: runKubelet,
})

async function runKubelet(invocation: Invocation<FlagGroups>, signal: AbortSignal): Promise<number> {
  // The table of flags defines every setting with its type.
  const settings = invocation.flags as unknown as KubeletSettings
  const loaded = await loadKubelet(invocation, settings, await hasCgroupV1())
  const cloud = cloudOf(settings)
  checkServer(settings)
  await using closing = new AsyncDisposableStack()
  const node = nodeNameOf(settings)
  const own = { ...invocation, ...loaded, settings, cloud, node, closing }
  const program: KubeletProgram = { ...own, registry: openRegistry(own) }
  const { log, clock, random, configuration } = program
  const around = { clock, random, log }
  log.info('Kubelet version', { kubeletVersion: invocation.version ?? kubernetesVersion().number })
  // A pod leaves little garbage. The young generation would grow in a burst and stay large.
  setFlagsFromString('--semi-space-growth-factor=1')
  closing.use(tidyWhenQuiet(clock))
  await prepareHost(program)
  const machine = await machineOf(program)
  const runtime = await openRuntime(program)
  const cgroupDriver = await driverOf(program, runtime)
  const facts = podFacts(program, cgroupDriver, machine)
  const slices = cgroupDriver === 'systemd' && { systemd: closing.use(new Systemd(machine.cgroupVersion)) }
  const cgroups = { ...around, machine, facts, enforced: configuration, ...slices }
  const derived = settingsOf(program)
  await openHealth(program)
  const { connect, client } = await openIdentity(program, signal)
  const { port } = await startKubelet(
    {
      name: node,
      ...around,
      connect,
      runtime,
      machine,
      pods: facts,
      labels: Object.fromEntries(settings['node-labels']),
      taints: [...(configuration.registerWithTaints ?? []), ...(cloud === undefined ? [] : [UNINITIALIZED])],
      ...derived,
      ...(await limitsOf(program)),
      cgroups: openCgroups({ ...cgroups, reserved: derived.node.reserved }),
      serving: await openServing(program, { client, addresses: machine.addresses, signal }),
      registry: program.registry,
      ...(await credentialsOf(program)),
      // Upstream's path, which the installer of the machine creates.
      registryFile: resolve(facts.rootDir, 'config.json'),
      ...pagesOf(program, cgroupDriver),
    },
    closing,
  )
  log.info('Started kubelet', { node, port })
  await adjustOomScore(program)
  await aborted(signal)
  return 0
}

/** Facts about the process and the machine for the port's pages. */
function pagesOf(
  program: KubeletProgram,
  cgroupDriver: string,
): Pick<KubeletOptions, 'configuration' | 'zpages' | 'logDirectory'> {
  const { configuration } = program
  return {
    configuration: shownConfiguration({ ...configuration, cgroupDriver }),
    zpages: kubeletZPages({ ...program, flags: flagzValues(KUBELET_FLAGS, program.flags) }),
    ...(configuration.enableSystemLogHandler && { logDirectory: '/var/log' }),
  }
}

/** Throws ProgramError. */
function checkServer(settings: KubeletSettings): void {
  if (settings.kubeconfig !== '' || settings['bootstrap-kubeconfig'] !== '') return
  throw new ProgramError('failed to run Kubelet: standalone mode is not supported: set --kubeconfig')
}

/** The cloud-controller-manager removes this taint after it has initialized the node. */
const UNINITIALIZED = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' }

/** Undefined without a cloud. Throws ProgramError. */
function cloudOf(settings: KubeletSettings): KubeletProgram['cloud'] {
  const { 'cloud-provider': name } = settings
  if (name === '') return undefined
  if (name === 'external') return { given: addressesOf(settings).addresses }
  const how = 'Please set --cloud-provider=external and migrate to an external cloud provider'
  const why = `cloud provider "${name}" was specified, but built-in cloud providers are disabled. ${how}`
  throw new ProgramError(`failed to run Kubelet: failed to create kubelet: ${why}`)
}

function openRegistry({ clock, version, isEnabled, closing }: Omit<KubeletProgram, 'registry'>): Registry {
  const about = { clock, version: versionInfo(version), isEnabled }
  return closing.use(createServerMetrics({ ...about, settings: USUAL_METRICS })).meters.registry
}

/** Limits for admission, eviction and garbage collection. Throws ProgramError. */
async function limitsOf({ configuration, settings, isEnabled }: KubeletProgram): Promise<Limits> {
  const { imageGCHighThresholdPercent, imageGCLowThresholdPercent, imageMinimumGCAge, imageMaximumGCAge } =
    configuration
  try {
    parseThresholds(configuration)
  } catch (cause) {
    throw new ProgramError(`failed to run Kubelet: ${(cause as Error).message}`, { cause })
  }
  const enabled = await readBytes('/sys/module/apparmor/parameters/enabled', 'utf8').catch(() => 'N')
  return {
    eviction: configuration,
    garbage: {
      containers: {
        maxPerContainer: settings['maximum-dead-containers-per-container'],
        maxContainers: settings['maximum-dead-containers'],
        minAgeMs: settings['minimum-container-ttl-duration'],
      },
      images: {
        highPercent: imageGCHighThresholdPercent,
        lowPercent: imageGCLowThresholdPercent,
        minAgeMs: durationMs(imageMinimumGCAge),
        maxAgeMs: durationMs(imageMaximumGCAge),
      },
    },
    traits: {
      allowedSysctls: configuration.allowedUnsafeSysctls ?? [],
      hasAppArmor: enabled.startsWith('Y'),
      isTolerated: tolerationRule(isEnabled),
    },
  }
}

type Limits = Pick<KubeletOptions, 'eviction' | 'garbage' | 'traits'>

/** Throws ProgramError. */
function nodeNameOf(settings: KubeletSettings): string {
  const name = (settings['hostname-override'] || hostname()).trim().toLowerCase()
  if (name === '') throw new ProgramError('failed to run Kubelet: empty hostname is invalid')
  return name
}

async function hasCgroupV1(): Promise<boolean> {
  return access('/sys/fs/cgroup/cgroup.controllers').then(
    () => false,
    () => true,
  )
}

async function machineOf({ settings, configuration, node, cwd, log }: KubeletProgram): Promise<Machine> {
  const rootDir = resolve(cwd, settings['root-dir'])
  await mkdir(rootDir, { recursive: true, mode: 0o750 }).catch((cause: Error) => {
    throw new ProgramError(`failed to run Kubelet: failed to create kubelet: ${cause.message}`, { cause })
  })
  const { maxPods, podsPerCore = 0, localStorageCapacityIsolation: hasStorage } = configuration
  const most = podsPerCore === 0 ? maxPods : Math.min(availableParallelism() * podsPerCore, maxPods)
  const given = addressesOf(settings)
  if (given.ignored.length > 0) log.info('Could not parse some node IP(s), ignoring them', { IPs: given.ignored })
  const machine = await readMachine({ rootDir, maxPods: most })
  const { 'ephemeral-storage': storage, ...others } = machine.capacity
  const capacity = hasStorage && storage !== undefined ? machine.capacity : others
  const over = overReserved(capacity, configuration)
  if (over !== undefined) throw new ProgramError(`failed to run Kubelet: ${over}`)
  return { ...machine, capacity, addresses: (await nodeAddresses(node, given.addresses)) ?? machine.addresses }
}

function addressesOf(settings: KubeletSettings): ReturnType<typeof parseNodeIp> {
  const text = settings['node-ip']
  try {
    return parseNodeIp(text)
  } catch (cause) {
    throw new ProgramError(`failed to run Kubelet: bad --node-ip "${text}": ${(cause as Error).message}`, { cause })
  }
}

async function openRuntime({ configuration, clock, random, closing }: KubeletProgram): Promise<Runtime> {
  const { containerRuntimeEndpoint: endpoint, imageServiceEndpoint: images = '' } = configuration
  if (images !== '' && images !== endpoint) {
    throw new ProgramError(`--image-service-endpoint=${images} is not supported: the runtime manages images`)
  }
  const path = endpoint.startsWith('unix://') ? endpoint.slice('unix://'.length) : endpoint
  if (!path.startsWith('/')) {
    throw new ProgramError(`failed to run Kubelet: protocol of "${endpoint}" is not supported: use unix:///path`)
  }
  const client = createGrpcClient({ targets: [{ path }], clock, random })
  closing.defer(() => client.close())
  const runtime = createRuntimeClient(client)
  try {
    await runtime.version({})
  } catch (cause) {
    throw new ProgramError(
      `failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint "${endpoint}": ${(cause as Error).message}`,
      { cause },
    )
  }
  return runtime
}

/** The runtime's answer takes precedence; for runtimes without one the configuration decides. */
async function driverOf({ configuration, log }: KubeletProgram, runtime: Runtime): Promise<'cgroupfs' | 'systemd'> {
  const { cgroupDriver: configured } = configuration
  try {
    const { linux } = await runtime.runtimeConfig({})
    if (linux !== undefined) return linux.cgroupDriver === 0 ? 'systemd' : 'cgroupfs'
  } catch {
    log.info(
      'CRI implementation should be updated to support RuntimeConfig. Falling back to using cgroupDriver from kubelet config.',
    )
  }
  if (configured === 'cgroupfs' || configured === 'systemd') return configured
  throw new ProgramError(`failed to run Kubelet: invalid cgroup driver "${configured}"`)
}

/** A kubelet continues without the health port if the port is in use. */
async function openHealth({ configuration, clock, log, closing }: KubeletProgram): Promise<void> {
  const { healthzPort: port, healthzBindAddress: host } = configuration
  if (port === 0) return
  await openHealthPort({ clock, host, port }, closing).catch((error: unknown) =>
    log.error(error, 'Failed to start healthz server'),
  )
}

/** The kernel kills other processes first. */
async function adjustOomScore({ configuration, log }: KubeletProgram): Promise<void> {
  await writeFile('/proc/self/oom_score_adj', String(configuration.oomScoreAdj)).catch((error: Error) =>
    log.info('Failed to ApplyOOMScoreAdj', { err: error.message }),
  )
}
