/** Pods for tests of port forwards: programs of the test behind the portforward subresource of an API server. */
import { duplexPair } from 'node:stream'

import { realClock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { SpdyConnection } from '#lib/spdy/connection.ts'
import type { SpdyStream } from '#lib/spdy/stream.ts'

export interface PodConnection {
  /** The name of the pod. */
  readonly pod: string
  readonly port: number
  readonly data: SpdyStream
  /** The kubelet writes here why it cannot connect. */
  readonly errors: SpdyStream
}

export interface FakePods {
  readonly upgrade: HttpClient['upgrade']
  /** Serves connections from now on. */
  serve: (connection: PodConnection) => Promise<void>
  /** Breaks the connections to a pod, as a kubelet does when it goes. */
  remove(pod: string): void
}

export function fakePods(): FakePods {
  const sessions: { readonly pod: string; readonly spdy: SpdyConnection }[] = []
  const pods: FakePods = {
    serve: echo,
    remove: (pod) => sessions.filter((one) => one.pod === pod).forEach(({ spdy }) => spdy.destroy()),
    upgrade({ url }) {
      const pod = /\/pods\/([^/]+)\/portforward$/.exec(String(url))?.[1] ?? ''
      const [socket, far] = duplexPair()
      const errors = new Map<string, SpdyStream>()
      const spdy = new SpdyConnection(far, {
        clock: realClock,
        role: 'server',
        onStream(stream) {
          const id = stream.headers.get('requestid') ?? ''
          if (stream.headers.get('streamtype') === 'error') return void errors.set(id, stream)
          const failing = errors.get(id)
          if (failing === undefined) return
          const port = Number(stream.headers.get('port'))
          pods.serve({ pod, port, data: stream, errors: failing }).then(
            () => failing.end(),
            () => undefined,
          )
        },
      })
      sessions.push({ pod, spdy })
      const headers = { 'x-stream-protocol-version': 'portforward.k8s.io' }
      return Promise.resolve({ isUpgraded: true, headers, socket, head: Buffer.alloc(0) })
    },
  }
  return pods
}

/** Returns what it gets, behind the name of the pod and the port, when the client has ended. */
async function echo({ pod, port, data }: PodConnection): Promise<void> {
  const parts: Buffer[] = []
  for await (const bytes of data) parts.push(bytes)
  await data.write(Buffer.from(`${pod}:${port} ${Buffer.concat(parts).toString()}`))
  data.end()
}
