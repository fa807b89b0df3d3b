/**
 * The program of a test pod: returns its name to TCP and UDP clients, and connects to other pods on commands from
 * stdin. `pods.ts` starts it in the pod's network namespace.
 */
import { createSocket } from 'node:dgram'
import { connect, createServer, type Socket } from 'node:net'
import process from 'node:process'
import { createInterface } from 'node:readline'

import { realClock } from '#lib/clock.ts'

export interface Order {
  readonly id: number
  /** `open` keeps the connection for `echo`, which says whether it still carries anything. */
  readonly what: 'tcp' | 'udp' | 'open' | 'echo'
  readonly host: string
  readonly port: number
}

const [name = '', ...ports] = process.argv.slice(2)
/** An allowed connection never takes that long. */
const PATIENCE_MS = 400
let held: Socket | undefined

async function obey(order: Order): Promise<void> {
  const said = await within(DEEDS[order.what], order)
  process.stdout.write(`${JSON.stringify({ id: order.id, said })}\n`)
}

type Deed = (order: Order, done: (said: string | undefined) => void) => () => void

/** The response of the other pod; undefined if it is unreachable. */
function within(deed: Deed, order: Order): Promise<string | undefined> {
  return new Promise((resolve) => {
    const end = deed(order, (said) => {
      timer.cancel()
      end()
      resolve(said)
    })
    const timer = realClock.after(PATIENCE_MS, () => {
      end()
      resolve(undefined)
    })
  })
}

const DEEDS: Readonly<Record<Order['what'], Deed>> = {
  tcp({ host, port }, done) {
    const socket = connect(port, host)
    socket.on('error', () => done(undefined)).once('data', (data) => done(data.toString()))
    return () => socket.destroy()
  },
  udp({ host, port }, done) {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    socket.on('error', () => done(undefined)).once('message', (data) => done(data.toString()))
    socket.send('?', port, host)
    return () => socket.close()
  },
  open({ host, port }, done) {
    held = connect(port, host)
    held.on('error', () => done(undefined)).once('data', (data) => done(data.toString()))
    return () => undefined
  },
  echo(_, done) {
    held?.once('data', (data) => done(data.toString()))
    held?.write('still there')
    return () => undefined
  },
}

for (const port of ports.map(Number)) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.write(name)
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(port, '::', resolve))
  const datagrams = createSocket('udp6')
  datagrams.on('message', (_, { port: to, address }) => datagrams.send(name, to, address))
  await new Promise<void>((resolve) => datagrams.bind(port, '::', resolve))
}
process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) void obey(JSON.parse(line) as Order)
// Its listeners would keep the process running.
process.kill(process.pid)
