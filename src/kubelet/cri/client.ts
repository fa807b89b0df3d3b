/** A container runtime behind its socket: containerd, CRI-O, whatever speaks CRI v1. */
import type { CallOptions, GrpcClient } from '#lib/grpc/client.ts'
import type { Method } from '#lib/grpc/method.ts'
import { hasStatus } from '#lib/grpc/status.ts'

import { METHODS, type Runtime } from './runtime.ts'

type AnyMethod = Method<unknown, unknown, unknown, unknown>

/** CRI demands that these succeed for what is gone; containerd 1.6 complains. */
const GONE_IS_FINE: ReadonlySet<string> = new Set<keyof Runtime>([
  'stopPodSandbox',
  'removePodSandbox',
  'stopContainer',
  'removeContainer',
])

/** Closing the client stays with whoever made it. */
export function runtimeBehind(client: GrpcClient): Runtime {
  const calls = Object.entries<AnyMethod>(METHODS).map(([name, method]) => [
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
