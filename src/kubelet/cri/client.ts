/** A container runtime behind its socket: containerd, CRI-O, whatever speaks CRI v1. */
import type { CallOptions, GrpcClient } from '#lib/grpc/client.ts'
import type { Method } from '#lib/grpc/method.ts'

import { METHODS, type Runtime } from './runtime.ts'

type AnyMethod = Method<unknown, unknown, unknown, unknown>

/** Closing the client stays with whoever made it. */
export function runtimeBehind(client: GrpcClient): Runtime {
  const calls = Object.entries<AnyMethod>(METHODS).map(([name, method]) => [
    name,
    (request: unknown, options?: CallOptions) =>
      name === 'getContainerEvents'
        ? client.serverStream(method, request, options)
        : client.unary(method, request, options),
  ])
  return Object.fromEntries(calls) as Runtime
}
