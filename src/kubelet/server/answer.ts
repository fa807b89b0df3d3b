/** Creates the non-streaming responses of the kubelet API. */
import type { HeaderList } from '#lib/http/exchange.ts'

export interface Answer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: string | Buffer
}

const TEXT: HeaderList = ['Content-Type', 'text/plain; charset=utf-8']
const JSON_TYPE: HeaderList = ['Content-Type', 'application/json']

export function textAnswer(status: number, text: string): Answer {
  return { status, headers: TEXT, body: Buffer.from(text) }
}

export function jsonAnswer(value: unknown): Answer {
  return { status: 200, headers: JSON_TYPE, body: Buffer.from(JSON.stringify(value)) }
}
