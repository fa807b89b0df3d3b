/** Where the server listens, and by which names and addresses others reach it. */
import { networkInterfaces } from 'node:os'

import { type Cidr, formatIp, parseCidr } from '#lib/cidr.ts'
import { bind, type Listener } from '#lib/http/listen.ts'
import { ProgramError } from '#lib/program.ts'

import type { Settings } from './flags/flags.ts'
import type { ServerPlan } from './flags/plan.ts'
import type { Site } from './site.ts'

const EVERYWHERE: ReadonlySet<string> = new Set(['', '0.0.0.0', '::'])

export interface BoundPort {
  readonly host: string
  readonly port: number
  /** That of the address, and those beside it on the same port. */
  readonly listeners: readonly Listener[]
}

type PortSite = Pick<Site, 'closing' | 'alsoAt'> & { readonly plan: Pick<ServerPlan, 'serving'> }

/** Throws ProgramError when it cannot be had. Closed with the server, or instead of it. */
export async function bindPort(site: PortSite): Promise<BoundPort> {
  const { listener, ...bound } = await bindFirst(site)
  const others = EVERYWHERE.has(site.plan.serving.host) ? [] : (site.alsoAt ?? [])
  const beside = await Promise.all(
    others.filter((host) => host !== bound.host).map((host) => bindAt(site, host, bound.port)),
  )
  return { ...bound, listeners: [listener, ...beside] }
}

/** Throws ProgramError. */
async function bindAt({ plan, closing }: PortSite, host: string, port: number): Promise<Listener> {
  try {
    const listener = await bind({ host, port, reusePort: plan.serving.reusePort })
    closing.defer(() => listener.close())
    return listener
  } catch (cause) {
    throw cannotListen(host, port, cause as Error)
  }
}

function cannotListen(host: string, port: number, cause: Error): ProgramError {
  const where = `${bracketed(host)}:${port}`
  return new ProgramError(`failed to create listener: failed to listen on ${where}: ${cause.message}`, { cause })
}

async function bindFirst({
  plan,
  closing,
}: PortSite): Promise<Omit<BoundPort, 'listeners'> & { readonly listener: Listener }> {
  const { host, port, reusePort } = plan.serving
  // `::` takes both families; a machine without IPv6 has only the other.
  const hosts = EVERYWHERE.has(host) ? ['::', '0.0.0.0'] : [host]
  for (const each of hosts) {
    try {
      const listener = await bind({ host: each, port, reusePort })
      closing.defer(() => listener.close())
      if ('port' in listener.address) return { ...listener.address, listener }
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if ((code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL') && each !== hosts.at(-1)) continue
      throw cannotListen(each, port, cause as Error)
    }
  }
  throw new ProgramError('failed to create listener')
}

export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}

/** The address given, else the one listened on, else the first of this machine that others can reach. */
export function advertisedAddress(flags: Settings): string {
  const given = flags['advertise-address']
  if (given !== '') return given
  const bound = flags['bind-address']
  if (!EVERYWHERE.has(bound) && !isLoopback(bound)) return bound
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outside = all.filter(({ internal, scopeid }) => !internal && !scopeid)
  return (outside.find(({ family }) => family === 'IPv4') ?? outside[0])?.address ?? '127.0.0.1'
}

/** What a certificate of our own is for. */
export function ownNames(flags: Settings, plan: Pick<ServerPlan, 'serviceCidr'>, address: string): string[] {
  const firstOf = ({ family, base }: Cidr): string => formatIp({ family, value: base + 1n })
  const services = plan.serviceCidr.split(',').flatMap((text) => parseCidr(text.trim()) ?? [])
  const external = flags['external-hostname']
  return [
    ...new Set([
      'localhost',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      ...(external === '' ? [] : [external]),
      '127.0.0.1',
      '::1',
      address,
      ...services.map(firstOf),
    ]),
  ]
}

export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
