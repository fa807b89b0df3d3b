/** The streams of exec and attach over a WebSocket (v5.channel.k8s.io): the first byte of a message is the channel. */

export const PROTOCOLS: readonly string[] = ['v5.channel.k8s.io', 'v4.channel.k8s.io']

const CHANNELS = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const

export type StreamMessage =
  | { readonly type: 'output'; readonly bytes: Uint8Array }
  /** The command has ended. `message` is empty if it succeeded. */
  | { readonly type: 'end'; readonly message: string }

export function decodeMessage(data: ArrayBuffer): StreamMessage | undefined {
  const bytes = new Uint8Array(data)
  const [channel] = bytes
  const body = bytes.subarray(1)
  if (channel === CHANNELS.stdout || channel === CHANNELS.stderr) return { type: 'output', bytes: body }
  if (channel === CHANNELS.error) return { type: 'end', message: endMessage(new TextDecoder().decode(body)) }
  return undefined
}

/** The server sends a Status when the command has ended. */
function endMessage(text: string): string {
  try {
    const { status, message = text } = JSON.parse(text) as { readonly status?: string; readonly message?: string }
    return status === 'Success' ? '' : message
  } catch {
    return text
  }
}

export function encodeInput(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return encode(CHANNELS.stdin, bytes)
}

export function encodeSize(columns: number, rows: number): Uint8Array<ArrayBuffer> {
  return encode(CHANNELS.resize, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows })))
}

function encode(channel: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(body.length + 1)
  message[0] = channel
  message.set(body, 1)
  return message
}
