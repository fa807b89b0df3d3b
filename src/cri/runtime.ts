/**
 * The interface of a container runtime: CRI v1, one method per call. Both the client (`client.ts`) and the server in
 * front of our own runtime (`server.ts`) use this table.
 */
import { type ContainerEventResponse, type GetEventsRequest, ImageService, RuntimeService } from '#apis/wire/cri.ts'
import type { CallOptions } from '#lib/grpc/client.ts'
import type { Method } from '#lib/grpc/method.ts'

type Services = RuntimeService & ImageService
type Methods = { readonly [K in keyof Services]: Services[K] }

export const METHODS: Methods = { ...RuntimeService, ...ImageService }

/** Fails with the `GrpcError` of the runtime. */
type Call<M> =
  M extends Method<unknown, infer Q, infer R, unknown> ? (request: Q, options?: CallOptions) => Promise<R> : never

type Calls = { readonly [K in Exclude<keyof Methods, 'getContainerEvents'>]: Call<Methods[K]> }

export interface Runtime extends Calls {
  readonly getContainerEvents: (
    request: GetEventsRequest,
    options?: CallOptions,
  ) => AsyncIterable<ContainerEventResponse>
}
