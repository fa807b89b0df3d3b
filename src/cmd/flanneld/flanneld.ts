/** `flanneld`: runs the network between pods of different nodes, with flannel's flags, files and annotations. */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'

import { Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { aborted } from '#lib/abort.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { servePages } from '#lib/http/pages.ts'
import { createIpRoute } from '#lib/net/iproute.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'
import { startFlannel } from '#network/flannel/flannel.ts'
import { ensureForwarding } from '#network/flannel/forwarding.ts'
import { chooseInterface, type ChosenInterface } from '#network/flannel/interface.ts'
import type { NetConf } from '#network/flannel/net-conf.ts'
import { removeFlannel } from '#network/flannel/removal.ts'

import { readNetConf } from '../net-conf-file.ts'
import { openNodeClient } from '../node-client.ts'
import { FLANNELD_FLAGS, type FlanneldSettings } from './flags.ts'

/** The table of flags defines every setting with its type. */
export type FlanneldInvocation = Omit<Invocation<FlagGroups>, 'flags'> & { readonly flags: FlanneldSettings }

export const flanneld: Program = defineProgram({
  name: 'flanneld',
  long:
    'flanneld connects the pods of all nodes to one network: it reads the range that Kubernetes allocated to this node, publishes ' +
    'its address in annotations of the Node, and keeps links, routes and rules in sync with the annotations of other nodes.\n\n' +
    'NODE_NAME sets the node, or POD_NAME and POD_NAMESPACE the pod that runs on it. Environment variables can set flags ' +
    'as well: --ip-masq is FLANNELD_IP_MASQ.',
  version: kubernetesVersion(),
  flags: FLANNELD_FLAGS,
  run: runFlanneld,
})

async function runFlanneld(given: Invocation<FlagGroups>, signal: AbortSignal): Promise<number> {
  const invocation = withEnvironment(given)
  const { flags } = invocation
  if (flags.cleanup) {
    await removeFlannel(createIpRoute())
    return 0
  }
  if (!flags['kube-subnet-mgr']) {
    throw new ProgramError('Only Kubernetes can store leases: set --kube-subnet-mgr')
  }
  await using closing = new AsyncDisposableStack()
  const client = await openNodeClient(invocation, closing, {
    name: 'flanneld',
    where: { kubeconfig: flags['kubeconfig-file'], master: flags['kube-api-url'] },
    fault: (message) => `fail to create kubernetes config: ${message}`,
  })
  const node = await nodeName(invocation, client, signal)
  const who = { client, node }
  if (process.platform !== 'win32') return await runLinuxFlanneld(invocation, who, closing, signal)
  const { runWindowsFlanneld } = await import('./windows.ts')
  return await runWindowsFlanneld(invocation, who, closing, signal)
}

/** Runs until the signal is aborted. */
async function runLinuxFlanneld(
  invocation: FlanneldInvocation,
  { client, node }: { readonly client: ApiClient; readonly node: string },
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<number> {
  const { flags, random, log, clock } = invocation
  const conf = await readNetConf(invocation, flags['net-config-path'])
  const ip = createIpRoute()
  const { external, publicIps } = await externalInterface(invocation, conf)
  log.info('Using interface', { name: external.name, mtu: external.mtu, publicIps: Object.values(publicIps) })
  const subnetFile = resolve(invocation.cwd, flags['subnet-file'])
  await mkdir(dirname(subnetFile), { recursive: true, mode: 0o755 })
  // Every node of the network is a router and needs IP forwarding.
  await openForwarding(invocation, conf)
  const flannel = startFlannel(
    {
      client,
      random,
      log,
      node,
      conf,
      ip,
      external,
      publicIps,
      subnetFile,
      masquerades: flags['ip-masq'],
      annotationPrefix: flags['kube-annotation-prefix'],
      setsCondition: flags['set-node-network-unavailable'],
      repairMs: Math.max(1, flags['iptables-resync']) * 1000,
    },
    closing,
  )
  if (flags['healthz-port'] > 0) {
    const at = `${flags['healthz-ip']}:${flags['healthz-port']}`
    const pages = { '/healthz': () => ({ body: 'flanneld is running' }) }
    await servePages(at, { clock, log, closing, isFatal: true }, pages)
  }
  await Promise.race([flannel.ready, aborted(signal)])
  if (!signal.aborted) log.info('Running backend.', { backend: conf.backend.type })
  await aborted(signal)
  return 0
}

/**
 * Reads flags from variables such as `FLANNELD_IP_MASQ=true`; the command line takes precedence. Throws ProgramError.
 */
function withEnvironment(invocation: Invocation<FlagGroups>): FlanneldInvocation {
  const { env, log, changed } = invocation
  const flags: Record<string, unknown> = { ...invocation.flags }
  const given = new Set(changed)
  for (const [name, { kind }] of Object.values(FLANNELD_FLAGS).flatMap((group) => Object.entries(group))) {
    const text = env[`FLANNELD_${name.toUpperCase().replaceAll('-', '_')}`]
    if (text === undefined || text === '' || given.has(name)) continue
    try {
      flags[name] = kind.parse(text)
      given.add(name)
    } catch (cause) {
      throw new ProgramError(`The environment sets "${text}" for --${name}: ${(cause as Error).message}`, { cause })
    }
  }
  const { errors, notes } = findUnsupported(FLANNELD_FLAGS, flags, given)
  if (errors.length > 0) throw new ProgramError(errors.join('; '))
  for (const note of notes) log.info(note)
  return { ...invocation, flags: flags as unknown as FlanneldSettings }
}

async function nodeName({ env }: FlanneldInvocation, client: ApiClient, signal: AbortSignal): Promise<string> {
  const { NODE_NAME: name = '', POD_NAME: pod = '', POD_NAMESPACE: namespace = '' } = env
  if (name !== '') return name
  if (pod === '' || namespace === '') throw new ProgramError('env variables POD_NAME and POD_NAMESPACE must be set')
  const { spec } = await client.get(Pods, { namespace, name: pod }, { signal })
  if (spec.nodeName === undefined) throw new ProgramError(`node name not present in pod spec "${namespace}/${pod}"`)
  return spec.nodeName
}

/** Throws ProgramError. */
async function externalInterface({ flags }: FlanneldInvocation, conf: NetConf): Promise<ChosenInterface> {
  const ip = createIpRoute()
  const families = [
    ...(conf.network === undefined ? [] : [4 as const]),
    ...(conf.ipv6Network === undefined ? [] : [6 as const]),
  ]
  const reach = flags['iface-can-reach']
  const iface = reach === '' ? flags.iface : [...flags.iface, await interfaceTo(reach)]
  const selection = {
    iface,
    ifaceRegex: flags['iface-regex'].map((text) => new RegExp(text)),
    publicIp: flags['public-ip'],
    publicIpv6: flags['public-ipv6'],
    families,
  }
  try {
    return chooseInterface(selection, await ip.links(), await ip.routes(families[0] ?? 4))
  } catch (cause) {
    throw new ProgramError(`Failed to find any valid interface to use: ${(cause as Error).message}`, { cause })
  }
}

/** The interface that the kernel would use for an address. Throws ProgramError. */
async function interfaceTo(address: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('ip', ['-json', 'route', 'get', address])
    return (JSON.parse(stdout) as readonly { readonly dev?: string }[])[0]?.dev ?? ''
  } catch (cause) {
    throw new ProgramError(`There is no route to ${address} (--iface-can-reach)`, { cause })
  }
}

async function openForwarding({ flags, log }: FlanneldInvocation, { network, ipv6Network }: NetConf): Promise<void> {
  const ways = [
    ['/proc/sys/net/ipv4/ip_forward', network, 'iptables'],
    ['/proc/sys/net/ipv6/conf/all/forwarding', ipv6Network, 'ip6tables'],
  ] as const
  for (const [file, range, program] of ways) {
    if (range === undefined) continue
    await writeFile(file, '1').catch((error: unknown) => log.error(error, 'Failed to enable IP forwarding', { file }))
    if (!flags['iptables-forward-rules']) continue
    await ensureForwarding(program, range).catch((error: unknown) =>
      log.error(error, 'Failed to add iptables rules for forwarded pod traffic', { program }),
    )
  }
}
