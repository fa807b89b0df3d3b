/**
 * Translates exec and attach from WebSocket to SPDY, for kubelets that only support SPDY. Follows upstream's
 * apiserver/pkg/util/proxy/streamtranslator, v1.36.
 */
import type { Answer } from '#component/requests/call.ts'
import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'
import { acceptWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'
import { SpdyConnection } from '#lib/spdy/connection.ts'
import { SpdyError, type SpdyStream } from '#lib/spdy/stream.ts'
import { internalError } from '#meta/status-errors.ts'
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

import type { ConnectContext } from './context.ts'
import { dialText } from './dial-text.ts'
import { firstOf } from './relay.ts'
import type { UpgradeTarget } from './stream-upgrade.ts'

/** Keeps middleboxes from closing an idle connection. */
const PING_MS = 5000
/** The maximum size of a kubelet's error or result. */
const MAX_ERROR_BYTES = 50_000

export interface WantedStreams {
  readonly stdin?: boolean
  readonly stdout?: boolean
  readonly stderr?: boolean
  readonly tty?: boolean
}

export function isTranslatable(offered: readonly string[]): boolean {
  return offered.includes(CHANNEL_PROTOCOL)
}

/** The client's handshake completes before the kubelet's: later errors go to the error channel. */
export function translate(
  target: UpgradeTarget,
  { clock, count, wanted }: Pick<ConnectContext, 'clock' | 'count'> & { readonly wanted: WantedStreams },
): Answer {
  return {
    status: 101,
    async upgrade(exchange, signal) {
      const client = await acceptWebSocket(exchange, { clock, choose: () => CHANNEL_PROTOCOL }).catch(() => undefined)
      if (client === undefined) return count.translated(400)
      const gone = new AbortController()
      void client.closed.then(() => gone.abort())
      const release = onAbort(signal, () => client.destroy())
      try {
        const session = new Translation(client, wanted)
        await session.run(() => connectKubelet(target, clock, gone.signal), gone.signal)
        count.translated(session.hasFailed ? 500 : 200)
      } finally {
        release()
        client.destroy()
      }
    },
  }
}

/** Throws Error with the text for the client. */
async function connectKubelet(target: UpgradeTarget, clock: Clock, signal: AbortSignal): Promise<SpdyConnection> {
  const { client, url, path } = target
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': SPDY_CHANNEL_PROTOCOLS }
  const result = await client.upgrade({ method: 'POST', url, path, headers, signal }).catch((cause: unknown) => {
    const text = `error sending request: Post "${url}${path}": ${dialText(cause, new URL(url).host)}`
    throw new Error(text, { cause })
  })
  if (!result.isUpgraded) {
    const reply = await firstOf(result.response.body, MAX_ERROR_BYTES)
    throw new Error(`unable to upgrade connection: ${messageOf(reply.toString())}`)
  }
  const chosen = [result.headers['x-stream-protocol-version'] ?? []].flat()[0] ?? ''
  const isSpdy = (result.headers.upgrade ?? '').toLowerCase().includes('spdy/3.1')
  if (!isSpdy || !SPDY_CHANNEL_PROTOCOLS.includes(chosen)) {
    result.socket.destroy()
    throw new Error(
      `unable to upgrade connection: the kubelet speaks "${chosen}", none of ${SPDY_CHANNEL_PROTOCOLS.join(', ')}`,
    )
  }
  return new SpdyConnection(result.socket, { clock, role: 'client', head: result.head, pingIntervalMs: PING_MS })
}

/** The message of a Status, or the text itself. */
function messageOf(reply: string): string {
  try {
    const { message } = JSON.parse(reply) as { message?: unknown }
    if (typeof message === 'string' && message.trim() !== '') return message.trim()
  } catch {
    // Plain text, as most kubelets answer.
  }
  return reply.trim() === '' ? 'empty server response' : reply.trim()
}

/** One session: a client, its channels and their streams. */
class Translation {
  readonly #client: WebSocketConnection
  readonly #wanted: WantedStreams
  #stdin: SpdyStream | undefined
  #resize: SpdyStream | undefined
  #hasFailed = false

  constructor(client: WebSocketConnection, wanted: WantedStreams) {
    this.#client = client
    this.#wanted = wanted
  }

  /** True if the connection to the kubelet failed. */
  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /** Runs until the command ends or the client leaves. */
  async run(connect: () => Promise<SpdyConnection>, gone: AbortSignal): Promise<void> {
    const { stdout, stderr } = this.#wanted
    // Clients treat the first message as a sign that the connection works.
    await this.#send(stdout === true ? STDOUT : stderr === true ? STDERR : ERROR, Buffer.alloc(0)).catch(nothing)
    const status = await this.#converse(connect, gone)
    if (gone.aborted) return
    await this.#send(ERROR, status).catch(nothing)
    await this.#client.close()
  }

  /** Returns the final Status. */
  async #converse(connect: () => Promise<SpdyConnection>, gone: AbortSignal): Promise<Buffer> {
    let kubelet: SpdyConnection | undefined
    const release = onAbort(gone, () => kubelet?.destroy())
    try {
      kubelet = await connect()
      if (gone.aborted) return Buffer.alloc(0)
      return await this.#carry(kubelet)
    } catch (error) {
      this.#hasFailed = true
      return statusBytes(error as Error)
    } finally {
      release()
      kubelet?.close()
    }
  }

  async #carry(kubelet: SpdyConnection): Promise<Buffer> {
    const { stdin, stdout, stderr, tty } = this.#wanted
    const open = (type: string): Promise<SpdyStream> => kubelet.open(new Map([['streamtype', type]]))
    // In upstream's order. A terminal has one output.
    const outcome = await open('error')
    outcome.end()
    if (stdin === true) this.#stdin = await open('stdin')
    const outputs: Promise<void>[] = []
    if (stdout === true) outputs.push(this.#copy(await open('stdout'), STDOUT))
    if (stderr === true && tty !== true) outputs.push(this.#copy(await open('stderr'), STDERR))
    if (tty === true) this.#resize = await open('resize')
    void this.#listen()
    for (const stream of [this.#stdin, this.#resize]) if (stream !== undefined) void drain(stream)
    await Promise.all(outputs)
    return asStatus(await firstOf(outcome, MAX_ERROR_BYTES))
  }

  async #copy(stream: SpdyStream, channel: number): Promise<void> {
    for await (const data of stream) await this.#send(channel, data)
  }

  /** Reads the client's messages; returns when the client leaves and closes the streams. */
  async #listen(): Promise<void> {
    try {
      for await (const { data } of this.#client) await this.#receive(data)
    } catch {
      // The client or the kubelet has gone; the waiting side sees the closed stream.
    }
  }

  async #receive(data: Buffer): Promise<void> {
    const [channel] = data
    if (channel === CLOSE) return this.#streamOf(data[1])?.end()
    // A command that does not read its whole input is not an error of the client.
    if (data.length > 1) await this.#streamOf(channel)?.write(data.subarray(1)).catch(nothing)
  }

  #streamOf(channel: number | undefined): SpdyStream | undefined {
    return channel === STDIN ? this.#stdin : channel === RESIZE ? this.#resize : undefined
  }

  #send(channel: number, data: Buffer): Promise<void> {
    const message = Buffer.allocUnsafe(data.length + 1)
    message[0] = channel
    data.copy(message, 1)
    return this.#client.send(message)
  }
}

/** Discards unexpected data, because unread data would block the connection. */
async function drain(stream: SpdyStream): Promise<void> {
  try {
    for await (const _ of stream) void _
  } catch {
    // The connection is gone; its users see that themselves.
  }
}

/** An empty report is success, as in old kubelets. */
function asStatus(reported: Buffer): Buffer {
  return reported.length > 0 ? reported : Buffer.from('{"metadata":{},"status":"Success"}')
}

function statusBytes(error: Error): Buffer {
  const cause = error instanceof SpdyError ? new Error('the connection to the kubelet was lost') : error
  return Buffer.from(JSON.stringify(internalError(cause).status))
}

function nothing(): void {}
