/** Questions as clients send them, for tests. */
import { nameBytes, type Query, readQuery } from './wire.ts'

export interface Asked {
  readonly name: string
  readonly type: number
  readonly id?: number
  readonly edns?: number
  readonly class?: number
}

/** The name stays written as it is. */
export function questionOf({ name, type, id = 7, edns, class: of = 1 }: Asked): Buffer {
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

export function queryOf(asked: Asked): Query {
  const query = readQuery(questionOf(asked))
  if ('refusal' in query) throw new Error(`"${asked.name}" cannot be asked`)
  return query
}
