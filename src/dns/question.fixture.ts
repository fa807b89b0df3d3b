/** Encodes DNS queries of clients for tests. */
import { nameBytes, type Query, readQuery } from './wire.ts'

export interface QuestionFields {
  readonly name: string
  readonly type: number
  readonly id?: number
  readonly edns?: number
  readonly class?: number
}

/** Keeps the spelling of the name. */
export function questionOf({ name, type, id = 7, edns, class: of = 1 }: QuestionFields): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(0x01_00, 2)
  head.writeUInt16BE(1, 4)
  const tail = Buffer.alloc(4)
  tail.writeUInt16BE(type, 0)
  tail.writeUInt16BE(of, 2)
  if (edns === undefined) return Buffer.concat([head, nameBytes(name), tail])
  head.writeUInt16BE(1, 10)
  return Buffer.concat([head, nameBytes(name), tail, Buffer.from([0, 0, 41, edns >> 8, edns & 0xff, 0, 0, 0, 0, 0, 0])])
}

export function queryOf(fields: QuestionFields): Query {
  const query = readQuery(questionOf(fields))
  if ('refusal' in query) throw new Error(`"${fields.name}" is not a valid query`)
  return query
}
