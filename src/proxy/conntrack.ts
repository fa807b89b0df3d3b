/**
 * Flows of UDP stay with the endpoint they began with, for as long as packets come, even when it is gone: nobody tells a client of UDP
 * to begin anew. So flows to Services are looked at when endpoints change, and those that lead to none of them are forgotten.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import type { IpFamily } from '#model/services.ts'

import type { Routed } from './router.ts'

export interface Flow {
  readonly source: string
  readonly sourcePort: string
  /** What was sent to. */
  readonly address: string
  readonly port: string
  /** Who answers. */
  readonly endpoint: string
  readonly endpointPort: string
}

/** Of what `conntrack -L -p udp` says. */
export function flowsIn(text: string): Flow[] {
  return text.split('\n').flatMap((line) => {
    const all = (key: string): string[] =>
      Array.from(line.matchAll(new RegExp(`\\b${key}=(\\S+)`, 'g')), ([, value = '']) => value)
    const [[source = '', endpoint = ''], [address = '']] = [all('src'), all('dst')]
    const [[sourcePort = '', endpointPort = ''], [port = '']] = [all('sport'), all('dport')]
    return endpointPort === '' ? [] : [{ source, sourcePort, address, port, endpoint, endpointPort }]
  })
}

/** Those to Services that have changed, and to none of their endpoints. */
export function staleFlows(flows: readonly Flow[], routed: readonly Routed[], family: IpFamily): Flow[] {
  const endpoints = new Map<string, ReadonlySet<string>>()
  for (const { routes } of routed)
    for (const { port, serving } of routes.get(family) ?? []) {
      // Where there is none, none is better than another.
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

/** Through the program `conntrack`. `within`: put before it, as in `ip netns exec <name>`. */
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
      // One that has gone meanwhile cannot be forgotten.
      await conntrack(family, '-D', ...which).catch(() => undefined)
    },
  }
}
