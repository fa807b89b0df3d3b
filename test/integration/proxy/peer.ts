/**
 * A small client or server that tests run in a network namespace. `serve <name> <address> <port>` answers TCP and UDP
 * with its name and the client's address. `ask tcp|udp <address> <port> <times>` prints the answers as JSON lines.
 * `hold <address> <port>` keeps one TCP connection open; it sends a request for each input line and prints the answer.
 * `flow <address> <port>` does the same over UDP from one port.
 */
import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'
import process from 'node:process'
import { createInterface } from 'node:readline'

import { realClock, type Timer } from '#lib/clock.ts'

const [what, ...args] = process.argv.slice(2)
const ANSWER_MS = 1500

function say(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

function serve(name: string, address: string, port: number): void {
  const text = (from: string | undefined): string => `${name} ${from?.replace('::ffff:', '') ?? ''}`
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write(text(socket.remoteAddress)))
  })
  const udp = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  udp.on('message', (_, from) => udp.send(text(from.address), from.port, from.address))
  server.listen(port, address, () => udp.bind(port, address, () => say('ready')))
}

function askTcp(address: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port }, () => socket.write('?'))
    const end = (answer: string): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(ANSWER_MS, () => end('timeout'))
    socket.on('data', (data) => end(data.toString()))
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'error'))
  })
}

function askUdp(address: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    const end = (answer: string): void => {
      timer.cancel()
      socket.close(() => resolve(answer))
    }
    const timer = realClock.after(ANSWER_MS, () => end('timeout'))
    socket.on('message', (data) => end(data.toString()))
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'error'))
    socket.connect(port, address, () => socket.send('?'))
  })
}

function flow(address: string, port: number): void {
  const socket = createSocket('udp4')
  let late: Timer | undefined
  const answer = (text: string): void => {
    late?.cancel()
    say(text)
  }
  socket.on('message', (data) => answer(data.toString()))
  // Not connected: who answers from elsewhere would be heard, and refusals would not.
  socket.bind(0, () => say('ready'))
  createInterface({ input: process.stdin }).on('line', () => {
    socket.send('?', port, address)
    late = realClock.after(ANSWER_MS, () => answer('timeout'))
  })
}

if (what === 'serve') serve(args[0] ?? '', args[1] ?? '', Number(args[2]))
else if (what === 'ask') {
  const [protocol, address = '', port, times] = args
  for (let count = 0; count < Number(times); count++)
    say(protocol === 'tcp' ? await askTcp(address, Number(port)) : await askUdp(address, Number(port)))
} else if (what === 'flow') flow(args[0] ?? '', Number(args[1]))
else {
  const socket = connect({ host: args[0] ?? '', port: Number(args[1]) }, () => say('ready'))
  socket.on('data', (data) => say(data.toString()))
  socket.on('close', () => say('closed'))
  createInterface({ input: process.stdin }).on('line', () => socket.write('?'))
}
