/** Runs a command in a container (exec) or attaches to the running one: input, output and exit code. */

import type { WebSocketConnection } from '#lib/http/websocket.ts'
import type { SpdyStream } from '#lib/spdy/stream.ts'
import {
  CHANNEL_PROTOCOL,
  CLOSE,
  ERROR,
  RESIZE,
  SPDY_CHANNEL_PROTOCOLS,
  STDERR,
  STDIN,
  STDOUT,
} from '#meta/stream-channels.ts'

import { dialSpdy, dialWebSocket, type StreamRequest } from './dial.ts'
import { failureOf } from './outcome.ts'

export interface TerminalSize {
  readonly width: number
  readonly height: number
}

/** Resolves when the sink accepts more. */
export type Output = (data: Buffer) => Promise<void>

/** These streams must match the query of the request. */
export interface CommandStreams {
  /** Read until the command or the input ends. */
  readonly stdin?: AsyncIterable<Buffer>
  readonly stdout?: Output
  readonly stderr?: Output
  /** The terminal's size, and each later size. */
  readonly sizes?: AsyncIterable<TerminalSize>
}

const MAX_REPORT_BYTES = 1 << 20

/**
 * Resolves when the command exits with 0. Throws RemoteExitError for other exit codes, and other errors for failures of
 * the connection.
 */
export async function runRemoteCommand(request: StreamRequest, streams: CommandStreams): Promise<void> {
  const connection = await dialWebSocket(request, CHANNEL_PROTOCOL)
  const report =
    connection === undefined ? await overSpdy(request, streams) : await overWebSocket(connection, streams, request)
  const failure = failureOf(report)
  if (failure !== undefined) throw failure
}

async function overWebSocket(
  connection: WebSocketConnection,
  { stdin, stdout, stderr, sizes }: CommandStreams,
  { signal }: StreamRequest,
): Promise<Buffer> {
  const send = (channel: number, data: Buffer): Promise<void> =>
    connection.send(Buffer.concat([Buffer.from([channel]), data]))
  const stop = (): void => connection.destroy()
  signal.addEventListener('abort', stop, { once: true })
  const pumps = [
    pump(stdin, {
      write: (data) => send(STDIN, data),
      end: () => connection.send(Buffer.from([CLOSE, STDIN])),
    }),
    pump(sizeLines(sizes), { write: (data) => send(RESIZE, data), end: () => Promise.resolve() }),
  ]
  const outputs: Readonly<Record<number, Output | undefined>> = { [STDOUT]: stdout, [STDERR]: stderr }
  const report = new Report()
  try {
    for await (const { data } of connection) {
      const [channel = CLOSE] = data
      if (channel === ERROR) report.add(data.subarray(1))
      else if (data.length > 1) await outputs[channel]?.(data.subarray(1))
    }
  } catch (error) {
    signal.throwIfAborted()
    // After the report the server may close the connection in any way.
    if (report.isEmpty) throw error
  } finally {
    signal.removeEventListener('abort', stop)
    for (const end of pumps) end()
    connection.destroy()
  }
  signal.throwIfAborted()
  return report.bytes
}

async function overSpdy(request: StreamRequest, { stdin, stdout, stderr, sizes }: CommandStreams): Promise<Buffer> {
  const { spdy } = await dialSpdy(request, SPDY_CHANNEL_PROTOCOLS)
  const stop = (): void => spdy.destroy()
  request.signal.addEventListener('abort', stop, { once: true })
  const open = (type: string): Promise<SpdyStream> => spdy.open(new Map([['streamtype', type]]))
  const pumps: (() => void)[] = []
  const feed = async (type: string, source: AsyncIterable<Buffer>): Promise<void> => {
    const stream = await open(type)
    pumps.push(pump(source, { write: (data) => stream.write(data), end: () => Promise.resolve(stream.end()) }))
    void copy(stream, () => Promise.resolve()).catch(nothing)
  }
  try {
    const outcome = await open('error')
    outcome.end()
    const report = new Report()
    const reported = copy(outcome, (data) => Promise.resolve(report.add(data)))
    reported.catch(nothing)
    if (stdin !== undefined) await feed('stdin', stdin)
    const outputs: Promise<void>[] = []
    if (stdout !== undefined) outputs.push(copy(await open('stdout'), stdout))
    if (stderr !== undefined) outputs.push(copy(await open('stderr'), stderr))
    if (sizes !== undefined) await feed('resize', sizeLines(sizes) as AsyncIterable<Buffer>)
    await Promise.all(outputs)
    await reported
    return report.bytes
  } catch (error) {
    request.signal.throwIfAborted()
    throw error
  } finally {
    request.signal.removeEventListener('abort', stop)
    for (const end of pumps) end()
    spdy.close()
  }
}

async function copy(stream: AsyncIterable<Buffer>, output: Output): Promise<void> {
  for await (const data of stream) await output(data)
}

/** The error stream's content, cut at a size limit. */
class Report {
  readonly #parts: Buffer[] = []
  #size = 0

  get isEmpty(): boolean {
    return this.#size === 0
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  add(data: Buffer): void {
    if (this.#size + data.length > MAX_REPORT_BYTES) return
    this.#size += data.length
    this.#parts.push(data)
  }
}

interface Sink {
  readonly write: Output
  readonly end: () => Promise<void>
}

/**
 * Copies in the background until the source ends or the returned function is called; a command may leave input unread.
 */
function pump(source: AsyncIterable<Buffer> | undefined, { write, end }: Sink): () => void {
  if (source === undefined) return nothing
  const iterator = source[Symbol.asyncIterator]()
  let isOver = false
  const run = async (): Promise<void> => {
    for (;;) {
      const { done, value } = await iterator.next()
      if (isOver) return
      if (done === true) return end()
      await write(value)
    }
  }
  run().catch(nothing)
  return () => {
    isOver = true
    void iterator.return?.()
  }
}

function sizeLines(sizes: AsyncIterable<TerminalSize> | undefined): AsyncIterable<Buffer> | undefined {
  return sizes === undefined ? undefined : asLines(sizes)
}

async function* asLines(sizes: AsyncIterable<TerminalSize>): AsyncGenerator<Buffer> {
  for await (const { width, height } of sizes) yield Buffer.from(`{"Width":${width},"Height":${height}}\n`)
}

function nothing(): void {}
