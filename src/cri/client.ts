/** A client of CRI v1, for container runtimes such as containerd or CRI-O. */
import type { CallOptions, GrpcClient } from '#lib/grpc/client.ts'
import type { Method } from '#lib/grpc/method.ts'
import { hasStatus } from '#lib/grpc/status.ts'

import { METHODS, type Runtime } from './runtime.ts'

type ClientMethod = Method<unknown, unknown, unknown, unknown>

/** CRI requires these calls to succeed for missing objects; containerd 1.6 fails. */
const GONE_IS_FINE: ReadonlySet<string> = new Set<keyof Runtime>([
  'stopPodSandbox',
  'removePodSandbox',
  'stopContainer',
  'removeContainer',
])

/** The caller closes the client. */
export function createRuntimeClient(client: GrpcClient): Runtime {
  const calls = Object.entries<ClientMethod>(METHODS).map(([name, method]) => [
    name,
    (request: unknown, options?: CallOptions) => {
      if (name === 'getContainerEvents') return client.serverStream(method, request, options)
      const answer = client.unary(method, request, options)
      return GONE_IS_FINE.has(name) ? answer.catch(unlessGone) : answer
    },
  ])
  return Object.fromEntries(calls) as Runtime
}

function unlessGone(error: unknown): object {
  if (hasStatus(error, 'notFound')) return {}
  throw error
}
