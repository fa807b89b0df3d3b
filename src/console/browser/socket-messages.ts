/**
 * Reads the messages of a WebSocket. Watches and logs use WebSockets, because browsers allow six requests at a time to a
 * server without TLS, in all tabs together.
 */
import { RequestError } from '../api/request.ts'

type State = 'opening' | 'open' | 'ended' | 'broken' | 'refused'

/**
 * Ends when the server closes the connection. Throws RequestError: 410 if the connection could not be opened, so that the
 * caller lists again and learns why; 0 if it broke.
 */
export async function* socketMessages(path: string, signal: AbortSignal): AsyncGenerator<string> {
  const inbox = new Inbox(new WebSocket(`${globalThis.location.origin.replace(/^http/, 'ws')}${path}`))
  const stop = (): void => inbox.close()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    for (;;) {
      yield* inbox.take()
      if (inbox.state === 'ended' || signal.aborted) return
      if (inbox.state === 'refused') throw new RequestError({ code: 410, message: 'The server refused the connection' })
      if (inbox.state === 'broken') throw new RequestError({ code: 0, message: 'The connection was lost' })
      await inbox.changed()
    }
  } finally {
    signal.removeEventListener('abort', stop)
    inbox.close()
  }
}

/** The messages that have arrived, as text. */
class Inbox {
  readonly #socket: WebSocket
  readonly #decoder = new TextDecoder()
  #texts: string[] = []
  #wake = (): void => undefined
  state: State = 'opening'

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.binaryType = 'arraybuffer'
    socket.addEventListener('open', () => (this.state = 'open'))
    socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
      this.#texts.push(typeof data === 'string' ? data : this.#decoder.decode(data, { stream: true }))
      this.#wake()
    })
    socket.addEventListener('close', ({ wasClean }) => {
      this.state = this.state === 'opening' ? 'refused' : wasClean ? 'ended' : 'broken'
      this.#wake()
    })
  }

  take(): readonly string[] {
    const texts = this.#texts
    this.#texts = []
    return texts
  }

  changed(): Promise<void> {
    if (this.#texts.length > 0) return Promise.resolve()
    return new Promise((resolve) => (this.#wake = resolve))
  }

  close(): void {
    this.#socket.close()
  }
}
