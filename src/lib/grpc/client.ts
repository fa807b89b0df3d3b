/**
 * A gRPC client on node:http2: unary calls, and calls with streams in either or both directions, with deadlines,
 * cancellation and back-pressure. One connection, shared by all calls.
 */
import { onAbort } from '../abort.ts'
import type { Clock } from '../clock.ts'
import { activeSpan } from '../tracing/active.ts'
import { withRpcSpan } from '../tracing/client-spans.ts'
import type { Span } from '../tracing/span.ts'
import { Call } from './call.ts'
import type { ConnectionOptions, ConnectionState } from './connection.ts'
import { Connection } from './connection.ts'
import { Ending } from './ending.ts'
import { encodeFrame } from './frame.ts'
import { Inbox } from './inbox.ts'
import type { Metadata, Method } from './method.ts'
import { CONTENT_TYPE, encodeTimeout, MAX_RECEIVE_BYTES, metadataHeaders, readMetadata } from './method.ts'
import { GrpcError } from './status.ts'

export interface GrpcClientOptions extends ConnectionOptions {
  /** Larger messages fail the call as `resourceExhausted`. Default 16 MiB. */
  readonly maxReceiveBytes?: number
  readonly userAgent?: string
}

export interface CallOptions {
  readonly metadata?: Metadata
  /** The call fails as `deadlineExceeded` after this time; the server receives the timeout. No limit by default. */
  readonly timeoutMs?: number
  /** Aborting cancels the call: it fails as `cancelled`, with the signal's reason as cause. */
  readonly signal?: AbortSignal
  /** Wait for a connection instead of failing as `unavailable` between two attempts to connect. */
  readonly waitForReady?: boolean
  /** Called with the headers and again with the trailers of the answer. */
  readonly onMetadata?: (metadata: Metadata) => void
}

/** A call whose answers come one by one. Leaving the loop cancels the call. Can be read once. */
export type Responses<T> = AsyncIterableIterator<T>

export interface BidiCall<In, Out> {
  readonly responses: Responses<Out>
  /** Resolves when there is room for the next one; rejects with the call's error once it is over. */
  send(value: In): Promise<void>
  /** No more requests will follow; answers may. */
  end(): void
  /** Cancels the call. Harmless when it is over. */
  cancel(): void
}

/** Every call fails with `GrpcError` and nothing else. */
export interface GrpcClient {
  readonly state: ConnectionState
  /** Connects ahead of the first call; rejects if the first attempt fails, unless it may wait. */
  connect(options?: Pick<CallOptions, 'signal' | 'timeoutMs' | 'waitForReady'>): Promise<void>
  unary<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, request: QIn, options?: CallOptions): Promise<R>
  serverStream<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, request: QIn, options?: CallOptions): Responses<R>
  /** Also for methods that take a stream and give one answer. */
  bidi<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, options?: CallOptions): BidiCall<QIn, R>
  /** Ends open calls as `unavailable` and refuses new ones. */
  close(): void
}

export function createGrpcClient(options: GrpcClientOptions): GrpcClient {
  const connection = new Connection(options)
  const context: Context = {
    connection,
    clock: options.clock,
    maxReceiveBytes: options.maxReceiveBytes ?? MAX_RECEIVE_BYTES,
    userAgent: options.userAgent ?? 'hyperkube-grpc',
  }
  return {
    get state() {
      return connection.state
    },
    async connect(connectOptions = {}) {
      const limits = limitCall(context, connectOptions)
      const waitForReady = connectOptions.waitForReady === true
      await connection.session({ waitForReady, ending: limits.ending }).finally(() => limits.release())
    },
    unary: (method, request, callOptions = {}) => callUnary(context, method, request, callOptions),
    serverStream(method, request, callOptions = {}) {
      const call = openStreaming(context, method, callOptions)
      // A failure to send is a failure of the call and is reported where the answers are read.
      call.send(request).catch(() => undefined)
      call.end()
      return call.responses
    },
    bidi: (method, callOptions = {}) => openStreaming(context, method, callOptions),
    close: () => connection.close(),
  }
}

interface Context {
  readonly connection: Connection
  readonly clock: Clock
  readonly maxReceiveBytes: number
  readonly userAgent: string
}

interface Limits {
  /** Everything that can end the call from our side: the caller's signal and the deadline. */
  readonly ending: Ending
  readonly deadline: number | undefined
  release(): void
}

function limitCall({ clock }: Context, { timeoutMs, signal }: CallOptions): Limits {
  const ending = new Ending()
  const timer =
    timeoutMs === undefined
      ? undefined
      : clock.after(timeoutMs, () => ending.end(new GrpcError('deadlineExceeded', `No answer within ${timeoutMs} ms`)))
  const release = onAbort(signal, () => {
    ending.end(new GrpcError('cancelled', 'The call was cancelled', { cause: signal?.reason }))
  })
  return {
    ending,
    deadline: timeoutMs === undefined ? undefined : clock.elapsed() + timeoutMs,
    release() {
      timer?.cancel()
      release()
    },
  }
}

function requestHeaders(
  context: Context,
  path: string,
  extra: { metadata: Metadata | undefined; deadline: number | undefined },
): Record<string, string> {
  const headers: Record<string, string> = {
    ':method': 'POST',
    ':path': path,
    'content-type': CONTENT_TYPE,
    te: 'trailers',
    'user-agent': context.userAgent,
  }
  if (extra.deadline !== undefined) headers['grpc-timeout'] = encodeTimeout(extra.deadline - context.clock.elapsed())
  return extra.metadata === undefined ? headers : { ...headers, ...metadataHeaders(extra.metadata) }
}

