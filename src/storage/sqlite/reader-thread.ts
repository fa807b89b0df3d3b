/** The reader thread: opens the store when the writer has prepared it, then answers calls one after the other. */
import type { MessagePort } from 'node:worker_threads'

import { toPlain } from './failures.ts'
import type { FromCall, FromReader, ReaderCall, ReaderSettings, ToReader } from './messages.ts'
import { Reader } from './reader.ts'

/** Serves until it receives `close`; then it closes the port, which ends the thread. */
export function runReader(port: MessagePort, settings: ReaderSettings): void {
  const post = (message: FromReader): void => port.postMessage(message, memoryOf(message))
  let reader: Reader | undefined
  const open = (): void => {
    try {
      reader = new Reader(settings.file)
      post({ type: 'ready' })
    } catch (error) {
      post({ type: 'failed', error: toPlain(error) })
    }
  }
  port.on('message', (message: ToReader) => {
    if ('id' in message) {
      if (reader !== undefined) answerCall(reader, message, post)
      return
    }
    if (message.method === 'open') return open()
    reader?.close()
    port.close()
  })
}

/** The transferred buffers of a message. */
export function memoryOf(message: FromReader): ArrayBuffer[] {
  return message.type === 'part' ? [message.part.values.buffer] : []
}

export function answerCall(reader: Reader, call: ReaderCall, post: (message: FromCall) => void): void {
  const { id, method, argument } = call
  const answer = (value: unknown): void => post({ type: 'answer', id, value })
  const fail = (error: unknown): void => post({ type: 'error', id, error: toPlain(error) })
  reader.sendPart = (part) => post({ type: 'part', id, part })
  try {
    const value = reader[method](argument as never)
    if (value instanceof Promise) value.then(answer, fail)
    else answer(value)
  } catch (error) {
    fail(error)
  }
}
