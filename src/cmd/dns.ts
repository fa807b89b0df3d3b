/** `dns`: the name server of a cluster as a program of its own, in pods behind Service `kube-dns`; and as a cache on every node. */
import type { Upstream } from '#dns/forwarder.ts'
import { startDns, startNameCache } from '#dns/start.ts'
import { serverOf, stubFault, stubsIn } from '#dns/stub-domains.ts'
import { aborted } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { duration, int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { createIpRoute } from '#lib/iproute.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { openNodeClient } from './node-client.ts'

const NAME = 'dns'

const FLAGS = {
  dns: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: as a pod)'),
    master: flag(string, '', '`address` of the API server, instead of that of the kubeconfig'),
    'bind-address': flag(string, '0.0.0.0', '`address` to listen on'),
    port: flag(int, 53, 'port for questions'),
    'metrics-port': flag(int, 9153, 'port of /metrics, /health and /ready'),
    domain: flag(string, 'cluster.local', 'domain of the cluster'),
    'own-addresses': flag(strings, [], 'addresses at which this server is reached, and that it never asks itself'),
    upstreams: flag(strings, [], 'servers for all other names (default: those of --resolv-conf)'),
    'resolv-conf': flag(string, '/etc/resolv.conf', '`file` that names them'),
    'stub-domains': flag(strings, [], 'domains that others answer for: corp.example=10.1.2.3'),
    'lameduck-period': flag(duration, 0, 'how long it goes on answering when it is told to end'),
    'cache-of': flag(strings, [], 'servers that know the cluster: this one only remembers what they said'),
    'local-address': flag(string, '', '`address` that the machine is given for as long as this runs'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

type DnsInvocation = Invocation<typeof FLAGS>

export const dns: Program = defineProgram({
  name: NAME,
  long:
    'dns answers for the names of Services and pods, and asks others about all other names. With --cache-of it knows none itself: one on every ' +
    'node, at an address of its own (--local-address), spares the cluster’s servers.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runDns,
})

async function runDns(invocation: DnsInvocation, signal: AbortSignal): Promise<number> {
  const { flags, clock, random, log, readFile } = invocation
  const fault = stubFault(flags['stub-domains'])
  if (fault !== undefined) throw new ProgramError(`--stub-domains: "${fault}" is not of the form domain=address`)
  await using closing = new AsyncDisposableStack()
  const shared = {
    random,
    log,
    readFile,
    resolvConf: flags['resolv-conf'],
    upstreams: flags.upstreams.map((text) => server('upstreams', text)),
    own: [...flags['own-addresses'], ...(flags['local-address'] === '' ? [] : [flags['local-address']])],
  }
  const stubDomains = stubsIn(flags['stub-domains'])
  if (flags['cache-of'].length > 0) {
    const servers = flags['cache-of'].map((text) => server('cache-of', text))
    const known = [flags.domain, 'in-addr.arpa', 'ip6.arpa'].map((domain): [string, readonly Upstream[]] => [
      domain,
      servers,
    ])
    const cache = await startNameCache({ ...shared, clock, stubDomains: new Map([...known, ...stubDomains]) }, closing)
    if (flags['local-address'] !== '') await haveAddress(flags['local-address'], invocation, closing)
    await open(cache, invocation)
  } else {
    const where = { kubeconfig: flags.kubeconfig, master: flags.master }
    const client = await openNodeClient(invocation, closing, { name: NAME, where })
    const names = await startDns({ ...shared, client, domain: flags.domain, stubDomains }, closing)
    await open(names, invocation)
    void names.synced.then(() => log.info('All names are known'))
  }
  await aborted(signal)
  // Who was told of this server has yet to hear that it goes.
  if (flags['lameduck-period'] > 0) await sleep(clock, flags['lameduck-period'])
  return 0
}

async function open(
  doors: Pick<Awaited<ReturnType<typeof startDns>>, 'listen' | 'serveMetrics'>,
  { flags, log }: DnsInvocation,
): Promise<void> {
  const address = flags['local-address'] === '' ? flags['bind-address'] : flags['local-address']
  await doors.serveMetrics(address, flags['metrics-port'])
  const { udpPort } = await doors.listen(address, flags.port)
  log.info('Names are served', { address, port: udpPort })
}

function server(name: string, text: string): Upstream {
  const found = serverOf(text)
  if (found === undefined) throw new ProgramError(`--${name}: "${text}" is no address of a server`)
  return found
}

/** On the loopback, where every pod of the node reaches it; it goes when this ends, unless it was there before. */
async function haveAddress(address: string, { log }: DnsInvocation, closing: AsyncDisposableStack): Promise<void> {
  const ip = createIpRoute()
  const words = [`${address}/${address.includes(':') ? 128 : 32}`, 'dev', 'lo']
  const lo = await ip.link('lo')
  if (lo?.addr_info.some(({ local }) => local === address) !== true) await ip.ip([['address', 'add', ...words]])
  closing.defer(() =>
    ip.ip([['address', 'del', ...words]]).catch((error: unknown) => log.error(error, 'The address stays', { address })),
  )
}
