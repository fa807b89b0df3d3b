/** Tests connections between machines: dials an address, or opens ports that only accept connections. */
import { connect, createServer, type Server } from 'node:net'

import type { Clock } from '#lib/clock.ts'

/** Empty: the port accepts connections; otherwise the reason. */
export function dialProblem(
  { host, port, timeoutMs }: { readonly host: string; readonly port: number; readonly timeoutMs: number },
  clock: Clock,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const end = (problem: string): void => {
      late.cancel()
      socket.destroy()
      resolve(problem)
    }
    const late = clock.after(timeoutMs, () => end(`no answer within ${timeoutMs / 1000} s`))
    socket.once('connect', () => end(''))
    socket.once('error', (error) => end(error.message))
  })
}

export class Listeners {
  readonly #servers: Server[] = []

  /** The ports that are in use. */
  async open(ports: readonly number[]): Promise<number[]> {
    const taken: number[] = []
    for (const port of ports) if (!(await this.#listen(port))) taken.push(port)
    return taken
  }

  #listen(port: number): Promise<boolean> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.end()
    })
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
      )
      server.listen(port, () => {
        this.#servers.push(server)
        resolve(true)
      })
    })
  }

  async close(): Promise<void> {
    const ended = this.#servers.splice(0).map((server) => new Promise<void>((done) => server.close(() => done())))
    await Promise.all(ended)
  }
}