async function callUnary<Q, QIn, R, RIn>(
  context: Context,
  method: Method<Q, QIn, R, RIn>,
  request: QIn,
  options: CallOptions,
): Promise<R> {
  const limits = limitCall(context, options)
  try {
    const { path } = method
    const body = encode(() => method.request.encode(request))
    const send = (metadata = options.metadata): Promise<Buffer> => {
      const withMetadata = metadata === undefined ? options : { ...options, metadata }
      return attemptUnary(context, { path, frame: encodeFrame(body), options: withMetadata, limits, attempt: 1 })
    }
    const span = activeSpan()
    const traced = (within: Span): Promise<Buffer> =>
      withRpcSpan(within, { path, request: body }, (headers) =>
        send(new Map([...(options.metadata ?? []), ...Object.entries(headers)])),
      )
    const answer = await (span === undefined ? send() : traced(span))
    return decode(() => method.response.decode(answer))
  } finally {
    limits.release()
  }
}

interface UnaryAttempt {
  readonly path: string
  readonly frame: Buffer
  readonly options: CallOptions
  readonly limits: Limits
  readonly attempt: number
}

/** Sends the request, and once more when the server says that it has not begun with it (it is shutting down). */
async function attemptUnary(context: Context, one: UnaryAttempt): Promise<Buffer> {
  const { options, limits } = one
  const session = await context.connection.session({
    waitForReady: options.waitForReady === true,
    ending: limits.ending,
  })
  const headers = requestHeaders(context, one.path, { metadata: options.metadata, deadline: limits.deadline })
  const outcome = await new Promise<Buffer | 'again'>((resolve, reject) => {
    let answer: Buffer | undefined
    const start = { headers, maxReceiveBytes: context.maxReceiveBytes, ending: limits.ending }
    const call: Call = new Call(session, start, {
      onHeaders: (found) => options.onMetadata?.(readMetadata(found)),
      onMessage(message) {
        if (answer !== undefined) throw new GrpcError('internal', 'The server sent more than one answer')
        answer = message
      },
      onEnd(error, trailers) {
        options.onMetadata?.(readMetadata(trailers))
        if (error === undefined && answer !== undefined) resolve(answer)
        else if (error !== undefined && call.isUntouched && one.attempt === 1) resolve('again')
        else reject(error ?? new GrpcError('internal', 'The server sent no answer'))
      },
    })
    call.end(one.frame)
  })
  return outcome === 'again' ? attemptUnary(context, { ...one, attempt: one.attempt + 1 }) : outcome
}

function encode(task: () => Buffer): Buffer {
  try {
    return task()
  } catch (cause) {
    throw new GrpcError('internal', `Cannot encode the request: ${cause instanceof Error ? cause.message : ''}`, {
      cause,
    })
  }
}

function decode<T>(task: () => T): T {
  try {
    return task()
  } catch (cause) {
    throw new GrpcError('internal', `Cannot decode the answer: ${cause instanceof Error ? cause.message : ''}`, {
      cause,
    })
  }
}

function openStreaming<Q, QIn, R, RIn>(
  context: Context,
  method: Method<Q, QIn, R, RIn>,
  options: CallOptions,
): BidiCall<QIn, R> {
  const limits = limitCall(context, options)
  const inbox = new Inbox(
    (bytes) => decode(() => method.response.decode(bytes)),
    () => limits.ending.end(new GrpcError('cancelled', 'The reader left')),
  )
  const opened = startStreaming(context, method.path, { options, limits, inbox })
  opened.catch((error: unknown) => {
    limits.release()
    const isOurs = error instanceof GrpcError
    inbox.finish(isOurs ? error : new GrpcError('internal', 'Cannot start the call', { cause: error }))
  })
  return {
    responses: inbox,
    async send(value) {
      const frame = encodeFrame(encode(() => method.request.encode(value)))
      const call = await opened
      if (inbox.end !== undefined) throw inbox.end.error ?? new GrpcError('cancelled', 'The call is over')
      if (!call.send(frame)) await new Promise<void>((resolve) => call.onceDrained(resolve))
    },
    end() {
      // A call that could not be opened needs no end.
      opened.then((call) => call.end()).catch(() => undefined)
    },
    cancel: () => limits.ending.end(new GrpcError('cancelled', 'The call was cancelled')),
  }
}

interface Streaming {
  readonly options: CallOptions
  readonly limits: Limits
  readonly inbox: Inbox<unknown>
}

async function startStreaming(context: Context, path: string, { options, limits, inbox }: Streaming): Promise<Call> {
  const { ending, deadline } = limits
  const session = await context.connection.session({ waitForReady: options.waitForReady === true, ending })
  const headers = requestHeaders(context, path, { metadata: options.metadata, deadline })
  const start = { headers, maxReceiveBytes: context.maxReceiveBytes, ending }
  const call = new Call(session, start, {
    onHeaders: (found) => options.onMetadata?.(readMetadata(found)),
    onMessage: (message) => inbox.put(message),
    onEnd(error, trailers) {
      limits.release()
      options.onMetadata?.(readMetadata(trailers))
      inbox.finish(error)
    },
  })
  inbox.attach(call)
  return call
}
