/** `hyperkube node setup` and `reset`: a worker with Windows, beside control planes with Linux. */
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/config.ts'
import { openConnection } from '#client/connection.ts'
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
  placesIn,
  SETUP_DEFAULTS,
  type SetupSettings,
} from '#supervisor/windows/setup/settings.ts'
import { reset as resetWorker, setUp } from '#supervisor/windows/setup/setup.ts'

import { OWN_ENTRY } from '../own-program.ts'

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
    "`folder` for all files; an administrator's file `kubeconfig` must be in it, which only setup and reset read",
  ),
  'cluster-cidr': flag(string, SETUP_DEFAULTS.clusterCidr, 'addresses of pods'),
  'service-cidr': flag(string, SETUP_DEFAULTS.serviceCidr, 'addresses of Services'),
  'interface-name': flag(string, SETUP_DEFAULTS.interfaceName, 'name of the adapter by which other nodes are reached'),
  release: flag(string, SETUP_DEFAULTS.release, 'release of Kubernetes whose kubelet and kube-proxy run here'),
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
    'network of pods: overlay or l2bridge',
  ),
  vni: flag(int, SETUP_DEFAULTS.vni, 'number of the overlay; that of the other nodes'),
  port: flag(int, SETUP_DEFAULTS.port, 'port of the overlay; Windows has this one only'),
  'own-flanneld': flag(
    bool,
    true,
    'run "hyperkube flanneld" (overlay only); false: download flannel\'s own, which needs --flanneld-sha256',
  ),
  'kubernetes-sha256': flag(
    string,
    '',
    'SHA-256 of kubernetes-node-windows-amd64.tar.gz (default: the one published beside it)',
  ),
  'cni-sha256': flag(string, '', 'SHA-256 of the archive of CNI plugins (default: the one published beside it)'),
  'flanneld-sha256': flag(string, '', "SHA-256 of flannel's flanneld.exe, which has no published one"),
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

/** The cluster is asked only when a step needs it: a machine can be reset without one. */
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
    throw new ProgramError('This is for machines with Windows; "hyperkube node install" is for those with Linux')
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
      { kubeconfig: placesIn(settings).kubeconfig, master: '' },
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
    'setup makes this machine, with Windows Server, a worker of a cluster: programs, services FlannelD, Kubelet and Kubeproxy, ' +
    'rules of the firewall, the network of pods. It can be run again after anything: what is done is not done twice.',
  flags: { worker: SETUP_FLAGS },
  run: ({ flags, ...context }, signal) =>
    withWorker(flags, context, signal, async (worker) => {
      const taken = await setUp(worker)
      context.stdout.write(taken.length === 0 ? 'all of it is there\n' : 'this machine is a worker\n')
    }),
})

export const reset: Program = defineProgram({
  name: 'reset',
  long: 'reset undoes what "node setup" has done, and leaves the kubeconfig and what was there before.',
  flags: { worker: SETUP_FLAGS },
  run: ({ flags, ...context }, signal) =>
    withWorker(flags, context, signal, async (worker) => {
      await resetWorker(worker)
      context.stdout.write('this machine is no worker any more\n')
    }),
})
