/** `hyperkube node setup` and `reset`: set up a Windows worker node for a cluster with Linux control planes. */
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { JOIN_ACCESS, makeJoinToken } from '#cluster/joining.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, int, oneOf, string } from '#lib/flags/kinds.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
import { secureRandom } from '#lib/random.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { tlsOf } from '#model/kubeconfig/credentials.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'
import { userAgent } from '#model/version.ts'
import { CrashError, EXIT_CODES, RetryError } from '#supervisor/outcome.ts'
import { PowerShellError } from '#supervisor/windows/real/powershell.ts'
import { windowsHost } from '#supervisor/windows/real/windows-host.ts'
import { clusterBehind } from '#supervisor/windows/setup/cluster.ts'
import { type ClusterView, type SetupContext, setupContext } from '#supervisor/windows/setup/context.ts'
import type { ClusterEndpoint } from '#supervisor/windows/setup/documents.ts'
import {
  type DownloadDigests,
  setupPaths,
  SETUP_DEFAULTS,
  type SetupSettings,
} from '#supervisor/windows/setup/settings.ts'
import { reset as resetWorker, setUp } from '#supervisor/windows/setup/setup.ts'

import { OWN_ENTRY } from '../program-path.ts'

interface SetupFlags {
  readonly 'base-dir': string
  readonly 'cluster-cidr': string
  readonly 'service-cidr': string
  readonly 'interface-name': string
  readonly release: string
  readonly 'nano-server-image-tag': string
  readonly 'server-core-image-tag': string
  readonly 'network-mode': 'overlay' | 'l2bridge'
  readonly vni: number
  readonly port: number
  readonly 'own-flanneld': boolean
  readonly 'kubernetes-sha256': string
  readonly 'cni-sha256': string
  readonly 'flanneld-sha256': string
}

const SETUP_FLAGS: { readonly [K in keyof SetupFlags]: Flag<SetupFlags[K]> } = {
  'base-dir': flag(
    string,
    SETUP_DEFAULTS.baseDir,
    "`folder` for all files; it must contain an administrator's `kubeconfig`, which only setup and reset read",
  ),
  'cluster-cidr': flag(string, SETUP_DEFAULTS.clusterCidr, 'CIDR of pods'),
  'service-cidr': flag(string, SETUP_DEFAULTS.serviceCidr, 'CIDR of Services'),
  'interface-name': flag(string, SETUP_DEFAULTS.interfaceName, 'name of the network adapter for traffic between nodes'),
  release: flag(string, SETUP_DEFAULTS.release, 'Kubernetes release of kubelet and kube-proxy'),
  'nano-server-image-tag': flag(
    string,
    SETUP_DEFAULTS.nanoServerImageTag,
    'tag of the image nanoserver (up to release 1.23)',
  ),
  'server-core-image-tag': flag(
    string,
    SETUP_DEFAULTS.serverCoreImageTag,
    'tag of the image servercore (up to release 1.23)',
  ),
  'network-mode': flag(
    oneOf('overlay', 'l2bridge'),
    SETUP_DEFAULTS.networkMode,
    'type of the pod network: overlay or l2bridge',
  ),
  vni: flag(int, SETUP_DEFAULTS.vni, 'VXLAN identifier of the overlay; equal on all nodes'),
  port: flag(int, SETUP_DEFAULTS.port, 'UDP port of the overlay; Windows supports only this one'),
  'own-flanneld': flag(
    bool,
    true,
    'run "hyperkube flanneld" (overlay only); false downloads flannel\'s program, which needs --flanneld-sha256',
  ),
  'kubernetes-sha256': flag(string, '', 'SHA-256 of kubernetes-node-windows-amd64.tar.gz (default: the published one)'),
  'cni-sha256': flag(string, '', 'SHA-256 of the archive of CNI plugins (default: the published one)'),
  'flanneld-sha256': flag(string, '', "SHA-256 of flannel's flanneld.exe, which is not published"),
}

function settingsOf(flags: SetupFlags): SetupSettings {
  return {
    baseDir: flags['base-dir'],
    clusterCidr: flags['cluster-cidr'],
    serviceCidr: flags['service-cidr'],
    interfaceName: flags['interface-name'],
    release: flags.release,
    nanoServerImageTag: flags['nano-server-image-tag'],
    serverCoreImageTag: flags['server-core-image-tag'],
    networkMode: flags['network-mode'],
    vni: flags.vni,
    port: flags.port,
    digests: {
      ...given('kubernetes', flags['kubernetes-sha256']),
      ...given('cni', flags['cni-sha256']),
      ...given('flanneld', flags['flanneld-sha256']),
    },
    ownFlanneld: flags['own-flanneld'] ? { program: process.execPath, args: [OWN_ENTRY, 'flanneld'] } : undefined,
  }
}

