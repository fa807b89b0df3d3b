/**
 * The part of containerd's API that imports images: content, images, and leases that protect unnamed blobs from
 * garbage collection. Names and numbers are those of github.com/containerd/containerd/api.
 */
import type { BidiCall, CallOptions, GrpcClient } from '#lib/grpc/client.ts'
import { defineMethod, type Metadata, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Field, type Input, type Message, type MessageOf } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

/** The containerd namespace of CRI. */
export const NAMESPACE_OF_CRI = 'k8s.io'

export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: Int64
  readonly annotations: Map<string, string>
}

export interface StoredImage {
  readonly name: string
  readonly labels: Map<string, string>
  readonly target: Descriptor | undefined
}

export interface ContentInfo {
  readonly digest: string
  readonly size: Int64
  readonly labels: Map<string, string>
}

export interface WriteRequest {
  readonly action: number
  readonly ref: string
  readonly total: Int64
  readonly expected: string
  readonly offset: Int64
  readonly data: Buffer
  readonly labels: Map<string, string>
}

export interface WriteResponse {
  readonly action: number
  readonly offset: Int64
  readonly total: Int64
  readonly digest: string
}

export const WRITE_ACTION = { stat: 0, write: 1, commit: 2 } as const

const labels = { key: 'string', value: 'string' } as const
const descriptor: Message<Descriptor> = defineMessage({
  mediaType: [1, 'string'],
  digest: [2, 'string'],
  size: [3, 'int64'],
  annotations: [5, labels],
})
const image: Message<StoredImage> = defineMessage({ name: [1, 'string'], labels: [2, labels], target: [3, descriptor] })
const info: Message<ContentInfo> = defineMessage({ digest: [1, 'string'], size: [2, 'int64'], labels: [5, labels] })
const fieldMask = defineMessage({ paths: [1, 'string', 'repeated'] })
const resource = defineMessage({ id: [1, 'string'], type: [2, 'string'] })
const writeRequest: Message<WriteRequest> = defineMessage({
  action: [1, 'enum'],
  ref: [2, 'string'],
  total: [3, 'int64'],
  expected: [4, 'string'],
  offset: [5, 'int64'],
  data: [6, 'bytes'],
  labels: [7, labels],
})
const writeResponse: Message<WriteResponse> = defineMessage({
  action: [1, 'enum'],
  offset: [4, 'int64'],
  total: [5, 'int64'],
  digest: [6, 'string'],
})

type FieldTable = Readonly<Record<string, Field>>

function call<const Q extends FieldTable, const R extends FieldTable>(
  name: `${string}/${string}`,
  request: Q,
  response: R,
): Method<MessageOf<Q>, Input<MessageOf<Q>>, MessageOf<R>, Input<MessageOf<R>>> {
  return defineMethod(`/containerd.services.${name}`, defineMessage(request), defineMessage(response))
}

type ContainerdRpc<Q, R> = (request: Input<Q>, options?: CallOptions) => Promise<R>

/** All calls use the CRI namespace. Fails with `GrpcError`. */
export interface ImageApi {
  readonly contentInfo: ContainerdRpc<{ digest: string }, { info: ContentInfo | undefined }>
  readonly updateContent: ContainerdRpc<
    { info: ContentInfo | undefined; updateMask: { paths: string[] } | undefined },
    { info: ContentInfo | undefined }
  >
  readonly abortWrite: ContainerdRpc<{ ref: string }, object>
  readonly getImage: ContainerdRpc<{ name: string }, { image: StoredImage | undefined }>
  readonly listImages: ContainerdRpc<{ filters: string[] }, { images: StoredImage[] }>
  readonly createImage: ContainerdRpc<{ image: StoredImage | undefined }, { image: StoredImage | undefined }>
  readonly updateImage: ContainerdRpc<{ image: StoredImage | undefined }, { image: StoredImage | undefined }>
  readonly deleteImage: ContainerdRpc<{ name: string; sync: boolean }, object>
  readonly createLease: ContainerdRpc<{ id: string; labels: Map<string, string> }, object>
  readonly deleteLease: ContainerdRpc<{ id: string; sync: boolean }, object>
  readonly addToLease: ContainerdRpc<{ id: string; resource: { id: string; type: string } | undefined }, object>
  /** Each request has one response. */
  write(options: CallOptions): BidiCall<Input<WriteRequest>, WriteResponse>
}

const METHODS = {
  contentInfo: call('content.v1.Content/Info', { digest: [1, 'string'] }, { info: [1, info] }),
  updateContent: call(
    'content.v1.Content/Update',
    { info: [1, info], updateMask: [2, fieldMask] },
    { info: [1, info] },
  ),
  abortWrite: call('content.v1.Content/Abort', { ref: [1, 'string'] }, {}),
  getImage: call('images.v1.Images/Get', { name: [1, 'string'] }, { image: [1, image] }),
  listImages: call('images.v1.Images/List', { filters: [1, 'string', 'repeated'] }, { images: [1, image, 'repeated'] }),
  createImage: call('images.v1.Images/Create', { image: [1, image] }, { image: [1, image] }),
  updateImage: call('images.v1.Images/Update', { image: [1, image] }, { image: [1, image] }),
  deleteImage: call('images.v1.Images/Delete', { name: [1, 'string'], sync: [2, 'bool'] }, {}),
  createLease: call('leases.v1.Leases/Create', { id: [1, 'string'], labels: [3, labels] }, {}),
  deleteLease: call('leases.v1.Leases/Delete', { id: [1, 'string'], sync: [2, 'bool'] }, {}),
  addToLease: call('leases.v1.Leases/AddResource', { id: [1, 'string'], resource: [2, resource] }, {}),
}

const WRITE = defineMethod('/containerd.services.content.v1.Content/Write', writeRequest, writeResponse)

/** The caller closes the client. */
export function createImageApi(client: GrpcClient): ImageApi {
  const within = (options: CallOptions = {}): CallOptions => ({
    ...options,
    metadata: new Map([...(options.metadata ?? []), ['containerd-namespace', NAMESPACE_OF_CRI]]),
  })
  const calls = Object.entries<Method<unknown, unknown, unknown, unknown>>(METHODS).map(([name, method]) => [
    name,
    (request: unknown, options?: CallOptions) => client.unary(method, request, within(options)),
  ])
  return {
    ...(Object.fromEntries(calls) as Omit<ImageApi, 'write'>),
    write: (options) => client.bidi(WRITE, within(options)),
  }
}

/** Blobs written under a lease are kept until it ends. */
export function inLease(id: string): Metadata {
  return new Map([['containerd-lease', id]])
}
