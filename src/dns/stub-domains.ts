/** Domains that others answer for, and servers, as flags have them. Pure. */
import { formatIp, parseIp } from '#lib/cidr.ts'

import type { Upstream } from './forwarder.ts'

const PORT = 53

/** `corp.example=10.1.2.3` or with a port; the same domain again for another of its servers. What is not of the form is left out: see `stubFault`. */
export function stubsIn(list: readonly string[]): ReadonlyMap<string, readonly Upstream[]> {
  const stubs = new Map<string, Upstream[]>()
  for (const text of list) {
    const stub = stubOf(text)
    if (stub !== undefined) stubs.set(stub.domain, [...(stubs.get(stub.domain) ?? []), stub.server])
  }
  return stubs
}

/** Which of them is not of the form; undefined when all are. */
export function stubFault(list: readonly string[]): string | undefined {
  return list.find((text) => stubOf(text) === undefined)
}

function stubOf(text: string): { readonly domain: string; readonly server: Upstream } | undefined {
  const [, domain = '', where = ''] = /^([^=\s]+)=(\S+)$/.exec(text) ?? []
  const server = serverOf(where)
  if (domain === '' || server === undefined) return undefined
  return { domain: domain.toLowerCase().replace(/\.$/, ''), server }
}

/** `10.1.2.3`, `10.1.2.3:5353`, `[fd00::1]:5353`, `fd00::1`. Undefined: it is none of these. */
export function serverOf(text: string): Upstream | undefined {
  const [, six, four = text, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? []
  const ip = parseIp(six ?? four)
  return ip === undefined ? undefined : { address: formatIp(ip), port: Number(port ?? PORT) }
}
