/** DNS server sockets: UDP, and TCP for large answers (RFC 7766), with limits. */
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

import type { Clock, Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import type { Resolver } from './resolver.ts'
import { HEADER_BYTES, uint16 } from './wire.ts'

export interface ListenOptions {
  readonly address: string
  /** 0: any free port. */
  readonly port: number
  readonly resolver: Resolver
  readonly clock: Clock
  readonly log: Logger
}

export interface Listening {
  readonly udpPort: number
  readonly tcpPort: number
  close(): Promise<void>
}

const MAX_CONNECTIONS = 512
/** The idle timeout of a TCP connection. */
const IDLE_MS = 10_000
/** Unanswered queries on one TCP connection. */
const MAX_PIPELINED = 64
/** The receive buffer for datagrams while the process is busy; the system may limit it. */
const RECEIVE_BYTES = 4 << 20

/** Rejects with EADDRNOTAVAIL or EADDRINUSE. */
export async function listen(options: ListenOptions): Promise<Listening> {
  const udp = await bindUdp(options)
  const streams = new Streams(options)
  try {
    const udpPort = udp.address().port
    const tcpPort = await streams.listen(options.port === 0 ? 0 : udpPort)
    return {
      udpPort,
      tcpPort,
      close: async () => {
        udp.close()
        await streams.close()
      },
    }
  } catch (error) {
    udp.close()
    throw error
  }
}

async function bindUdp({ address, port, resolver, log }: ListenOptions): Promise<UdpSocket> {
  const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BYTES })
  const failed = (error: unknown): void => log.error(error, 'Failed to answer a DNS query over UDP')
  const send = (reply: Buffer | undefined, { port: to, address: at }: RemoteInfo): void => {
    // The client may be gone.
    if (reply !== undefined) socket.send(reply, to, at, ignore)
  }
  const take = (bytes: Buffer, from: RemoteInfo): void => {
    // Port 0 is invalid as a source: replying would hit others.
    if (from.port === 0 || bytes.length < HEADER_BYTES) return
    const reply = resolver.reply(bytes, 'udp')
    if (reply instanceof Promise) reply.then((late) => send(late, from)).catch(failed)
    else send(reply, from)
  }
  socket.on('message', (bytes, from) => {
    try {
      take(bytes, from)
    } catch (error) {
      failed(error)
    }
  })
  socket.bind({ address, port, exclusive: true })
  try {
    await once(socket, 'listening')
  } catch (error) {
    socket.close()
    throw error
  }
  socket.on('error', failed)
  return socket
}

const ignore = (): void => undefined

class Streams {
  readonly #options: ListenOptions
  readonly #server: Server
  readonly #open = new Set<Socket>()

  constructor(options: ListenOptions) {
    this.#options = options
    this.#server = createServer((socket) => this.#serve(socket))
    this.#server.maxConnections = MAX_CONNECTIONS
  }

  async listen(port: number): Promise<number> {
    this.#server.listen({ host: this.#options.address, port, exclusive: true })
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }

  #serve(socket: Socket): void {
    this.#open.add(socket)
    const stream = new Stream(socket, this.#options)
    socket.on('data', (chunk: Buffer) => stream.take(chunk))
    socket.on('error', ignore)
    socket.on('close', () => {
      this.#open.delete(socket)
      stream.end()
    })
  }
}

/** One TCP connection: length-prefixed messages, answered as they complete. */
class Stream {
  readonly #socket: Socket
  readonly #options: ListenOptions
  #received: Buffer = Buffer.alloc(0)
  #pending = 0
  #idle: Timer

  constructor(socket: Socket, options: ListenOptions) {
    this.#socket = socket
    this.#options = options
    this.#idle = this.#wait()
  }

  end(): void {
    this.#idle.cancel()
  }

  #wait(): Timer {
    return this.#options.clock.after(IDLE_MS, () => this.#socket.destroy(), { background: true })
  }

  take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    this.#next()
  }

  #next(): void {
    while (this.#pending < MAX_PIPELINED && this.#received.length >= 2) {
      const length = uint16(this.#received, 0)
      if (length < HEADER_BYTES) {
        this.#socket.destroy()
        return
      }
      if (this.#received.length < 2 + length) break
      const message = this.#received.subarray(2, 2 + length)
      this.#received = this.#received.subarray(2 + length)
      void this.#answer(message)
    }
    // Applies backpressure to a client that sends too fast or does not read.
    if (this.#pending >= MAX_PIPELINED || this.#socket.writableNeedDrain) this.#socket.pause()
    else this.#socket.resume()
  }

  async #answer(message: Buffer): Promise<void> {
    const { resolver, log } = this.#options
    this.#pending++
    this.#idle.cancel()
    try {
      const reply = await resolver.reply(message, 'tcp')
      if (reply === undefined) this.#socket.destroy()
      else if (!this.#socket.destroyed) this.#send(reply)
    } catch (error) {
      log.error(error, 'Failed to answer a DNS query over TCP')
      this.#socket.destroy()
    } finally {
      this.#pending--
      this.#idle.cancel()
      this.#idle = this.#wait()
      if (this.#socket.destroyed) this.#idle.cancel()
      else this.#next()
    }
  }

  #send(reply: Buffer): void {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(reply.length, 0)
    if (!this.#socket.write(Buffer.concat([length, reply]))) this.#socket.once('drain', () => this.#next())
  }
}
