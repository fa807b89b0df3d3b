/**
 * A D-Bus connection as the user of this process: calls methods and receives signals. It cannot receive file
 * descriptors, because Node takes none from a socket.
 */
import { once } from 'node:events'
import { connect as connectSocket, type Socket } from 'node:net'

import { type DbusMessage, type DbusValue, decodeMessage, encodeMessage, MESSAGE, messageLength } from './message.ts'

export interface Method {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly signature?: string
  readonly body?: readonly DbusValue[]
}

const BUS = { destination: 'org.freedesktop.DBus', path: '/org/freedesktop/DBus', interface: 'org.freedesktop.DBus' }

/** The other side refused, and says so by a name. */
export class DbusError extends Error {
  readonly errorName: string

  constructor(errorName: string, message: string) {
    super(message)
    this.errorName = errorName
  }
}

interface Waiting {
  readonly resolve: (body: readonly DbusValue[]) => void
  readonly reject: (error: Error) => void
}

export class DbusConnection {
  readonly #socket: Socket
  /** By serial. */
  readonly #waiting = new Map<number, Waiting>()
  #serial = 0
  #rest: Buffer = Buffer.alloc(0)
  /** A message that is neither an answer nor an error. */
  onMessage: (message: DbusMessage) => void = () => undefined
  readonly #closed = Promise.withResolvers<void>()

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', () => undefined)
    socket.on('close', () => this.#end())
  }

  /** `path` is the socket of the bus. Fails if no bus listens there, or if it refuses the connection. */
  static async open(path: string): Promise<DbusConnection> {
    const socket = connectSocket(path)
    await once(socket, 'connect')
    // A zero byte comes first, then our user id in hexadecimal.
    socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(process.getuid?.() ?? 0)).toString('hex')}\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    if (!answer.toString().startsWith('OK ')) {
      socket.destroy()
      throw new Error(`The message bus lets us not in: ${answer.toString().trim()}`)
    }
    socket.write('BEGIN\r\n')
    const connection = new DbusConnection(socket)
    await connection.call({ ...BUS, member: 'Hello' })
    return connection
  }

  /** Resolves when it has ended, by whomever. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Its answer. Fails with what the other side says. */
  call(method: Method): Promise<readonly DbusValue[]> {
    const serial = ++this.#serial
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('the connection to the message bus has ended'))
      this.#waiting.set(serial, { resolve, reject })
      this.#send({ body: [], ...method, type: MESSAGE.call, serial })
    })
  }

  /** Signals that the rule speaks of come to `onMessage`. */
  async match(rule: string): Promise<void> {
    await this.call({ ...BUS, member: 'AddMatch', signature: 's', body: [rule] })
  }

  /** From now on it is reached by that name. */
  async ownName(name: string): Promise<void> {
    await this.call({ ...BUS, member: 'RequestName', signature: 'su', body: [name, 0] })
  }

  /** For servers: an answer to a call, or a signal. */
  tell(message: Omit<DbusMessage, 'serial'>): void {
    this.#send({ ...message, serial: ++this.#serial })
  }

  close(): void {
    this.#socket.destroy()
  }

  #send(message: DbusMessage): void {
    this.#socket.write(encodeMessage(message))
  }

  #read(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    try {
      for (;;) {
        const length = messageLength(this.#rest)
        if (length === undefined || this.#rest.length < length) return
        const message = decodeMessage(this.#rest.subarray(0, length))
        this.#rest = this.#rest.subarray(length)
        this.#take(message)
      }
    } catch {
      // The message boundaries are lost.
      this.close()
    }
  }

  #take(message: DbusMessage): void {
    const { type, answers = 0, errorName = '', body } = message
    if (type !== MESSAGE.answer && type !== MESSAGE.error) return this.onMessage(message)
    const waiting = this.#waiting.get(answers)
    this.#waiting.delete(answers)
    if (type === MESSAGE.answer) waiting?.resolve(body)
    else waiting?.reject(new DbusError(errorName, typeof body[0] === 'string' ? body[0] : errorName))
  }

  #end(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error('the connection to the message bus has ended'))
    this.#waiting.clear()
    this.#closed.resolve()
  }
}
