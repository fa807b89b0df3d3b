/** A malicious API server for tests of kubectl: one kind (pods), and scripted responses. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable, type Duplex, Writable } from 'node:stream'

import { WebSocketServer } from 'ws'

import { runKubectl } from '#kubectl/kubectl.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

const RESOURCES = {
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  metadata: {},
  items: [
    {
      metadata: { name: '' },
      versions: [
        {
          version: 'v1',
          resources: [
            {
              resource: 'pods',
              responseKind: { group: '', version: 'v1', kind: 'Pod' },
              scope: 'Namespaced',
              singularResource: 'pod',
              shortNames: ['po'],
              verbs: ['get', 'list', 'watch', 'create', 'delete'],
            },
          ],
        },
      ],
    },
  ],
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void
/** To those who ask for streams. */
type Upgrade = (request: IncomingMessage, socket: Duplex) => void

export interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs one command line of ours, in and with the home `folder`, against a server that answers like this. */
export async function askHostile(
  folder: string,
  args: readonly string[],
  answer: Answer,
  upgrade?: Upgrade,
): Promise<Outcome> {
  const server = await startHostileServer(answer, upgrade)
  const [out, err]: [string[], string[]] = [[], []]
  const into = (texts: string[]): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        texts.push(String(chunk))
        done()
      },
    })
  const context = {
    path: ['kubectl'],
    args: ['--server', server.url, ...args],
    env: { HOME: folder, KUBECACHEDIR: join(folder, 'cache') },
    cwd: folder,
    stdin: () => Readable.from([]),
    stdout: into(out),
    stderr: into(err),
    clock: realClock,
    random: secureRandom,
  }
  const code = await runKubectl(context, new AbortController().signal)
  await server.close()
  return { code, out: out.join(''), err: err.join('') }
}

interface HostileServer {
  readonly url: string
  close(): Promise<void>
}

/** Discovery is sound, so that the client comes as far as asking for pods: those are `answer`. */
export async function startHostileServer(answer: Answer, upgrade?: Upgrade): Promise<HostileServer> {
  const server = createServer((request, response) => {
    const { url = '' } = request
    if (url.includes('/pods')) return answer(request, response)
    const found = url === '/api' || url.startsWith('/api?') ? RESOURCES : { ...RESOURCES, items: [] }
    response.setHeader('content-type', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
    response.end(JSON.stringify(found))
  })
  const upgraded = new Set<Duplex>()
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    upgraded.add(socket)
    upgrade?.(request, socket)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
        for (const socket of upgraded) socket.destroy()
      }),
  }
}

const ESCAPES = '\u001b[2Jevil\u001b]0;title\u0007\r\u009bm\u0008\n'

/** A list of one pod as the server prints it, with escapes wherever there is text. */
export const EVIL_TABLE: object = {
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata: { resourceVersion: '1' },
  columnDefinitions: [
    { name: `Name${ESCAPES}`, type: 'string', format: 'name', description: '', priority: 0 },
    { name: 'Status', type: 'string', format: '', description: '', priority: 0 },
  ],
  rows: [
    {
      cells: [`pod${ESCAPES}`, `Running${ESCAPES}`],
      object: {
        kind: 'PartialObjectMetadata',
        apiVersion: 'meta.k8s.io/v1',
        metadata: { name: `pod${ESCAPES}`, namespace: 'default', labels: { [`key${ESCAPES}`]: `value${ESCAPES}` } },
      },
    },
  ],
}

export const EVIL_POD: object = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: {
    name: `pod${ESCAPES}`,
    namespace: `default${ESCAPES}`,
    uid: '1',
    labels: { [`key${ESCAPES}`]: `value${ESCAPES}` },
    annotations: { [`note${ESCAPES}`]: `text${ESCAPES}` },
  },
  spec: {
    containers: [{ name: `c${ESCAPES}`, image: `image${ESCAPES}`, command: [`run${ESCAPES}`] }],
    nodeName: `node${ESCAPES}`,
  },
  status: { phase: `Running${ESCAPES}`, message: `why${ESCAPES}` },
}

export const EVIL_STATUS: object = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: `no${ESCAPES}`,
  reason: 'Forbidden',
  code: 403,
}

export function json(code: number, body: object, headers: Readonly<Record<string, string>> = {}): Answer {
  return (_request, response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  }
}

/** A command in a container that prints this and ends well. */
export function printing(output: Buffer): Upgrade {
  return (request, socket) => {
    const server = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false })
    server.handleUpgrade(request, socket, Buffer.alloc(0), (connection) => {
      connection.send(Buffer.concat([Buffer.of(STDOUT), output]))
      connection.send(Buffer.concat([Buffer.of(OUTCOME), Buffer.from('{"status":"Success"}')]))
      connection.close(1000)
    })
  }
}

/** Channels of a remote command. */
const [STDOUT, OUTCOME] = [1, 3]
