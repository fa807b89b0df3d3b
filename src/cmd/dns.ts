/**
 * `dns`: runs the DNS server of a cluster as a separate program, in pods behind Service `kube-dns` or as a cache on
 * every node.
 */
import type { Upstream } from '#dns/forwarder.ts'
import { startDns, startNameCache } from '#dns/start.ts'
import { serverOf, stubFault, stubsIn } from '#dns/stub-domains.ts'
import { aborted } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { duration, int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { createIpRoute } from '#lib/net/iproute.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { openNodeClient } from './node-client.ts'

const NAME = 'dns'

const FLAGS = {
  dns: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: the service account of the pod)'),
    master: flag(string, '', '`address` of the API server; overrides the kubeconfig'),
    'bind-address': flag(string, '0.0.0.0', '`address` to listen on'),
    port: flag(int, 53, 'port for DNS queries'),
    'metrics-port': flag(int, 9153, 'port of /metrics, /health and /ready'),
    domain: flag(string, 'cluster.local', 'domain of the cluster'),
    'own-addresses': flag(strings, [], 'addresses of this server, to which it never forwards queries'),
    upstreams: flag(strings, [], 'upstream servers for other names (default: those in --resolv-conf)'),
    'resolv-conf': flag(string, '/etc/resolv.conf', '`file` with the default upstream servers'),
    'stub-domains': flag(strings, [], 'domains with other servers: corp.example=10.1.2.3'),
    'lameduck-period': flag(duration, 0, 'how long the server keeps answering after a stop signal'),
    'cache-of': flag(
      strings,
      [],
      'cluster DNS servers to forward to and cache; this server then watches no API objects',
    ),
    'local-address': flag(string, '', '`address` to add to the machine while the server runs'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

type DnsInvocation = Invocation<typeof FLAGS>

export const dns: Program = defineProgram({
  name: NAME,
  long:
    'dns answers queries for names of Services and pods, and forwards all other queries. With --cache-of it only caches: one instance on every ' +
    'node, at a local address (--local-address), reduces the load on the cluster’s servers.',
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
    void names.synced.then(() => log.info('Caches synced'))
  }
  await aborted(signal)
  // Clients of this server must first learn that it stops.
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
  log.info('Serving DNS', { address, port: udpPort })
}

function server(name: string, text: string): Upstream {
  const found = serverOf(text)
  if (found === undefined) throw new ProgramError(`--${name}: "${text}" is not a server address`)
  return found
}

/**
 * Adds the address to the loopback interface, which every pod of the node reaches; removes it at the end, unless it
 * existed before.
 */
async function haveAddress(address: string, { log }: DnsInvocation, closing: AsyncDisposableStack): Promise<void> {
  const ip = createIpRoute()
  const words = [`${address}/${address.includes(':') ? 128 : 32}`, 'dev', 'lo']
  const lo = await ip.link('lo')
  if (lo?.addr_info.some(({ local }) => local === address) !== true) await ip.ip([['address', 'add', ...words]])
  closing.defer(() =>
    ip
      .ip([['address', 'del', ...words]])
      .catch((error: unknown) =>
        log.error(error, 'Failed to remove the DNS address from the network interface', { address }),
      ),
  )
}
