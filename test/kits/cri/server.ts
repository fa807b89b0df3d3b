/** Serves a runtime that is written in TypeScript as CRI v1, so that any CRI client can use it. */
import { METHODS, type Runtime } from '#cri/runtime.ts'
import type { Method } from '#lib/grpc/method.ts'
import { type Handler, handleServerStream, handleUnary } from '#lib/grpc/server.ts'

type AnyMethod = Method<unknown, unknown, unknown, unknown>
type AnyCall = (request: unknown) => Promise<unknown>
type AnyStream = (request: unknown) => AsyncIterable<unknown>

export function serveRuntime(runtime: Runtime): Handler[] {
  return Object.entries<AnyMethod>(METHODS).map(([name, method]) => {
    const call: unknown = runtime[name as keyof Runtime]
    return name === 'getContainerEvents'
      ? handleServerStream(method, (request) => (call as AnyStream)(request))
      : handleUnary(method, (request) => (call as AnyCall)(request))
  })
}