function given(name: keyof DownloadDigests, digest: string): DownloadDigests {
  return digest === '' ? {} : { [name]: digest }
}

type Context = Pick<ProgramContext, 'clock' | 'stdout' | 'env' | 'cwd' | 'readFile'>

/** Connects to the cluster only if a step needs it: reset works without a cluster. */
function lazily(open: () => Promise<ClusterView>): ClusterView {
  let opened: Promise<ClusterView> | undefined
  const cluster = (): Promise<ClusterView> => (opened ??= open())
  return {
    dnsServiceIp: async () => (await cluster()).dnsServiceIp(),
    isNodeThere: async (name) => (await cluster()).isNodeThere(name),
    deleteNode: async (name) => (await cluster()).deleteNode(name),
    endpoint: async () => (await cluster()).endpoint(),
    clientAuthority: async () => (await cluster()).clientAuthority(),
    joinToken: async () => (await cluster()).joinToken(),
    componentToken: async (...component) => (await cluster()).componentToken(...component),
    revoke: async (...component) => (await cluster()).revoke(...component),
  }
}

async function endpointOf(config: ClientConfig, readFile: Context['readFile']): Promise<ClusterEndpoint> {
  const { ca: certificateAuthority } = await tlsOf(config, readFile)
  if (certificateAuthority === undefined)
    throw new CrashError('The kubeconfig of the administrator has no certificate authority')
  return { server: config.cluster.server ?? '', certificateAuthority }
}

async function joinTokenFrom(client: ApiClient): Promise<string> {
  for (const [kind, binding] of JOIN_ACCESS) {
    await client.create(kind, binding).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    })
  }
  return makeJoinToken(client, secureRandom)
}

async function withWorker(
  flags: SetupFlags,
  { clock, stdout, ...context }: Context,
  signal: AbortSignal,
  use: (worker: SetupContext) => Promise<void>,
): Promise<number> {
  if (process.platform !== 'win32')
    throw new ProgramError('This command is for Windows; use "hyperkube node install" on Linux')
  await using closing = new AsyncDisposableStack()
  const settings = settingsOf(flags)
  const http = createHttpClient({ clock })
  closing.defer(() => http.close())
  const host = windowsHost({
    clock,
    http,
    say: (text) => void stdout.write(`${text}\n`),
    ended: () => undefined,
  })
  const cluster = lazily(async () => {
    const config = await programConfig(
      { kubeconfig: setupPaths(settings).kubeconfig, master: '' },
      { ...context, warn: () => undefined },
    )
    const connection = await openConnection(config, { clock, ...context, onError: () => undefined })
    closing.defer(() => connection.close())
    const client = new ApiClient({ ...connection, clock, userAgent: userAgent('hyperkube-node') })
    return clusterBehind(client, signal, {
      endpoint: () => endpointOf(config, context.readFile),
      joinToken: () => joinTokenFrom(client),
    })
  })
  try {
    await use(setupContext({ host, cluster, settings, signal }))
    return 0
  } catch (cause) {
    if (cause instanceof RetryError) {
      stdout.write(`${cause.message}\n`)
      return EXIT_CODES.retry
    }
    const known = [CrashError, ConfigError, PowerShellError, AggregateError]
    if (cause instanceof Error && known.some((kind) => cause instanceof kind))
      throw new ProgramError(cause.message, { cause })
    throw cause
  }
}

export const setup: Program = defineProgram({
  name: 'setup',
  long:
    'setup makes this Windows Server machine a worker of a cluster: it installs programs, the services FlannelD, Kubelet and Kubeproxy, ' +
    'firewall rules and the pod network. It can run again after any failure and skips completed steps.',
  flags: { worker: SETUP_FLAGS },
  run: ({ flags, ...context }, signal) =>
    withWorker(flags, context, signal, async (worker) => {
      const taken = await setUp(worker)
      context.stdout.write(taken.length === 0 ? 'everything is already installed\n' : 'this machine is now a worker\n')
    }),
})

export const reset: Program = defineProgram({
  name: 'reset',
  long: 'reset undoes "node setup". It keeps the kubeconfig and everything that existed before.',
  flags: { worker: SETUP_FLAGS },
  run: ({ flags, ...context }, signal) =>
    withWorker(flags, context, signal, async (worker) => {
      await resetWorker(worker)
      context.stdout.write('this machine is no longer a worker\n')
    }),
})
