/** Copies a TCP connection to a port of a pod and back, with backpressure in both directions. */
import type { Socket } from 'node:net'

import { drained } from '#lib/drained.ts'
import type { SpdyStream } from '#lib/spdy/stream.ts'

import type { ForwardedStreams } from './port-forward.ts'

export interface ConnectionObserver {
  /** Sees bytes before the pod gets them. False: neither these nor later bytes are sent, and the pod is disconnected. */
  sending(bytes: Buffer): boolean
  received(bytes: Buffer): void
}

const UNOBSERVED: ConnectionObserver = { sending: () => true, received: () => undefined }

/** Resolves when the pod has ended, with the error of the kubelet; empty: there was none. Then closes the socket. */
export async function forwardConnection(
  socket: Socket,
  { data, errors }: ForwardedStreams,
  observer: ConnectionObserver = UNOBSERVED,
): Promise<string> {
  const errorText = textOf(errors)
  void sendAll(socket, data, observer)
  await receiveAll(data, socket, observer)
  // Unsent data must not block other streams of the connection.
  data.reset()
  return errorText
}

async function sendAll(socket: Socket, data: SpdyStream, observer: ConnectionObserver): Promise<void> {
  try {
    // A client that has sent everything still waits for the rest of the answer.
    for await (const bytes of socket.iterator({ destroyOnReturn: false })) {
      if (!observer.sending(bytes as Buffer)) return data.reset()
      await data.write(bytes as Buffer)
    }
  } catch {
    // Either side has closed the connection; the receiver notices.
  }
  data.end()
}

async function receiveAll(data: SpdyStream, socket: Socket, observer: ConnectionObserver): Promise<void> {
  for await (const bytes of data) {
    if (socket.destroyed) return
    observer.received(bytes)
    if (!socket.write(bytes)) await drained(socket)
  }
}

async function textOf(stream: SpdyStream): Promise<string> {
  const parts: Buffer[] = []
  try {
    for await (const data of stream) parts.push(data)
  } catch {
    // The connection is closed, so its error stream is lost.
  }
  return Buffer.concat(parts).toString()
}
