/** Lists the names and addresses under which clients reach the server. */
import { networkInterfaces } from 'node:os'

import { EVERYWHERE } from '#component/bound-port.ts'
import { type Cidr, formatIp, parseCidr } from '#lib/net/cidr.ts'

import type { Settings } from './flags/flags.ts'
import type { ServerPlan } from './flags/plan.ts'

export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}

/** The given address, else the one listened on, else the first of this machine that others can reach. */
export function advertisedAddress(flags: Pick<Settings, 'advertise-address' | 'bind-address'>): string {
  const given = flags['advertise-address']
  if (given !== '') return given
  const bound = flags['bind-address']
  if (!EVERYWHERE.has(bound) && !isLoopback(bound)) return bound
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outside = all.filter(({ internal, scopeid }) => !internal && !scopeid)
  return (outside.find(({ family }) => family === 'IPv4') ?? outside[0])?.address ?? '127.0.0.1'
}

/** The hosts of a self-signed certificate. */
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
