/** Binds the secure port of a program on one or on all addresses of the machine. */
import { bind, type Listener } from '#lib/http/listen.ts'
import { ProgramError } from '#lib/program.ts'

import type { ServingPlan } from './flags/serving-plan.ts'

/** Addresses that mean all addresses of the machine. */
export const EVERYWHERE: ReadonlySet<string> = new Set(['', '0.0.0.0', '::'])

export interface BoundPort {
  readonly host: string
  readonly port: number
  /** The listener of the address, and those of extra addresses on the same port. */
  readonly listeners: readonly Listener[]
}

interface PortEnvironment {
  readonly plan: { readonly serving: Pick<ServingPlan, 'host' | 'port' | 'reusePort'> }
  /** Additional addresses to listen on, at the same port. */
  readonly extraAddresses?: readonly string[]
  readonly closing: AsyncDisposableStack
}

/** Throws ProgramError if it cannot listen. Closed with the server, or instead of it. */
export async function bindPort(environment: PortEnvironment): Promise<BoundPort> {
  const { listener, ...bound } = await bindFirst(environment)
  const others = EVERYWHERE.has(environment.plan.serving.host) ? [] : (environment.extraAddresses ?? [])
  const beside = await Promise.all(
    others.filter((host) => host !== bound.host).map((host) => bindAt(environment, host, bound.port)),
  )
  return { ...bound, listeners: [listener, ...beside] }
}

/** Throws ProgramError. */
async function bindAt({ plan, closing }: PortEnvironment, host: string, port: number): Promise<Listener> {
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
}: PortEnvironment): Promise<Omit<BoundPort, 'listeners'> & { readonly listener: Listener }> {
  const { host, port, reusePort } = plan.serving
  // `::` listens on both families; a machine without IPv6 has only the other.
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

export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
