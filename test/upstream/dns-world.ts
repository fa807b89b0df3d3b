/** A fake upstream DNS server for tests, with a few names of `example.com`. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

import { type Answer, sizeFor, TCP_BYTES, writeAnswer, type ResourceRecord } from '#dns/message.ts'
import { RCODE, readQuery, TYPE, uint16 } from '#dns/wire.ts'

export interface World extends AsyncDisposable {
  readonly address: string
}

const address = (name: string, nth: number): ResourceRecord => ({
  name,
  type: TYPE.A,
  ttl: 20,
  data: { address: `192.0.2.${nth}` },
})

const RECORDS: readonly ResourceRecord[] = [
  address('www.example.com', 1),
  { name: 'www.example.com', type: TYPE.TXT, ttl: 20, data: { text: 'hello' } },
  { name: 'alias.example.com', type: TYPE.CNAME, ttl: 20, data: { target: 'www.example.com' } },
  ...Array.from({ length: 100 }, (_, nth) => address('big.example.com', nth)),
]
const SOA: ResourceRecord = {
  name: 'example.com',
  type: TYPE.SOA,
  ttl: 15,
  data: {
    soa: {
      primary: 'ns.example.com',
      mailbox: 'root.example.com',
      serial: 1,
      refresh: 1,
      retry: 1,
      expire: 1,
      minimum: 15,
    },
  },
}

function answerTo(name: string, type: number): Answer {
  const own = RECORDS.filter((record) => record.name === name)
  const alias = own.find((record) => record.type === TYPE.CNAME)
  const target =
    alias === undefined ? [] : RECORDS.filter((record) => record.name === 'www.example.com' && record.type === type)
  const answers = [...own.filter((record) => record.type === type || record === alias), ...target]
  const rcode = own.length === 0 ? RCODE.nameError : RCODE.success
  return { rcode, authoritative: true, answers, ...(answers.length === 0 && { authority: [SOA] }) }
}

function reply(bytes: Uint8Array, isStream: boolean): Buffer | undefined {
  const query = readQuery(bytes)
  if ('refusal' in query) return undefined
  return writeAnswer(query, answerTo(query.name, query.type), isStream ? TCP_BYTES : sizeFor(query), true)
}

/** Listens on port 53 of an address of the loopback. */
export async function startWorld(at: string): Promise<World> {
  const socket = createSocket('udp4')
  socket.on('message', (bytes, from) => {
    const answer = reply(bytes, false)
    if (answer !== undefined) socket.send(answer, from.port, from.address)
  })
  const server = createServer((stream) => {
    let received = Buffer.alloc(0)
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 2 && received.length >= 2 + uint16(received, 0)) {
        const answer = reply(received.subarray(2, 2 + uint16(received, 0)), true)
        received = received.subarray(2 + uint16(received, 0))
        if (answer !== undefined)
          stream.write(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 0xff]), answer]))
      }
    })
  })
  socket.bind(53, at)
  server.listen(53, at)
  await Promise.all([once(socket, 'listening'), once(server, 'listening')])
  return {
    address: at,
    [Symbol.asyncDispose]: async () => {
      socket.close()
      server.close()
    },
  }
}
