/**
 * The protocol on the socket of the keeper, which supervises services without systemd. A connection carries one line of
 * JSON each way.
 */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Order {
  /** `leave` stops all services and then the keeper. */
  readonly order: 'start' | 'stop' | 'state' | 'leave'
  readonly name: string
}

export interface Reply {
  readonly isRunning?: boolean
  readonly problem?: string
}

/** Undefined: no keeper runs. */
export async function sendToKeeper(socket: string, order: Order): Promise<Reply | undefined> {
  const stream = connect(socket)
  try {
    stream.end(`${JSON.stringify(order)}\n`)
    const answer = await text(stream)
    return answer === '' ? undefined : (JSON.parse(answer) as Reply)
  } catch {
    return undefined
  } finally {
    stream.destroy()
  }
}
