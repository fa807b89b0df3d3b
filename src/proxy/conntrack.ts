/**
 * Deletes stale UDP conntrack entries. A UDP flow stays with its endpoint while packets arrive, even after the endpoint
 * is gone. So flows to changed Services are checked, and those without a current endpoint are deleted.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import type { IpFamily } from '#model/services.ts'

import type { RoutedService } from './router.ts'

export interface Flow {
  readonly source: string
  readonly sourcePort: string
  /** The original destination. */
  readonly address: string
  readonly port: string
  /** The replying endpoint. */
  readonly endpoint: string
  readonly endpointPort: string
}

/** Parses the output of `conntrack -L -p udp`. */
export function flowsIn(text: string): Flow[] {
  return text.split('\n').flatMap((line) => {
    const all = (key: string): string[] =>
      Array.from(line.matchAll(new RegExp(`\\b${key}=(\\S+)`, 'g')), ([, value = '']) => value)
    const [[source = '', endpoint = ''], [address = '']] = [all('src'), all('dst')]
    const [[sourcePort = '', endpointPort = ''], [port = '']] = [all('sport'), all('dport')]
    return endpointPort === '' ? [] : [{ source, sourcePort, address, port, endpoint, endpointPort }]
  })
}

/** Flows to changed Services that lead to none of their endpoints. */
export function staleFlows(flows: readonly Flow[], routed: readonly RoutedService[], family: IpFamily): Flow[] {
  const endpoints = new Map<string, ReadonlySet<string>>()
  for (const { routes } of routed)
    for (const { port, serving } of routes.get(family) ?? []) {
      // Without endpoints there is no better destination.
      if (port.protocol !== 'udp' || serving.length === 0) continue
      const known = new Set(serving.map((one) => `${one.ip} ${one.port}`))
      for (const ip of [port.clusterIp, ...port.externalIps, ...port.loadBalancerIps])
        endpoints.set(`${ip} ${port.port}`, known)
      if (port.nodePort !== 0) endpoints.set(`* ${port.nodePort}`, known)
    }
  return flows.filter(({ address, port, endpoint, endpointPort }) => {
    const known = endpoints.get(`${address} ${port}`) ?? endpoints.get(`* ${port}`)
    return known !== undefined && !known.has(`${endpoint} ${endpointPort}`)
  })
}

const MOST_BYTES = 256 * 1024 * 1024
const run = promisify(execFile)

export interface Conntrack {
  list(family: IpFamily): Promise<readonly Flow[]>
  forget(family: IpFamily, flow: Flow): Promise<void>
}

/** Uses the program `conntrack`. `within` prefixes it, as in `ip netns exec <name>`. */
export function systemConntrack(within: readonly string[] = []): Conntrack {
  const conntrack = async (family: IpFamily, verb: '-L' | '-D', ...args: readonly string[]): Promise<string> => {
    const word = family === 'IPv4' ? 'ipv4' : 'ipv6'
    const [program, ...rest] = [...within, 'conntrack']
    const { stdout } = await run(program, [...rest, verb, '-f', word, '-p', 'udp', ...args], { maxBuffer: MOST_BYTES })
    return stdout
  }
  return {
    list: async (family) => flowsIn(await conntrack(family, '-L')),
    async forget(family, { source, sourcePort, address, port }) {
      const which = ['-s', source, '-d', address, '--sport', sourcePort, '--dport', port]
      // The flow may be gone already.
      await conntrack(family, '-D', ...which).catch(() => undefined)
    },
  }
}
