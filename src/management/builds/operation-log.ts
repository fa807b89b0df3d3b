/**
 * The log of an Operation: lines with times, stored in a Secret of the management cluster. Its size is bounded: the
 * oldest lines are dropped first.
 */
import { Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import { GROUP } from '../kinds/definition.ts'
import type { Operation } from '../kinds/operation.ts'
import { MANAGEMENT_NAMESPACE } from '../objects.ts'

const MAX_BYTES = 256 << 10
/** A machine may answer with a long text. */
const MAX_LINE = 8192
const KEY = 'log'

export interface StoredLog {
  readonly text: string
  /** The size of everything that was ever written; `text` is its end. */
  readonly bytes: number
}

const EMPTY: StoredLog = { text: '', bytes: 0 }

export class OperationLog {
  readonly #clock: Clock
  readonly #redact: (text: string) => string
  #text: string
  #bytes: number

  constructor(before: StoredLog, clock: Clock, redact: (text: string) => string) {
    this.#text = before.text
    this.#bytes = before.bytes
    this.#clock = clock
    this.#redact = redact
  }

  get stored(): StoredLog {
    return { text: this.#text, bytes: this.#bytes }
  }

  add(message: string): void {
    const time = new Date(this.#clock.now()).toISOString()
    const lines = this.#redact(message).split('\n')
    const text = lines.map((line) => `${time} ${line.slice(0, MAX_LINE)}\n`).join('')
    this.#bytes += Buffer.byteLength(text)
    this.#text = newest(this.#text + text)
  }
}

/** Whole lines of at most MAX_BYTES. */
function newest(text: string): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_BYTES) return text
  const end = bytes.subarray(bytes.length - MAX_BYTES).toString()
  return end.slice(end.indexOf('\n') + 1)
}

/** The text after the first `from` bytes, without lines that are dropped by now. */
export function logAfter({ text, bytes }: StoredLog, from: number): string {
  const content = Buffer.from(text)
  const start = bytes - content.length
  return content.subarray(Math.max(0, from - start)).toString()
}

export async function readLog(client: ApiClient, operation: string): Promise<StoredLog> {
  try {
    const { data = {} } = await client.get(Secrets, whereOf(operation))
    return JSON.parse(Buffer.from(data[KEY] ?? '', 'base64').toString() || JSON.stringify(EMPTY)) as StoredLog
  } catch (error) {
    if (isNotFound(error)) return EMPTY
    throw error
  }
}

export async function writeLog(client: ApiClient, { metadata }: Operation, log: StoredLog): Promise<void> {
  const { name = '', uid = '' } = metadata
  const data = { [KEY]: Buffer.from(JSON.stringify(log)).toString('base64') }
  const where = whereOf(name)
  try {
    await client.patch(Secrets, where, { type: 'merge', value: { data } })
  } catch (error) {
    if (!isNotFound(error)) throw error
    const owner = { apiVersion: `${GROUP}/v1`, kind: 'Operation', name, uid }
    const made = client.create(Secrets, { metadata: { ...where, ownerReferences: [owner] }, type: 'Opaque', data })
    await made.catch((failed: unknown) => {
      if (!isAlreadyExists(failed)) throw failed
    })
  }
}

function whereOf(operation: string): { readonly namespace: string; readonly name: string } {
  return { namespace: MANAGEMENT_NAMESPACE, name: `operation-log-${operation}` }
}
