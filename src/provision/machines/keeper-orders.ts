/** What is said to a keeper, over its socket: a line of JSON each way, and the connection ends. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Order {
  /** `leave` is to the keeper itself, which ends all that it keeps first. */
  readonly order: 'start' | 'stop' | 'state' | 'leave'
  readonly name: string
}

export interface Reply {
  readonly isRunning?: boolean
  readonly problem?: string
}

/** Undefined: there is no keeper. */
export async function askKeeper(socket: string, order: Order): Promise<Reply | undefined> {
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
