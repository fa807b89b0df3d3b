/** Queries DNS servers and formats the answers as lines for comparison. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'

import { type Message, nameBytes, readMessage, readName, type RecordAt, TYPE, uint16 } from '#dns/wire.ts'

import type { Asked } from './dns-questions.ts'

const LOOPBACK = '127.0.0.1'
const WAIT_MS = 8000

export function questionOf({ name, type, edns }: Asked, id: number): Buffer {
  const head = Buffer.alloc(12)
  for (const [nth, word] of [id, 0x01_00, 1, 0, 0, edns === undefined ? 0 : 1].entries())
    head.writeUInt16BE(word, 2 * nth)
  const opt = edns === undefined ? [] : [0, 0, TYPE.OPT, edns >> 8, edns & 0xff, 0, 0, 0, 0, 0, 0]
  return Buffer.concat([head, nameBytes(name), Buffer.from([type >> 8, type & 0xff, 0, 1, ...opt])])
}

export async function askOne(asked: Asked, port: number, id = 7): Promise<Message> {
  const question = questionOf(asked, id)
  const bytes = asked.via === 'udp' ? await byDatagram(question, port) : await byStream(question, port)
  const message = readMessage(bytes)
  if (message === undefined) throw new Error(`The answer about ${asked.name} cannot be read`)
  return message
}

async function byDatagram(question: Buffer, port: number): Promise<Buffer> {
  const socket = createSocket('udp4')
  try {
    socket.send(question, port, LOOPBACK)
    const [answer] = (await once(socket, 'message', { signal: AbortSignal.timeout(WAIT_MS) })) as [Buffer]
    return answer
  } finally {
    socket.close()
  }
}

async function byStream(question: Buffer, port: number): Promise<Buffer> {
  const socket = connect({ host: LOOPBACK, port })
  socket.setTimeout(WAIT_MS, () => socket.destroy(new Error('No answer')))
  socket.write(Buffer.concat([Buffer.from([question.length >> 8, question.length & 0xff]), question]))
  let received = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received = Buffer.concat([received, chunk])
    if (received.length >= 2 && received.length >= 2 + uint16(received, 0)) break
  }
  return received.subarray(2, 2 + uint16(received, 0))
}

/** The lines of an answer, sorted, because servers rotate records. */
export function linesOf(message: Message): string[] {
  const { flags } = message
  const section = (name: string, records: readonly RecordAt[]): string[] =>
    records
      .filter(({ type }) => type !== TYPE.OPT)
      .map((record) => `${name} ${lineOf(message, record)}`)
      .sort()
  const isCut = (flags & 0x02_00) !== 0
  const set = [0x04_00, 0x02_00].map((flag) => ((flags & flag) === 0 ? '-' : '+'))
  return [
    `rcode ${flags & 0xf} aa${set[0]} tc${set[1]} opt${message.additional.some(({ type }) => type === TYPE.OPT) ? '+' : '-'}`,
    // Which of many have found room is a matter of turns, too; how many, of how names are shortened.
    ...(isCut ? [] : section('answer', message.answers)),
    ...section('authority', message.authority),
    ...(isCut ? [] : section('additional', message.additional)),
  ]
}

function lineOf({ bytes }: Message, record: RecordAt): string {
  return `${record.name} ${record.ttl} ${record.type} ${dataOf(Buffer.from(bytes), record)}`
}

const NAMED = new Set<number>([TYPE.CNAME, TYPE.PTR, TYPE.NS])

function dataOf(bytes: Buffer, { type, dataAt, end }: RecordAt): string {
  if (NAMED.has(type)) return readName(bytes, dataAt)?.name ?? 'broken'
  if (type === TYPE.SRV)
    return `${bytes.subarray(dataAt, dataAt + 6).toString('hex')} ${readName(bytes, dataAt + 6)?.name}`
  if (type !== TYPE.SOA) return bytes.subarray(dataAt, end).toString('hex')
  const primary = readName(bytes, dataAt)
  const mailbox = readName(bytes, primary?.end ?? 0)
  // Serials are times.
  return `${primary?.name} ${mailbox?.name} ${bytes.subarray(end - 16, end).toString('hex')}`
}
