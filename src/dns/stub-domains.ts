/** Parses the flags that name stub domains and upstream DNS servers. Pure. */
import { formatIp, parseIp } from '#lib/net/cidr.ts'

import type { Upstream } from './forwarder.ts'

const PORT = 53

/**
 * `corp.example=10.1.2.3`, optionally with a port; repeat the domain for further servers. Ignores invalid entries: see
 * `stubFault`.
 */
export function stubsIn(list: readonly string[]): ReadonlyMap<string, readonly Upstream[]> {
  const stubs = new Map<string, Upstream[]>()
  for (const text of list) {
    const stub = stubOf(text)
    if (stub !== undefined) stubs.set(stub.domain, [...(stubs.get(stub.domain) ?? []), stub.server])
  }
  return stubs
}

/** The first invalid entry; undefined if all are valid. */
export function stubFault(list: readonly string[]): string | undefined {
  return list.find((text) => stubOf(text) === undefined)
}

function stubOf(text: string): { readonly domain: string; readonly server: Upstream } | undefined {
  const [, domain = '', where = ''] = /^([^=\s]+)=(\S+)$/.exec(text) ?? []
  const server = serverOf(where)
  if (domain === '' || server === undefined) return undefined
  return { domain: domain.toLowerCase().replace(/\.$/, ''), server }
}

/** `10.1.2.3`, `10.1.2.3:5353`, `[fd00::1]:5353`, `fd00::1`. Undefined: invalid. */
export function serverOf(text: string): Upstream | undefined {
  const [, six, four = text, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? []
  const ip = parseIp(six ?? four)
  return ip === undefined ? undefined : { address: formatIp(ip), port: Number(port ?? PORT) }
}
